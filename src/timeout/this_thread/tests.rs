use super::*;
use crate::intake::context::Context;

fn registry() -> Arc<Registry<Erased>> {
    Arc::new(Registry::new(Context::of_this_thread(None, 8)))
}

fn enter(registry: &Arc<Registry<Erased>>) {
    assert!(with_owner(registry, |_| ()).is_some());
}

#[test]
fn rule_04_a_thread_gives_up_its_arena_of_a_timer_that_has_ended() {
    let first = registry();
    enter(&first);
    let held = |registry: &Registry<Erased>| {
        OWNERS.with_borrow(|Owners { last, others }| {
            last.iter().chain(others).any(|owner| is_in(owner, &registry.gate))
        })
    };
    assert!(held(&first));
    let second = registry();
    enter(&second);
    assert!(held(&first) && held(&second));
    first.gate.close();
    let third = registry();
    enter(&third);
    assert!(!held(&first) && held(&second), "it entered another timer");
    forget(&second.gate);
    assert!(!held(&second) && held(&third));
}

/// A thread finds its arena of each timer, whichever of them it used last, and gives up those of timers
/// that have ended.
#[test]
fn rule_04_a_thread_keeps_its_arenas_of_many_timers_apart() {
    let timers: Vec<_> = (0..2000).map(|_| registry()).collect();
    let arena_in = |timer| with_owner(timer, |owner| Arc::as_ptr(&owner.arena)).unwrap();
    let arenas: Vec<_> = timers.iter().map(arena_in).collect();
    for stride in [1, 7, 1999] {
        for n in (0..2000).map(|n| n * stride % 2000) {
            assert_eq!(arena_in(&timers[n]), arenas[n]);
            assert!(with_owner(&timers[n], |owner| is_in(owner, &timers[n].gate)).unwrap());
        }
    }
    let count = || OWNERS.with_borrow(|owners| 1 + owners.others.len());
    assert_eq!(count(), 2000);
    timers.iter().step_by(2).for_each(|timer| timer.gate.close());
    enter(&registry());
    assert_eq!(count(), 1000 + 1, "it entered another timer");
    for (n, timer) in timers.iter().enumerate().filter(|(n, _)| n % 2 == 1) {
        assert_eq!(arena_in(timer), arenas[n]);
        forget(&timer.gate); // none is the last one then
        let next = (n + 2) % 2000;
        assert!(next == 1 || arena_in(&timers[next]) == arenas[next]);
    }
    assert_eq!(OWNERS.with_borrow(|owners| owners.others.len()), 1);
}
