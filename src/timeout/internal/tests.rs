use super::*;
use crate::base::sync::Arc;
use crate::intake::{Emptied, Phase, SLOTS};
use crate::timeout::payload::{Shared, SharedRef};
use std::collections::HashSet;

const DUE: u64 = 1 << 40;

fn timer() -> (SharedRef, Internals) {
    (Shared::of_this_thread(None, 8).0, Internals::new())
}

/// Schedules a task that captures `held`.
fn schedule((shared, internals): &(SharedRef, Internals), held: &Arc<()>) -> Option<Internal> {
    let held = held.clone();
    internals.schedule(&Link::to(shared), move || drop(held), DUE, Admit::Once).ok()
}

#[test]
fn rule_01_no_public_count_shows_an_internal_timeout() {
    let (timer, held) = (timer(), Arc::new(()));
    let shared = timer.0.clone();
    let assert_nothing = || {
        let m = shared.counts.snapshot();
        let counts = [m.scheduled, m.rescheduled, m.cancelled, m.rejected];
        assert_eq!((counts, m.pending, shared.counts.pending()), ([0; 4], 0, 0));
    };
    let timeout = schedule(&timer, &held).expect("the timer is open");
    assert_nothing();
    assert!(timeout.reschedule_at(shared.gate.time.instant_at(DUE / 2)));
    assert_nothing();
    assert!(timeout.is_alive());
    timeout.cancel();
    timeout.cancel();
    assert!(!timeout.is_alive() && !timeout.reschedule_at(shared.gate.time.instant_at(DUE)));
    assert_nothing();
    shared.gate.close();
    assert!(schedule(&timer, &held).is_none());
    assert_nothing();
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Emptying takes them out of their slots. No stop returns them.
#[test]
fn the_end_of_the_timer_cancels_internal_timeouts() {
    let (timer, held) = (timer(), Arc::new(()));
    let (shared, internals) = &timer;
    let timeouts: Vec<_> = (0..100).filter_map(|_| schedule(&timer, &held)).collect();
    shared.gate.close();
    let mut left = Vec::new();
    shared.empty(Phase::Returned, |emptied| left.push(emptied));
    for pin in left.iter().map(Emptied::pin) {
        assert!(pin.chunk().internal && pin.slot().phase() == Phase::Cancelled);
    }
    assert_eq!((timeouts.len(), Arc::strong_count(&held)), (100, 101));
    internals.end();
    drop(left);
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(!timeouts.iter().any(Internal::is_alive));
    assert_eq!(shared.counts.snapshot().cancelled, 0);
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
fn no_thread_gets_a_chunk_of_internal_timeouts() {
    let timer = timer();
    schedule(&timer, &Arc::new(())).expect("the timer is open").cancel();
    timer.1.end();
    assert!(Owner::<Erased>::enter(&timer.0).is_some_and(|owner| !owner.chunk().internal));
}
