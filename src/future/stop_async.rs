//! `Stop`: the end of a timer, without blocking the thread that waits for it.

use crate::timeout::Unprocessed;
use crate::timer::{HashedWheelTimer, error::StopError};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

impl HashedWheelTimer {
    /// Stops the timer as [`stop`](Self::stop) does, without blocking the thread. Returns a future that
    /// is ready after the end of the timer.
    ///
    /// The first poll closes the timer. The future waits for a task that runs on the worker. It does
    /// not wait for the end of the worker's thread, nor for the drop of the thread-locals there. An async
    /// task that is polled on the worker may await it too.
    ///
    /// # Errors
    ///
    /// In a forked child, as [`stop`](Self::stop).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll and before it is ready, the timer still ends. The
    /// unprocessed timeouts go to the next stop, or are cancelled when the last handle is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let timer = wheelwork::HashedWheelTimer::new()?;
    /// timer.new_timeout(|| println!("goodbye"), Duration::from_secs(60))?;
    /// for unprocessed in timer.stop_async().await? {
    ///     unprocessed.run();
    /// }
    /// assert!(timer.is_stopped());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop_async(&self) -> Stop {
        Stop { timer: self.clone(), number: None }
    }
}

/// The end of a timer as a future. Created by [`HashedWheelTimer::stop_async`].
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use wheelwork::{HashedWheelTimer, Unprocessed, future::Stop};
///
/// let timer = HashedWheelTimer::new()?;
/// timer.new_timeout(|| (), Duration::from_secs(60))?;
/// let stop: Stop = timer.stop_async(); // the first poll closes the timer
/// let unprocessed: Vec<Unprocessed> = stop.await?;
/// assert_eq!(unprocessed.len(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct Stop {
    timer: HashedWheelTimer,
    /// The number of the waker that waits for the end.
    number: Option<u64>,
}

impl Future for Stop {
    type Output = Result<Vec<Unprocessed>, StopError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { timer, number } = &mut *self;
        let control = timer.stoppable()?;
        control.begin_stop();
        let unprocessed = control.progress.poll_finished(number, cx.waker());
        unprocessed.map_or(Poll::Pending, |unprocessed| Poll::Ready(Ok(unprocessed)))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.number
            .into_iter()
            .for_each(|number| self.timer.control().progress.stop_waiting(number));
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("timer", &self.timer).finish_non_exhaustive()
    }
}
