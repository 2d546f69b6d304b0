//! The slot that a `Sleep` holds for life.
//!
//! The slot also leads the future to its timer: to the clock, and to whether the timer is closed. So a
//! future has no counted reference to its timer. Such a count would be a cache line that all threads with
//! futures share.
//!
//! A thread arms only slots of its owned chunk. If the slot lies elsewhere, or if the worker still has a
//! pin on it, the thread takes another slot and gives this one back.

use super::erased::Erased;
use super::handle::Timeout;
use super::task::TimerTask;
use super::this_thread::{with_owner, with_owner_of};
use crate::base::sync::Arc;
use crate::intake::context::Gate;
use crate::intake::{Owner, Pin, Registry, Runs};

/// A reserved slot, in which at most one task waits at a time. It is *unused* before its first task. Its
/// drop detaches the task.
pub(crate) struct Reservation(Timeout);

impl Reservation {
    #[inline]
    pub(crate) fn new(registry: &Arc<Registry<Erased>>) -> Self {
        let reserved = with_owner(registry, |owner| owner.has_room().then(|| owner.reserve()));
        Self(Timeout::from(reserved.flatten().unwrap_or_else(|| registry.spare())))
    }

    #[inline]
    pub(crate) fn gate(&self) -> &Gate {
        self.0.gate()
    }

    /// The handle to the last task.
    #[inline]
    pub(crate) fn timeout(&self) -> &Timeout {
        &self.0
    }

    /// Schedules a task that only wakes a waker. No task may be pending here. Ignores the limit, because
    /// a future could not report a refusal. If the timer is closed or has no free slot, returns the task.
    #[inline]
    pub(crate) fn arm<T: TimerTask>(&mut self, task: T, deadline: u64) -> Result<(), T> {
        const { assert!(T::KIND.only_wakes) };
        if self.gate().is_closed() {
            return Err(task);
        }
        self.gate().begins_again();
        let mut task = Some(task);
        let other =
            with_owner_of(self.0.pin_mut(), |owner, kept| arm_in(owner, kept, &mut task, deadline));
        if let Some(task) = task {
            return self.arm_without_owner(task, deadline);
        }
        self.was_armed(other.flatten());
        Ok(())
    }

    /// Schedules without a cached owner: on a thread that is ending, or in a timer without room.
    #[cold]
    fn arm_without_owner<T: TimerTask>(&mut self, task: T, deadline: u64) -> Result<(), T> {
        let registry = Registry::of(&self.0.pin().chunk().timer);
        if registry.is_none() {
            // The timer is gone, so it is closed. This makes sure that the next poll sees that.
            self.gate().close();
        }
        let owner = registry.and_then(|registry| Owner::enter(&registry));
        let mut task = Some(task);
        let kept = self.0.pin_mut();
        let other = owner.and_then(|mut owner| arm_in(&mut owner, kept, &mut task, deadline));
        if let Some(task) = task {
            let timer = &self.0.pin().chunk().timer;
            timer.count(|counts| counts.by_others.rejected.add_shared(1));
            self.gate().ended(1);
            return Err(task);
        }
        self.was_armed(other);
        Ok(())
    }

    /// Keeps the handle if the task is in another slot. If the timer was closed meanwhile, cancels the
    /// task, as the end of the timer does (see `worker/end`).
    #[inline]
    fn was_armed(&mut self, other: Option<Timeout>) {
        if let Some(other) = other {
            self.0 = other;
        }
        if self.gate().is_closed() {
            self.0.cancel();
        }
    }
}

/// Arms the kept slot for a task, or another slot, whose handle it returns. If no slot is free, leaves the
/// task.
#[inline]
fn arm_in<T: TimerTask>(
    owner: &mut Owner<Erased>,
    kept: &mut Pin<Erased>,
    task: &mut Option<T>,
    deadline: u64,
) -> Option<Timeout> {
    let deadline = owner.arena.timer.gate.not_overdue(deadline);
    let keeps = owner.arm_again(kept, || task.take().map(Erased::new), deadline, Runs::Once);
    let other = if keeps {
        None
    } else {
        let task = owner.has_room().then(|| task.take()).flatten()?;
        Some(owner.arm(Erased::new(task), deadline, Runs::Once))
    };
    owner.chunk().announce_new(deadline);
    other.map(Timeout::armed)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::next::Next;
    use super::super::run::Run;
    use super::super::task::Kind;
    use super::super::this_thread::forget;
    use super::*;
    use crate::intake::context::Context;
    use crate::intake::{Phase, SLOTS};
    use std::collections::HashSet;
    use std::ops::Deref;

    const DUE: u64 = 1 << 40;

    struct Wake;

    impl TimerTask for Wake {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }

        const KIND: Kind = Kind::WAKE;
    }

    /// A registry that the thread leaves after the test, so it gives back what it has collected (see
    /// `intake/pinned`).
    struct Left(Arc<Registry<Erased>>);

    impl Deref for Left {
        type Target = Arc<Registry<Erased>>;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    impl Drop for Left {
        fn drop(&mut self) {
            forget(&self.context.gate);
        }
    }

    fn registry() -> Left {
        Left(Arc::new(Registry::new(Context::of_this_thread(None, 8))))
    }

    fn armed(reservation: &mut Reservation) -> u32 {
        assert!(reservation.arm(Wake, DUE).is_ok());
        reservation.0.index()
    }

    #[test]
    fn a_task_waits_in_the_reserved_slot_again_and_again() {
        let registry = registry();
        let mut reservation = Reservation::new(&registry);
        let reserved = reservation.0.index();
        for _ in 0..3 {
            assert_eq!(armed(&mut reservation), reserved);
            assert!(reservation.0.is_pending() && reservation.0.cancel());
        }
        let metrics = registry.context.counts.snapshot();
        assert_eq!((metrics.scheduled, metrics.cancelled, metrics.pending), (3, 3, 0));
    }

    /// Another handle has a pin on the slot, or the slot lies in another thread's chunk.
    #[test]
    fn a_task_waits_elsewhere_if_the_slot_is_not_the_callers_alone() {
        let registry = registry();
        let mut reservation = Reservation::new(&registry);
        let first = armed(&mut reservation);
        let clone = reservation.0.clone();
        assert!(clone.cancel());
        assert_ne!(armed(&mut reservation), first);
        assert!(clone.is_cancelled() && reservation.0.is_pending());
        let mut unused = Reservation::new(&registry);
        let reserved = unused.0.index();
        let other = std::thread::spawn(move || (armed(&mut unused), unused)).join().unwrap();
        assert_ne!(other.0, reserved);
        assert!(other.1.0.cancel());
        assert_eq!(registry.context.counts.totals().pending(), 1);
    }

    #[test]
    fn rule_04_unused_slots_are_reused() {
        let registry = registry();
        let mut slots = HashSet::new();
        for round in 0..50 {
            let unused: Vec<_> = (0..5 * SLOTS).map(|_| Reservation::new(&registry)).collect();
            slots.extend(unused.iter().map(|reservation| reservation.0.index()));
            let end = move || drop(unused);
            if round % 2 == 0 { end() } else { std::thread::spawn(end).join().unwrap() }
        }
        assert!(slots.len() <= 7 * SLOTS, "{} slots for {} futures", slots.len(), 5 * SLOTS);
    }

    /// A chunk that was made after the end of its timer, and the spare chunk of a timer without room.
    #[test]
    fn rule_04_a_reserved_slot_keeps_its_chunk_and_nothing_else_does() {
        for full in [false, true] {
            let registry = registry();
            if full {
                registry.use_up_chunks();
            } else {
                registry.gate.close();
                registry.empty(Phase::Cancelled, |_| ());
            }
            let mut reservation = Reservation::new(&registry);
            assert!(reservation.arm(Wake, DUE).is_err());
            let context = Arc::downgrade(&registry.context);
            let gate = Arc::downgrade(&registry.gate);
            forget(&registry.gate);
            drop(registry);
            assert_eq!(context.strong_count(), 0);
            assert!(gate.strong_count() > 0, "the chunk has the gate");
            assert_eq!(reservation.gate().is_closed(), !full);
            drop(reservation);
            assert_eq!(gate.strong_count(), 0);
        }
    }

    /// The timer is closed after the slot is armed.
    #[test]
    fn rule_01_a_task_armed_in_a_closed_timer_is_cancelled() {
        let registry = registry();
        let mut reservation = Reservation::new(&registry);
        let mut owner = Owner::enter(&registry).expect("there is room");
        let other = arm_in(&mut owner, reservation.0.pin_mut(), &mut Some(Wake), DUE);
        registry.gate.close();
        reservation.was_armed(other);
        assert!(reservation.0.is_cancelled());
        let metrics = registry.context.counts.snapshot();
        assert_eq!((metrics.scheduled, metrics.cancelled, metrics.queue_depth), (1, 1, 0));
        assert!(reservation.arm(Wake, DUE).is_err());
    }
}
