//! Internal timeouts: timeouts that the crate schedules for itself. The idle manager uses them.
//!
//! Users do not see them: no limit refuses one, no count and no metric includes it, and no stop returns
//! it. When the timer ends, the worker's thread cancels the internal timeouts. No other thread cancels
//! them, even if it has emptied the slots, because a stop with a limit must not wait for their tasks.
//! The worker's thread also wakes the wakers of [`future`](crate::future), for the same reason.
//!
//! All internal timeouts of a timer are in one arena, which belongs to no thread. Their chunk marks them
//! as internal, so they cost the users' timeouts nothing. A lock guards the owner of the arena. It may be
//! taken under a lock of the layers above, and the registry's locks may be taken under it. No task runs
//! or is dropped under it.

use super::erased::Erased;
use super::handle::Timeout;
use super::schedule::{Admit, Refusal, refused, schedule_in};
use super::task::TimerTask;
use crate::base::sync::{Arc, Mutex};
use crate::intake::{Moved, Owner, Registry, TakenBack};
use crate::metrics::Counts;
use std::time::Instant;

/// The internal timeouts of one timer.
pub(crate) struct Internals(Mutex<State>);

struct State {
    /// The owner of their arena. `None` before the first timeout and after the end.
    owner: Option<Owner<Erased>>,
    /// The tasks that the end of the timer has taken out of the slots, for the worker's thread.
    left: Vec<(Erased, Timeout)>,
}

impl Internals {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { owner: None, left: Vec::new() }))
    }

    pub(crate) fn schedule<T: TimerTask>(
        &self,
        registry: &Arc<Registry<Erased>>,
        task: T,
        deadline: u64,
        admit: Admit,
    ) -> Result<Internal, (T, Refusal)> {
        let mut state = self.0.lock();
        if state.owner.is_none() && !registry.gate.is_closed() {
            state.owner = Owner::of_internals(registry);
        }
        match &mut state.owner {
            Some(owner) => {
                schedule_in(&registry.context, owner, task, deadline, admit).map(Internal)
            }
            None => Err((task, refused(&registry.context, true))),
        }
    }

    /// Stores the tasks that the end of the timer has taken out of the slots, for `end`: internal ones,
    /// and those that only wake a waker.
    pub(crate) fn leave(&self, left: Vec<(Erased, Timeout)>) {
        self.0.lock().left = left;
    }

    /// Cancels the timeouts that `leave` stored. The worker's thread calls it after the timer has ended.
    pub(crate) fn end(&self) {
        let ended = {
            let mut state = self.0.lock();
            (state.owner.take(), std::mem::take(&mut state.left))
        };
        let (owner, left) = ended; // the lock is released: the tasks may take it
        drop(owner);
        left.into_iter().for_each(|(task, timeout)| timeout.tell_cancelled(task));
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
        let Some(TakenBack { payload, filed, .. }) = self.0.take_back() else { return };
        let timer = &self.0.pin().chunk().timer;
        timer.count(|Counts { internals, .. }| {
            internals.cancelled.add_shared(1);
            if filed {
                internals.died.add_shared(1);
                timer.entry_died(internals.died.get());
            } else {
                internals.unqueued.add_shared(1);
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
                    internals.renewed.add_shared(1);
                    internals.died.add_shared(1);
                    timer.entry_died(internals.died.get());
                });
            }
        });
        moved.is_ok()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::intake::context::Context;
    use crate::intake::{Emptied, Phase, SLOTS};
    use std::collections::HashSet;

    const DUE: u64 = 1 << 40;

    fn timer() -> (Arc<Registry<Erased>>, Internals) {
        (Arc::new(Registry::new(Context::of_this_thread(None, 8))), Internals::new())
    }

    /// Schedules a task that captures `held`.
    fn schedule(
        (registry, internals): &(Arc<Registry<Erased>>, Internals),
        held: &Arc<()>,
    ) -> Option<Internal> {
        let held = held.clone();
        internals.schedule(registry, move || drop(held), DUE, Admit::Once).ok()
    }

    #[test]
    fn rule_01_no_public_count_shows_an_internal_timeout() {
        let (timer, held) = (timer(), Arc::new(()));
        let context = timer.0.context.clone();
        let assert_nothing = || {
            let m = context.counts.snapshot();
            let counts = [m.scheduled, m.rescheduled, m.cancelled, m.rejected, m.queue_depth];
            assert_eq!((counts, m.pending, context.counts.totals().pending()), ([0; 5], 0, 0));
        };
        let timeout = schedule(&timer, &held).expect("the timer is open");
        assert_nothing();
        assert!(timeout.reschedule_at(context.gate.time.instant_at(DUE / 2)));
        assert_nothing();
        assert!(timeout.is_alive());
        timeout.cancel();
        timeout.cancel();
        assert!(!timeout.is_alive() && !timeout.reschedule_at(context.gate.time.instant_at(DUE)));
        assert_nothing();
        context.gate.close();
        assert!(schedule(&timer, &held).is_none());
        assert_nothing();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    /// Emptying takes them out of their slots, and `end` drops their tasks. No stop returns them.
    #[test]
    fn the_end_of_the_timer_cancels_internal_timeouts() {
        let (timer, held) = (timer(), Arc::new(()));
        let (registry, internals) = &timer;
        let timeouts: Vec<_> = (0..100).filter_map(|_| schedule(&timer, &held)).collect();
        registry.gate.close();
        let mut left = Vec::new();
        registry.empty(Phase::Returned, |mut emptied| {
            for taken in emptied.offsets().map(|offset| emptied.take(offset).map(Emptied::take)) {
                let (task, pin) = taken.expect("each is taken once");
                assert!(pin.chunk().internal && pin.slot().phase() == Phase::Cancelled);
                left.push((task, Timeout::from(pin)));
            }
        });
        internals.leave(left);
        assert_eq!((timeouts.len(), Arc::strong_count(&held)), (100, 101));
        internals.end();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(!timeouts.iter().any(Internal::is_alive));
        assert_eq!(registry.context.counts.snapshot().cancelled, 0);
    }

    #[test]
    fn rule_04_slots_of_internal_timeouts_are_reused() {
        let (timer, held) = (timer(), Arc::new(()));
        let mut slots = HashSet::new();
        for _ in 0..1000 {
            let timeout = schedule(&timer, &held).expect("the timer is open");
            slots.insert(timeout.0.index());
            timeout.cancel();
        }
        assert!(slots.len() <= 2 * SLOTS, "{} slots for one timeout", slots.len());
    }

    #[test]
    fn no_thread_gets_the_arena_of_internal_timeouts() {
        let timer = timer();
        schedule(&timer, &Arc::new(())).expect("the timer is open").cancel();
        timer.1.end();
        assert!(Owner::enter(&timer.0).is_some_and(|owner| !owner.arena.internal));
    }
}
