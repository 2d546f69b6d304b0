//! `WeakTimer`: a handle that does not keep its timer alive.

use super::hashed_wheel_timer::{Handle, HashedWheelTimer};
use std::fmt;
use std::sync::{Arc, Weak};

impl HashedWheelTimer {
    /// A handle that does not keep the timer alive.
    pub fn downgrade(&self) -> WeakTimer {
        WeakTimer(Arc::downgrade(&self.0))
    }
}

/// A handle to a timer that does not keep it alive. Created by [`HashedWheelTimer::downgrade`].
///
/// A pending task that holds a [`HashedWheelTimer`] keeps its own timer alive. If the owner of the timer is held by
/// such a task, neither ever ends. So a task that schedules others should hold a `WeakTimer`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::timer::WeakTimer;
///
/// /// Looks once, and again after a minute, until the timer is gone.
/// fn watch(timer: &WeakTimer) {
///     println!("looking");
///     let (own, minute) = (timer.clone(), Duration::from_secs(60));
///     if let Some(timer) = timer.upgrade() {
///         let _ = timer.new_timeout(move || watch(&own), minute); // a refusal: it is stopped
///     }
/// }
///
/// let timer = HashedWheelTimer::new()?;
/// let weak = timer.downgrade();
/// watch(&weak);
/// drop(timer); // ends the timer, although a task is pending
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct WeakTimer(Weak<Handle>);

impl WeakTimer {
    /// A handle of no timer.
    pub fn new() -> Self {
        Self::default()
    }

    /// A full handle, or `None` once the last one was dropped. While it lives, it keeps the timer alive: if
    /// it becomes the last one, its drop ends the timer. A stopped timer can be upgraded.
    pub fn upgrade(&self) -> Option<HashedWheelTimer> {
        self.0.upgrade().map(HashedWheelTimer)
    }
}

impl fmt::Debug for WeakTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alive = self.0.strong_count() > 0;
        f.debug_struct("WeakTimer").field("is_alive", &alive).finish()
    }
}
