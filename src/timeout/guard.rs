//! A guard that cancels its timeout.

use super::handle::Timeout;

impl Timeout {
    /// Turns the handle into a guard that cancels the timeout when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// {
    ///     let _deadline = timer
    ///         .new_timeout(|| eprintln!("the request takes too long"), Duration::from_secs(5))?
    ///         .cancel_on_drop();
    ///     // handle the request
    /// }
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop(Some(self))
    }
}

/// Cancels its timeout when it is dropped. Created by [`Timeout::cancel_on_drop`].
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// let guard = timer.new_timeout(|| (), Duration::from_secs(30))?.cancel_on_drop();
/// assert!(guard.timeout().is_some_and(|timeout| timeout.is_pending()));
/// drop(guard);
/// assert_eq!(timer.pending_timeouts(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard cancels the timeout"]
pub struct CancelOnDrop(Option<Timeout>);

impl CancelOnDrop {
    /// Gives the handle back without cancelling the timeout.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let guard = timer.new_timeout(|| (), Duration::from_secs(30))?.cancel_on_drop();
    /// let timeout = guard.disarm().expect("it is armed"); // it shall expire after all
    /// assert!(timeout.is_pending());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disarm(mut self) -> Option<Timeout> {
        self.0.take()
    }

    /// The guarded timeout.
    pub fn timeout(&self) -> Option<&Timeout> {
        self.0.as_ref()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(timeout) = &self.0 {
            timeout.cancel();
        }
    }
}
