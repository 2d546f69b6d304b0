//! Waiting for the clock: timeouts that are to go on a delay after their run, but the clock panicked when the end of
//! the run was to be read. The delay counts from the next time that the worker reads. So no further run is early, and
//! none is lost.
//!
//! Such a slot is Filed. Its deadline is `UNKNOWN`, which no clock reaches, and which is not that of `Duration::MAX`.
//! Its entry is in the queue here. Until the queue is empty, the worker sleeps for a tick at most.
//!
//! The worker notes the length of the queue, reads the clock, and then takes as many entries. So the time that it has
//! read is after the end of each of these runs. It gives the slot its deadline by one compare-exchange, and files the
//! entry in the wheel. If the exchange fails, a cancel, a reschedule or a stop was first.
//!
//! An old entry that matches by chance (invariant 5 of `slot`) finds another deadline, unless the later timeout waits
//! here too. For that, its thread would have to schedule 65,536 timeouts while the worker is in one pass.

use super::shared::Shared;
use crate::base::sync::{Ordering, fence};
use crate::wheel::Token;

impl<T> Shared<T> {
    /// Makes the entry of a token wait for the clock, whose next time begins the delay. The fence is that of
    /// `catch_up`.
    #[cold]
    pub(crate) fn wait_for_clock(&self, token: Token, delay: u64) {
        self.waiting_for_clock.push((token, delay));
        fence(Ordering::SeqCst);
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// The number of entries that wait for the clock. Only the worker takes them.
    pub(crate) fn waiting_for_clock(&self) -> usize {
        if self.waiting_for_clock.is_empty() { 0 } else { self.waiting_for_clock.len() }
    }

    /// Takes the entry that has waited longest: a token, and the delay.
    pub(crate) fn next_waiting_for_clock(&self) -> Option<(Token, u64)> {
        self.waiting_for_clock.pop()
    }
}

#[cfg(all(test, loom))]
mod model;
