use super::*;
use crate::wheel::{Hashed, Unlimited};
use std::mem::size_of;
use std::task::Waker;

/// There are at most as many dead entries as values and buckets together, plus a constant.
#[test]
fn rule_04_removals_do_not_pile_up() {
    let mut wheel = Wheel::hashed(8).unwrap();
    let kept: Vec<Key> = (0..100).map(|n| wheel.insert(5 + n, n)).collect();
    for n in 0..10_000 {
        let key = wheel.insert(1_000_000, n);
        assert_eq!(wheel.remove(key), Some(n));
    }
    let entries = entries(&mut wheel);
    assert!(entries <= kept.len() + DEAD_ALLOWED + kept.len() + 8 + 1, "{entries}");
    assert!(entries > kept.len() + DEAD_ALLOWED, "a sweep for each removal costs too much");
    assert!(kept.iter().all(|&key| wheel.get(key).is_some()));
    assert_eq!(wheel.expire(104, |_, _| ()), 100);
}

/// The current user of a slot does not keep alive the entries of its previous users.
#[test]
fn rule_04_removals_do_not_pile_up_while_their_slots_are_in_use() {
    let mut wheel = Wheel::hashed(8).unwrap();
    let mut keys = [wheel.insert(1_000_000, 0), wheel.insert(1_000_000, 1)];
    for n in 0..10_000 {
        assert!(wheel.remove(keys[n % 2]).is_some());
        keys[n % 2] = wheel.insert(1_000_000, n);
    }
    assert!(entries(&mut wheel) <= 2 + DEAD_ALLOWED + 2 + 8 + 1);
}

/// A reschedule to an earlier tick leaves a dead entry, and one to a later tick leaves none.
#[test]
fn rule_04_reschedules_do_not_pile_up() {
    let mut wheel = Wheel::hashed(8).unwrap();
    let key = wheel.insert(10, 0);
    (0..1000).for_each(|n| assert!(wheel.reschedule(key, 20 + n)));
    assert_eq!(entries(&mut wheel), 1);
    for n in (1..10_000).rev() {
        assert!(wheel.reschedule(key, 1_000_000) && wheel.reschedule(key, 10_000 + n));
    }
    assert!(entries(&mut wheel) <= 1 + DEAD_ALLOWED + 1 + 8 + 1);
}

/// An insertion beyond the pass does not change the time within it.
#[test]
fn rule_07_a_linux_wheel_keeps_the_order_of_ticks_in_a_pass() {
    let mut wheel = Wheel::linux();
    wheel.insert(10, "X");
    wheel.insert(20, "Y");
    let mut order = Vec::new();
    wheel.expire(1000, |wheel, expired| {
        order.push(expired.value);
        if expired.value == "X" {
            wheel.insert(5000, "far");
            wheel.insert(500, "Z");
        }
    });
    assert_eq!(order, ["X", "Y", "Z"]);
    assert_eq!(wheel.len(), 1);
}

/// A flush with `u64::MAX` ends the time of a wheel, so what comes afterwards is never due.
#[test]
fn rule_10_nothing_is_due_after_the_last_tick() {
    fn check<S: Unlimited>(mut wheel: Wheel<u64, S>) {
        wheel.insert(3, 0);
        assert_eq!(wheel.expire(u64::MAX, |_, _| ()), 1);
        let live = wheel.insert(5, 0);
        assert_eq!(wheel.next_expiry(), None);
        for n in 0..100 {
            let key = wheel.insert(5, n);
            assert_eq!(wheel.remove(key), Some(n));
        }
        assert_eq!((wheel.next_expiry(), wheel.pop(u64::MAX)), (None, None));
        assert_eq!(wheel.remove(live), Some(0));
    }
    check(Wheel::hashed(1).unwrap());
    check(Wheel::hashed(64).unwrap());
    check(Wheel::hierarchical(8).unwrap());
    check(Wheel::linux_classic());
    check(Wheel::linux());
}

/// Not in a pass either. A simulation is a single pass, up to the end of its time.
#[test]
fn rule_04_removals_do_not_pile_up_in_a_pass() {
    let mut wheel = Wheel::hashed(8).unwrap();
    wheel.insert(0, 0);
    assert!(wheel.pop(1_000_000).is_some());
    for tick in [500_000, 2_000_000] {
        for n in 0..10_000 {
            let key = wheel.insert(tick, n);
            assert_eq!(wheel.remove(key), Some(n));
        }
        assert!(wheel.filing.entries() < 500, "{} of tick {tick}", wheel.filing.entries());
    }
}

/// Not where they wait for the end of the pass to be moved down either: each further removal would sweep in vain.
#[test]
fn rule_04_removals_of_what_is_moved_down_do_not_pile_up_in_a_pass() {
    let mut wheel = Wheel::hierarchical(8).unwrap();
    wheel.insert(64, 0);
    let keys: Vec<Key> = (0..1000).map(|n| wheel.insert(127, n)).collect();
    assert!(wheel.pop(64).is_some());
    keys[1..].iter().for_each(|&key| assert!(wheel.remove(key).is_some()));
    assert!(wheel.filing.entries() <= 1 + DEAD_ALLOWED + 1, "{}", wheel.filing.entries());
    assert!(wheel.pop(64).is_none());
    assert_eq!(wheel.pop(127).map(|expired| expired.key), Some(keys[0]));
}

/// Otherwise each removal would sweep in vain.
#[test]
fn dead_entries_that_are_coming_out_are_no_reason_to_sweep() {
    let mut wheel = Wheel::hashed(8).unwrap();
    let keys: Vec<Key> = (0..1000).map(|n| wheel.insert(5, n)).collect();
    assert!(wheel.pop(5).is_some());
    keys[1..].iter().for_each(|&key| assert!(wheel.remove(key).is_some()));
    assert_eq!((wheel.filing.entries(), wheel.filing.filing.entries()), (0, 999));
    assert!(wheel.pop(5).is_none());
    assert_eq!(wheel.filing.filing.entries(), 0);
}

/// Otherwise a younger value that has its slot and its number comes out in its place.
#[test]
fn rule_07_a_dead_entry_of_a_chunk_that_was_given_back_stays_dead() {
    let mut wheel = Wheel::hashed(1 << 14).unwrap(); // so many buckets that nothing is swept
    let keys: Vec<_> = (0..40 * 64).map(|_| wheel.insert(1000, 0)).collect();
    for tick in [500, 400] {
        keys.iter().for_each(|&key| assert!(wheel.reschedule(key, tick)));
    }
    keys.into_iter().for_each(|key| _ = wheel.remove(key));
    wheel.insert(400, 1);
    (0..32 * 64 - 1).for_each(|_| _ = wheel.insert(1000, 0));
    wheel.insert(400, 2);
    assert_eq!(wheel.pop(400).map(|expired| expired.value), Some(1));
}

#[test]
fn rule_04_a_value_takes_16_bytes_besides_itself() {
    assert_eq!(size_of::<slab::Slot<Item<u64>>>(), 16 + size_of::<u64>());
    assert_eq!(size_of::<slab::Slot<Item<Waker>>>(), 16 + size_of::<Waker>());
}

fn entries<T>(wheel: &mut Wheel<T, Hashed>) -> usize {
    let mut entries = 0;
    wheel.filing.sweep(usize::MAX, |_| {
        entries += 1;
        true
    });
    entries
}
