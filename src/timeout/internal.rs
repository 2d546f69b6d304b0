//! Internal timeouts: timeouts that the crate schedules for itself. The idle manager uses them.
//!
//! Users do not see them: no limit refuses one, no count and no metric includes it, and no stop returns
//! it. When the timer ends, the worker's thread cancels them after it has reported the end, because a stop must not
//! wait for their tasks.
//!
//! All internal timeouts of a timer have one owner, which belongs to no thread. Their chunks mark them
//! as internal, so they cost the users' timeouts nothing. A lock guards the owner. It may be
//! taken under a lock of the layers above. No task runs or is dropped under it.

use super::error::ScheduleError;
use super::handle::Timeout;
use super::payload::{Erased, Link};
use super::schedule::{Admit, refused, schedule_in};
use super::task::TimerTask;
use crate::base::sync::Mutex;
use crate::intake::{Moved, Owner, TakenBack};
use crate::metrics::Counts;
use std::time::Instant;

/// The internal timeouts of one timer: their owner. `None` before the first timeout and after the end.
pub(crate) struct Internals(Mutex<Option<Owner<Erased>>>);

impl Internals {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn schedule<T: TimerTask>(
        &self,
        timer: &Link,
        task: T,
        deadline: u64,
        admit: Admit,
    ) -> Result<Internal, ScheduleError<T>> {
        let mut owner = self.0.lock();
        if owner.is_none() && !timer.gate.is_closed() {
            *owner = timer.shared().and_then(|shared| Owner::of_internals(&shared));
        }
        match &mut *owner {
            Some(owner) => schedule_in(owner, task, deadline, admit).map(Internal),
            None => Err(refused(timer, true, task, |tally| &tally.rejected)),
        }
    }

    /// Drops their owner. The worker's thread calls it after the timer has ended.
    pub(crate) fn end(&self) {
        let owner = self.0.lock().take();
        drop(owner); // the lock is released
    }
}

/// The handle to an internal timeout. Dropping it detaches the timeout.
pub(crate) struct Internal(Timeout);

impl Internal {
    /// Whether the timeout has not ended yet. Its task may be running.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.deadline().is_some()
    }

    /// Cancels the timeout, unless it runs or has ended.
    pub(crate) fn cancel(&self) {
        let Some(TakenBack { payload, filed }) = self.0.take_back() else { return };
        let timer = &self.0.pin().chunk().timer;
        timer.count(|Counts { internals, .. }| {
            internals.cancelled.add_shared(1);
            if filed {
                internals.died.add_shared(1);
                timer.entry_died(internals.died.get());
            }
        });
        self.0.tell_cancelled(payload);
    }

    /// Moves the deadline. False if the timeout runs or has ended, or if the timer is stopped.
    pub(crate) fn reschedule_at(&self, deadline: Instant) -> bool {
        let timer = &self.0.pin().chunk().timer;
        let moved = self.0.move_to(timer.gate.time.nanos_at(deadline), |moved| {
            if moved == Moved::LeftEntry {
                timer.count(|Counts { internals, .. }| {
                    internals.died.add_shared(1);
                    timer.entry_died(internals.died.get());
                });
            }
        });
        moved.is_ok()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
