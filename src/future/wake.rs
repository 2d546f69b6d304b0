//! A waker in the wheel.

use crate::base::sync::Arc;
use crate::base::waker::Identity;
use crate::intake::Home;
use crate::intake::shared::Gate;
use crate::timeout::{Admit, Erased, Kind, Next, Run, Timeout, TimerTask, home, schedule};
use crate::timer::HashedWheelTimer;
use std::task::Waker;

/// A task that wakes its waker when the timeout expires, and when [`Waiter::wake`] or a stop of the timer
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

    const KIND: Kind = Kind::WAKE;
}

/// A future's way to its timer, and the waker that waits there.
///
/// Its drop takes the waker out and drops it, on the calling thread and under no lock. If the worker
/// has already claimed the timeout, the worker wakes the waker instead.
pub(super) struct Waiter {
    home: Arc<Home<Erased>>,
    /// The last waker that was put into the timer, and its timeout. `None` once it was taken out.
    waiting: Option<(Timeout, Identity)>,
}

impl Waiter {
    #[inline]
    pub(super) fn new(timer: &HashedWheelTimer) -> Self {
        Self { home: home(&timer.control().timer), waiting: None }
    }

    #[inline]
    pub(super) fn gate(&self) -> &Gate {
        &self.home.timer.gate
    }

    /// Puts `waker` into the timer, instead of the previous one. If the timer refuses it, wakes it.
    #[inline]
    pub(super) fn wait(&mut self, waker: Waker, deadline: u64) {
        self.leave();
        let identity = Identity::of(&waker);
        match schedule(&self.home.timer, Wake(waker), deadline, Admit::Once) {
            Ok(timeout) => self.waiting = Some((timeout, identity)),
            // If all slots of the timer are in use, the next poll tries again.
            Err(refused) => refused.into_task().0.wake(),
        }
    }

    /// Whether a waker was put into the timer. It may have been woken meanwhile.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether `waker` will be woken at the deadline. False after the expiry.
    #[inline]
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        self.waiting.as_ref().is_some_and(|(timeout, own)| own.is(waker) && timeout.is_pending())
    }

    /// Moves the deadline. Returns false if no waker waits, or if it is about to be woken.
    #[inline]
    pub(super) fn move_to(&self, deadline: u64) -> bool {
        self.waiting.as_ref().is_some_and(|(timeout, _)| timeout.reschedule_to(deadline).is_ok())
    }

    /// Wakes the waker on this thread, unless it was already woken.
    pub(super) fn wake(&mut self) {
        self.waiting.take().into_iter().for_each(|(timeout, _)| _ = timeout.cancel());
    }

    /// Drops the waker.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.waiting.take().into_iter().for_each(|(timeout, _)| timeout.discard());
    }
}

impl Drop for Waiter {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}
