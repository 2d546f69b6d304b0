//! The pure wheel: worked placements, and random histories against a sorted map.
//!
//! Rules 7 and 8 on the structure alone; the timer's own tests are in `schedule.rs`.

use proptest::prelude::*;
use std::collections::BTreeMap;
use wheelwork::wheel::{HashedWheel, Key};

fn expire(wheel: &mut HashedWheel<u64>, now: u64) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    assert_eq!(wheel.expire(now, |tick, value| out.push((tick, value))), out.len());
    out
}

/// Netty's arithmetic: 64 buckets, 10,000 ticks away: bucket 16, met 157 times before it runs.
#[test]
fn a_worked_placement() {
    let mut wheel = HashedWheel::new(60).unwrap();
    assert_eq!(wheel.ticks_per_wheel(), 64, "rounded up");
    let key = wheel.insert(10_000, 7);
    assert_eq!((wheel.remaining_rounds(key), wheel.bucket(key)), (Some(156), Some(16)));
    for met in 0..157 {
        let tick = 16 + 64 * met;
        let due = expire(&mut wheel, tick);
        assert_eq!(due.len(), usize::from(met == 156), "at {tick}");
        let rounds = (met < 156).then(|| (10_000 - (tick + 1)) / 64);
        assert_eq!(wheel.remaining_rounds(key), rounds);
    }
    assert_eq!((wheel.len(), wheel.get(key)), (0, None));
    assert_eq!(wheel.remove(key), None);
}

#[test]
fn an_overdue_timeout_goes_into_the_current_bucket() {
    let mut wheel = HashedWheel::new(8).unwrap();
    expire(&mut wheel, 99);
    assert_eq!(wheel.current_tick(), 100);
    let key = wheel.insert(3, 3);
    assert_eq!((wheel.bucket(key), wheel.remaining_rounds(key)), (Some(4), Some(0)));
    assert_eq!(wheel.next_expiry(), Some(100));
    assert_eq!(expire(&mut wheel, 99), [], "time does not go back");
    assert_eq!(expire(&mut wheel, 100), [(3, 3)]);
}

#[test]
fn a_key_outlives_its_value_and_finds_nothing() {
    let mut wheel = HashedWheel::new(8).unwrap();
    let first = wheel.insert(5, 1);
    assert_eq!(wheel.remove(first), Some(1));
    let second = wheel.insert(5, 2); // in the same slot
    assert_eq!((wheel.get(first), wheel.get(second)), (None, Some(&2)));
    assert_eq!(wheel.remove(first), None);
    assert_eq!(expire(&mut wheel, 10), [(5, 2)]);
}

#[test]
fn a_callback_that_panics_loses_nothing_else() {
    let mut wheel = HashedWheel::new(8).unwrap();
    for n in 0..5u64 {
        wheel.insert(n / 2, n);
    }
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wheel.expire(9, |_, n| assert!(n != 1, "a bad callback"));
    }));
    assert!(caught.is_err());
    assert_eq!(wheel.len(), 3);
    assert_eq!(expire(&mut wheel, 10), [(1, 2), (1, 3), (2, 4)]);
}

#[test]
fn the_end_of_time_does_not_overflow() {
    for size in [1, 512] {
        let mut wheel = HashedWheel::new(size).unwrap();
        wheel.insert(u64::MAX, 1);
        wheel.insert(u64::MAX - 1, 2);
        assert_eq!(wheel.next_expiry(), Some(u64::MAX - 1));
        assert_eq!(expire(&mut wheel, u64::MAX - 2), []);
        wheel.insert(u64::MAX - 1, 3);
        assert_eq!(expire(&mut wheel, u64::MAX - 1), [(u64::MAX - 1, 2), (u64::MAX - 1, 3)]);
        wheel.insert(0, 4);
        assert_eq!(wheel.drain(), [(0, 4), (u64::MAX, 1)]);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Remove(usize),
    Advance(u64),
    Drain,
}

/// Delays and jumps within a turn, over some turns, and beyond what a bucket's entry can count.
fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..20, 3 => 0u64..500, 1 => 0u64..70_000, 1 => 0u64..2_000_000]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => distance().prop_map(Step::Insert),
        4 => any::<usize>().prop_map(Step::Remove),
        4 => distance().prop_map(Step::Advance),
        1 => Just(Step::Drain),
    ]
}

/// `PROPTEST_CASES` makes it longer.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 400 };
    ProptestConfig { cases, ..default }
}

proptest! {
    #![proptest_config(config())]

    /// What expires, in what order, and what is found, is what a map sorted by tick and then by
    /// the order of insertion says.
    #[test]
    fn histories_agree_with_a_sorted_map(
        size in prop_oneof![Just(1usize), Just(2), Just(8), Just(64), Just(512)],
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut wheel = HashedWheel::new(size).unwrap();
        let mut oracle: BTreeMap<(u64, u64), Key> = BTreeMap::new();
        let (mut keys, mut now): (Vec<(Key, u64, u64)>, u64) = (Vec::new(), 0);
        for (id, step) in (0u64..).zip(steps) {
            match step {
                Step::Insert(delay) => {
                    let deadline = now + delay;
                    let key = wheel.insert(deadline, id);
                    // What is overdue runs with the current tick, after what is filed there.
                    let tick = deadline.max(wheel.current_tick());
                    oracle.insert((tick, id), key);
                    keys.push((key, tick, id));
                }
                Step::Remove(pick) if !keys.is_empty() => {
                    let (key, tick, id) = keys[pick % keys.len()];
                    let expected = oracle.remove(&(tick, id)).map(|_| id);
                    prop_assert_eq!(wheel.get(key), expected.as_ref());
                    prop_assert_eq!(wheel.remove(key), expected);
                }
                Step::Remove(_) => {}
                Step::Advance(by) => {
                    now += by;
                    let later = oracle.split_off(&(now + 1, 0));
                    let due = std::mem::replace(&mut oracle, later);
                    let expected: Vec<u64> = due.into_keys().map(|(_, id)| id).collect();
                    let got: Vec<u64> = expire(&mut wheel, now).into_iter().map(|(_, v)| v).collect();
                    prop_assert_eq!(got, expected);
                    prop_assert_eq!(wheel.current_tick(), now + 1);
                }
                Step::Drain => {
                    let mut got: Vec<u64> = wheel.drain().into_iter().map(|(_, v)| v).collect();
                    let mut expected: Vec<u64> = oracle.keys().map(|&(_, id)| id).collect();
                    oracle.clear();
                    got.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(got, expected);
                }
            }
            prop_assert_eq!(wheel.len(), oracle.len());
            // Early, never late: a wake-up in vain is allowed, a missed one is not.
            let first = oracle.keys().next().map(|&(tick, _)| tick);
            prop_assert!(first.is_none_or(|tick| wheel.next_expiry().is_some_and(|n| n <= tick)));
        }
    }
}

/// An entry holds 16 bits of its slot's generation, and the slot has been used 65,536 times since.
#[test]
fn a_stale_entry_that_matches_by_chance_fires_nothing_early() {
    let mut wheel = HashedWheel::new(64).unwrap();
    (0..70_000).for_each(|_| _ = wheel.insert(5_000_000, 0)); // so that nothing is swept
    let first = wheel.insert(10, 1);
    wheel.remove(first);
    for _ in 0..65_535 {
        let key = wheel.insert(4_000_000, 2);
        wheel.remove(key);
    }
    wheel.insert(1_000_000, 3);
    assert_eq!(expire(&mut wheel, 10), []);
}

#[test]
fn time_can_end_twice() {
    let mut wheel = HashedWheel::new(8).unwrap();
    wheel.insert(5, 1);
    assert_eq!(expire(&mut wheel, u64::MAX), [(5, 1)]);
    assert_eq!(expire(&mut wheel, u64::MAX), []);
}
