//! A waker in the wheel.

use crate::base::waker::Identity;
use crate::intake::context::Gate;
use crate::timeout::{Kind, Next, Reservation, Run, Timeout, TimerTask};
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

/// A future's slot in the timer, and the waker that waits there.
///
/// Its drop takes the waker out and drops it, on the calling thread and under no lock. If the worker
/// has already claimed the timeout, the worker wakes the waker instead.
pub(super) struct Waiter {
    reservation: Reservation,
    /// `None` if no waker was put into the timer, or if it was taken out.
    waker: Option<Identity>,
}

impl Waiter {
    #[inline]
    pub(super) fn new(timer: &HashedWheelTimer) -> Self {
        Self { reservation: timer.reserve(), waker: None }
    }

    #[inline]
    pub(super) fn gate(&self) -> &Gate {
        self.reservation.gate()
    }

    /// Puts `waker` into the timer, instead of the previous one. If the timer refuses it, wakes it.
    #[inline]
    pub(super) fn wait(&mut self, waker: Waker, deadline: u64) {
        self.leave();
        let identity = Identity::of(&waker);
        match self.reservation.arm(Wake(waker), deadline) {
            Ok(()) => self.waker = Some(identity),
            // If all slots of the timer are in use, the next poll tries again.
            Err(refused) => refused.0.wake(),
        }
    }

    /// Whether a waker was put into the timer. It may have been woken meanwhile.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.waker.is_some()
    }

    /// Whether `waker` will be woken at the deadline. False after the expiry.
    #[inline]
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        let same = self.waker.as_ref().is_some_and(|own| own.is(waker));
        same && self.reservation.timeout().is_pending()
    }

    /// Whether the worker has found that the clock has reached the deadline of the last waker, or the time
    /// to which the last `move_to` has moved it.
    #[inline]
    pub(super) fn has_expired(&self) -> bool {
        self.waits() && self.reservation.timeout().is_expired()
    }

    /// Moves the deadline. Returns false if the waker was woken, or is about to be woken.
    #[inline]
    pub(super) fn move_to(&self, deadline: u64) -> bool {
        self.reservation.timeout().reschedule_to(deadline).is_ok()
    }

    /// Wakes the waker on this thread, unless it was already woken.
    pub(super) fn wake(&mut self) {
        if self.waker.take().is_some() {
            self.reservation.timeout().cancel();
        }
    }

    /// Drops the waker.
    #[inline]
    pub(super) fn leave(&mut self) {
        if self.waker.take().is_some() {
            self.reservation.timeout().discard();
        }
    }
}

impl Drop for Waiter {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}
