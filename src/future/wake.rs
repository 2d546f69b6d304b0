//! A waker in the wheel.

use crate::base::waker::Identity;
use crate::timeout::{Next, Run, Timeout, TimerTask};
use crate::timer::HashedWheelTimer;
use std::task::Waker;
use std::time::Instant;

/// A task that wakes its waker when the timeout expires, and when [`Armed::wake`] or a stop of the timer
/// cancels it. A waker has 16 bytes, so it is stored in its slot.
struct Wake(Waker);

impl TimerTask for Wake {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.0.wake();
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.wake();
    }

    const RUNS_ONCE: bool = true;
    const ONLY_WAKES: bool = true;
}

/// A waker that was put into the wheel.
///
/// Its drop takes the waker out and drops it, on the calling thread and under no lock. If the worker
/// has already claimed the timeout, the worker wakes the waker instead.
pub(super) struct Armed {
    timeout: Timeout,
    waker: Identity,
}

impl Armed {
    /// Puts `waker` into the wheel. If the timer refuses it, wakes it, and returns `None`.
    pub(super) fn new(timer: &HashedWheelTimer, waker: Waker, deadline: Instant) -> Option<Self> {
        let identity = Identity::of(&waker);
        match timer.wake_at(Wake(waker), deadline) {
            Ok(timeout) => Some(Self { timeout, waker: identity }),
            Err(refused) => {
                // If all slots of the timer are in use, the next poll tries again.
                refused.into_task().0.wake();
                None
            }
        }
    }

    /// Whether `waker` will be woken at the deadline. False after the expiry.
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.is(waker) && self.timeout.is_pending()
    }

    /// Moves the deadline. Returns false if the waker was woken, or is about to be woken.
    pub(super) fn move_to(&self, deadline: Instant) -> bool {
        self.timeout.reschedule_at(deadline).is_ok()
    }

    /// Wakes the waker on this thread, unless it was already woken.
    pub(super) fn wake(self) {
        self.timeout.cancel();
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.timeout.discard();
    }
}
