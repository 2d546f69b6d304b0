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
