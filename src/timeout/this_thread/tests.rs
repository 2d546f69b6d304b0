use super::*;
use crate::timeout::payload::{Shared, SharedRef};

fn shared() -> SharedRef {
    Shared::of_this_thread(None, 8).0
}

fn enter(shared: &SharedRef) {
    assert!(with_owner(&Link::to(shared), |_| ()).is_some());
}

#[test]
fn a_count_includes_what_was_just_counted() {
    let shared = shared();
    enter(&shared);
    let counts = [(); 3].map(|()| count(&Link::to(&shared), |tally| &tally.died));
    assert_eq!(counts, [1, 2, 3]);
}

#[test]
fn rule_04_a_thread_drops_its_owner_in_a_timer_that_has_ended() {
    let first = shared();
    enter(&first);
    let held = |shared: &Shared| {
        OWNERS.with_borrow(|Owners { last, others }| {
            last.iter().chain(others).any(|owner| is_in(owner, &shared.gate))
        })
    };
    assert!(held(&first));
    let second = shared();
    enter(&second);
    assert!(held(&first) && held(&second));
    first.gate.close();
    let third = shared();
    enter(&third);
    assert!(!held(&first) && held(&second), "it entered another timer");
    forget(&second.gate);
    assert!(!held(&second) && held(&third));
}

#[test]
fn rule_04_a_thread_drops_the_owner_that_it_used_last_too() {
    let first = shared();
    enter(&first);
    first.gate.close();
    enter(&shared());
    let owners = OWNERS.with_borrow(|owners| owners.last.iter().chain(&owners.others).count());
    assert_eq!(owners, 1, "it entered another timer");
}

/// A thread finds its owner in each timer, whichever of them it used last, and drops those in timers
/// that have ended.
#[test]
fn rule_04_a_thread_keeps_its_owners_in_many_timers_apart() {
    let timers: Vec<_> = (0..2000).map(|_| shared()).collect();
    let home_in = |timer| with_owner(&Link::to(timer), |owner| Arc::as_ptr(&owner.home)).unwrap();
    let homes: Vec<_> = timers.iter().map(home_in).collect();
    for stride in [1, 7, 1999] {
        for n in (0..2000).map(|n| n * stride % 2000) {
            assert_eq!(home_in(&timers[n]), homes[n]);
            assert!(
                with_owner(&Link::to(&timers[n]), |owner| is_in(owner, &timers[n].gate)).unwrap()
            );
        }
    }
    let count = || OWNERS.with_borrow(|owners| 1 + owners.others.len());
    assert_eq!(count(), 2000);
    timers.iter().step_by(2).for_each(|timer| timer.gate.close());
    enter(&shared());
    assert_eq!(count(), 1000 + 1, "it entered another timer");
    for (n, timer) in timers.iter().enumerate().filter(|(n, _)| n % 2 == 1) {
        assert_eq!(home_in(timer), homes[n]);
        forget(&timer.gate); // none is the last one then
        let next = (n + 2) % 2000;
        assert!(next == 1 || home_in(&timers[next]) == homes[next]);
    }
    assert_eq!(OWNERS.with_borrow(|owners| owners.others.len()), 1);
}
