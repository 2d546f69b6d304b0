//! The public wheels alone: random histories against a sorted map, and single cases.
//!
//! `schedule.rs` tests the timer, and `placements.rs` the bucket of each timeout.

#[path = "../benches/wheels/compared.rs"]
mod compared;

use crate::cases::cases;
use compared::{BTree, Heap, OrderedList, SkipList, Timers};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wheelwork::wheel::{Key, Linux, Structure, Unlimited, Wheel};

fn expire<S: Structure>(wheel: &mut Wheel<u64, S>, now: u64) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    assert_eq!(
        wheel.expire(now, |_, expired| out.push((expired.deadline, expired.value))),
        out.len()
    );
    out
}

/// Not even after the memory of its slot was freed and allocated again.
#[test]
fn a_key_never_finds_a_later_value() {
    const MANY: u64 = 5000;
    let mut wheel = Wheel::hashed(8).unwrap();
    assert!(wheel.is_empty());
    let mut keys: Vec<Key> = (0..MANY).map(|n| wheel.insert(9, n)).collect();
    let mut old = keys.clone();
    for key in &mut keys {
        assert!(wheel.remove(*key).is_some());
        *key = wheel.insert(9, 0); // the second use of that slot
    }
    assert!(!wheel.is_empty());
    old.extend(&keys);
    keys.into_iter().for_each(|key| assert!(wheel.remove(key).is_some()));
    let others: Vec<Key> = (0..MANY).map(|n| wheel.insert(9, n)).collect();
    for key in old {
        assert_eq!((wheel.get(key), wheel.deadline(key)), (None, None));
        assert_eq!(wheel.remove(key), None);
    }
    assert!(others.iter().all(|&key| wheel.get(key).is_some()));
}

/// Netty's arithmetic: with 64 buckets, a timeout in 10,000 ticks goes to bucket 16, and runs when
/// the pointer passes that bucket for the 157th time.
#[test]
fn rule_08_a_hashed_timeout_runs_when_its_rounds_are_over() {
    let mut wheel = Wheel::hashed(60).unwrap();
    assert_eq!(wheel.ticks_per_wheel(), 64, "rounded up");
    let key = wheel.insert(10_000, 7);
    assert_eq!((wheel.remaining_rounds(key), wheel.bucket(key)), (Some(156), Some(16)));
    for passed in 0..157 {
        let tick = 16 + 64 * passed;
        let due = expire(&mut wheel, tick);
        assert_eq!(due.len(), usize::from(passed == 156), "at {tick}");
        let rounds = (passed < 156).then(|| (10_000 - (tick + 1)) / 64);
        assert_eq!(wheel.remaining_rounds(key), rounds);
    }
    assert_eq!((wheel.len(), wheel.get(key)), (0, None));
    assert_eq!(wheel.remove(key), None);
}

#[test]
fn an_overdue_timeout_goes_into_the_current_bucket() {
    let mut wheel = Wheel::hashed(8).unwrap();
    expire(&mut wheel, 99);
    assert_eq!(wheel.current_tick(), 100);
    let key = wheel.insert(3, 3);
    assert_eq!((wheel.bucket(key), wheel.remaining_rounds(key)), (Some(4), Some(0)));
    assert_eq!(wheel.next_expiry(), Some(100));
    assert_eq!(expire(&mut wheel, 99), [], "time does not go back");
    assert_eq!(expire(&mut wheel, 100), [(3, 3)]);
}

#[test]
fn an_empty_wheel_is_never_due() {
    let mut wheel = Wheel::hashed(8).unwrap();
    let key = wheel.insert(3, ());
    assert!(wheel.remove(key).is_some());
    assert_eq!(wheel.next_expiry(), None);
    wheel.insert(3, ());
    assert!(wheel.pop(5).is_some());
    assert_eq!(wheel.next_expiry(), None, "the pass has not ended");
}

#[test]
fn a_key_outlives_its_value_and_finds_nothing() {
    key_outlives_value(Wheel::hashed(8).unwrap());
    key_outlives_value(Wheel::hierarchical(2).unwrap());
    key_outlives_value(Wheel::linux_classic());
    key_outlives_value(Wheel::linux());
}

fn key_outlives_value<S: Unlimited>(mut wheel: Wheel<u64, S>) {
    let first = wheel.insert(5, 1);
    assert_eq!(wheel.remove(first), Some(1));
    let second = wheel.insert(5, 2); // in the same slot
    assert_eq!((wheel.get(first), wheel.get(second)), (None, Some(&2)));
    assert_eq!(wheel.remove(first), None);
    assert_eq!(expire(&mut wheel, 10), [(5, 2)]);
}

#[test]
fn rule_05_a_callback_that_panics_loses_no_other_value() {
    panics_lose_nothing(Wheel::hashed(8).unwrap());
    panics_lose_nothing(Wheel::hierarchical(2).unwrap());
    panics_lose_nothing(Wheel::linux_classic());
    panics_lose_nothing(Wheel::linux());
}

fn panics_lose_nothing<S: Unlimited>(mut wheel: Wheel<u64, S>) {
    for n in 0..5u64 {
        wheel.insert(n / 2, n);
    }
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wheel.expire(9, |_, expired| assert!(expired.value != 1, "a bad callback"));
    }));
    assert!(caught.is_err());
    assert_eq!(wheel.len(), 3);
    assert!(wheel.next_expiry().is_some_and(|tick| tick <= 9), "they are due");
    assert_eq!(expire(&mut wheel, 9), [(1, 2), (1, 3), (2, 4)]);
}

#[test]
fn rule_10_ticks_just_before_the_last_one_do_not_overflow() {
    for size in [1, 512] {
        let mut wheel = Wheel::hashed(size).unwrap();
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

/// Delays and jumps within a turn, over some turns, beyond the rounds that a bucket's entry can
/// count, and beyond the reach of the Linux wheels.
fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0u64..20,
        6 => 0u64..500,
        2 => 0u64..70_000,
        2 => 0u64..2_000_000,
        1 => 0u64..1 << 34,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => distance().prop_map(Step::Insert),
        4 => any::<usize>().prop_map(Step::Remove),
        4 => distance().prop_map(Step::Advance),
        1 => Just(Step::Drain),
    ]
}

/// Runs a history on a wheel and on a map sorted by tick and then by the order of insertion. Both
/// must expire the same values in the same order, and find the same keys.
fn agrees_with_a_sorted_map<S: Unlimited>(mut wheel: Wheel<u64, S>, steps: &[Step]) {
    let mut oracle: BTreeMap<(u64, u64), Key> = BTreeMap::new();
    let (mut keys, mut now): (Vec<(Key, u64, u64)>, u64) = (Vec::new(), 0);
    for (id, step) in (0u64..).zip(steps) {
        match *step {
            Step::Insert(delay) => {
                let deadline = now + delay;
                let key = wheel.insert(deadline, id);
                // An overdue value runs in the current tick, after those filed there before it.
                let tick = deadline.max(wheel.current_tick());
                oracle.insert((tick, id), key);
                keys.push((key, tick, id));
            }
            Step::Remove(pick) if !keys.is_empty() => {
                let (key, tick, id) = keys[pick % keys.len()];
                let expected = oracle.remove(&(tick, id)).map(|_| id);
                assert_eq!(wheel.get(key), expected.as_ref());
                assert_eq!(wheel.remove(key), expected);
            }
            Step::Remove(_) => {}
            Step::Advance(by) => {
                now += by;
                let later = oracle.split_off(&(now + 1, 0));
                let due = std::mem::replace(&mut oracle, later);
                let expected: Vec<u64> = due.into_keys().map(|(_, id)| id).collect();
                let got: Vec<u64> = expire(&mut wheel, now).into_iter().map(|(_, v)| v).collect();
                assert_eq!(got, expected);
                assert_eq!(wheel.current_tick(), now + 1);
            }
            Step::Drain => {
                let mut got: Vec<u64> = wheel.drain().into_iter().map(|(_, v)| v).collect();
                let mut expected: Vec<u64> = oracle.keys().map(|&(_, id)| id).collect();
                oracle.clear();
                got.sort_unstable();
                expected.sort_unstable();
                assert_eq!(got, expected);
            }
        }
        assert_eq!(wheel.len(), oracle.len());
        // It may be too early, but never too late.
        let first = oracle.keys().next().map(|&(tick, _)| tick);
        assert!(first.is_none_or(|tick| wheel.next_expiry().is_some_and(|n| n <= tick)));
    }
}

/// The Linux wheel may be late: by one tick, or by at most 8/63 of the delay.
fn agrees_up_to_its_lateness(mut wheel: Wheel<u64, Linux>, steps: &[Step]) {
    /// A live timeout: its key, its deadline, and the last tick in which it may fire.
    type Live = BTreeMap<u64, (Key, u64, u64)>;
    let (mut live, mut keys, mut now): (Live, Vec<(Key, u64)>, u64) = Default::default();
    for (id, step) in (0u64..).zip(steps) {
        match *step {
            Step::Insert(delay) => {
                let deadline = now + delay;
                let key = wheel.insert(deadline, id);
                let last = deadline.max(wheel.current_tick()) + (delay * 8 / 63).max(1);
                live.insert(id, (key, deadline, last));
                keys.push((key, id));
            }
            Step::Remove(pick) if !keys.is_empty() => {
                let (key, id) = keys[pick % keys.len()];
                assert_eq!(wheel.remove(key), live.remove(&id).map(|_| id));
            }
            Step::Remove(_) => {}
            Step::Advance(by) => {
                now += by;
                for (deadline, id) in expire(&mut wheel, now) {
                    let (_, expected, _) = live.remove(&id).expect("it was live");
                    assert!(deadline == expected && deadline <= now, "early");
                }
                assert!(live.values().all(|&(_, _, last)| now < last), "late");
            }
            Step::Drain => {
                let mut got: Vec<u64> = wheel.drain().into_iter().map(|(_, id)| id).collect();
                got.sort_unstable();
                assert_eq!(got, live.keys().copied().collect::<Vec<_>>());
                live.clear();
            }
        }
        assert_eq!(wheel.len(), live.len());
        let last = live.values().map(|&(_, _, last)| last).min();
        assert!(last.is_none_or(|last| wheel.next_expiry().is_some_and(|n| n <= last)));
    }
}

/// The lists and trees that the literature compares wheels with agree with a wheel.
fn compared_agrees_with_a_wheel<T: Timers + Default>(steps: &[Step]) {
    let (mut compared, mut wheel) = (T::default(), Wheel::hierarchical(20).unwrap());
    let (mut keys, mut now) = (Vec::new(), 0u64);
    for (id, step) in (0u64..).zip(steps) {
        match *step {
            // A wheel keeps only the order of insertion for overdue values, so there are none here.
            Step::Insert(delay) => {
                let deadline = now + delay.max(1);
                keys.push((compared.insert(deadline, id), wheel.insert(deadline, id)));
            }
            Step::Remove(pick) if !keys.is_empty() => {
                let (key, other) = keys[pick % keys.len()];
                assert_eq!(compared.cancel(key), wheel.remove(other));
            }
            Step::Advance(by) => {
                now += by;
                let mut got = Vec::new();
                compared.expire(now, |deadline, id| got.push((deadline, id)));
                assert_eq!(got, expire(&mut wheel, now));
            }
            Step::Remove(_) | Step::Drain => {}
        }
        assert!(wheel.is_empty() || compared.next_expiry().is_some());
    }
}

/// The simple wheel refuses all delays of a turn or more, and agrees with a hashed wheel on the
/// others.
fn agrees_within_a_turn(size: usize, steps: &[Step]) {
    let (mut simple, mut hashed) = (Wheel::simple(size).unwrap(), Wheel::hashed(size).unwrap());
    let (mut keys, mut now) = (Vec::new(), 0u64);
    for (id, step) in (0u64..).zip(steps) {
        match *step {
            Step::Insert(delay) => match simple.insert(now + delay, id) {
                Ok(key) => keys.push((key, hashed.insert(now + delay, id))),
                Err(refused) => assert!(delay >= size as u64 && refused.into_value() == id),
            },
            Step::Remove(pick) if !keys.is_empty() => {
                let (key, other) = keys[pick % keys.len()];
                assert_eq!(simple.remove(key), hashed.remove(other));
            }
            Step::Remove(_) => {}
            Step::Advance(by) => {
                now += by;
                assert_eq!(expire(&mut simple, now), expire(&mut hashed, now));
            }
            Step::Drain => assert_eq!(simple.drain().len(), hashed.drain().len()),
        }
        assert_eq!(simple.len(), hashed.len());
    }
}

proptest! {
    #![proptest_config(cases(200))]

    /// Every structure plays the same history.
    #[test]
    fn rule_07_histories_agree_with_a_sorted_map(steps in prop::collection::vec(step(), 1..200)) {
        for size in [1, 2, 8, 64, 512] {
            agrees_with_a_sorted_map(Wheel::hashed(size).unwrap(), &steps);
        }
        for buckets in [2, 3, 20, 64] {
            agrees_with_a_sorted_map(Wheel::hierarchical(buckets).unwrap(), &steps);
        }
        agrees_with_a_sorted_map(Wheel::linux_classic(), &steps);
        agrees_up_to_its_lateness(Wheel::linux(), &steps);
        for size in [1, 20, 512] {
            agrees_within_a_turn(size, &steps);
        }
        compared_agrees_with_a_wheel::<OrderedList>(&steps);
        compared_agrees_with_a_wheel::<BTree>(&steps);
        compared_agrees_with_a_wheel::<Heap>(&steps);
        compared_agrees_with_a_wheel::<SkipList>(&steps);
    }

    /// After a stall, values come in the order in which they would have come tick by tick.
    #[test]
    fn rule_07_a_stall_does_not_change_the_order_on_the_linux_wheel(
        before in prop::collection::vec((0u64..3000, 0u64..200), 1..100),
    ) {
        let run = |stride: u64| {
            let (mut wheel, mut now, mut fired) = (Wheel::linux(), 0, Vec::new());
            for (id, &(delay, pause)) in (0u64..).zip(&before) {
                wheel.insert(now + delay, id);
                now += pause;
                fired.extend(expire(&mut wheel, now));
            }
            let end = now + 5000;
            while now < end {
                now = (now + stride).min(end);
                fired.extend(expire(&mut wheel, now));
            }
            fired
        };
        let tick_by_tick = run(1);
        prop_assert_eq!(tick_by_tick.len(), before.len());
        prop_assert_eq!(run(5000), tick_by_tick);
    }
}

/// An entry holds 16 bits of its slot's generation. Here the slot is reused 65,536 times, so they match.
#[test]
fn rule_02_a_dead_entry_that_matches_by_chance_fires_nothing_early() {
    let mut wheel = Wheel::hashed(64).unwrap();
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
fn rule_10_the_wheel_can_expire_the_last_tick_twice() {
    let mut wheel = Wheel::hashed(8).unwrap();
    wheel.insert(5, 1);
    assert_eq!(expire(&mut wheel, u64::MAX), [(5, 1)]);
    assert_eq!(expire(&mut wheel, u64::MAX), []);
}

/// Both expire at 104: the first from level 2, and the second from level 1.
#[test]
fn rule_07_the_linux_wheel_keeps_the_order_of_one_deadline_within_a_tick() {
    let mut wheel = Wheel::linux();
    let first = wheel.insert(103, 1);
    assert_eq!(expire(&mut wheel, 50), []);
    let second = wheel.insert(103, 2);
    assert_ne!(wheel.placement(first), wheel.placement(second));
    assert_eq!(expire(&mut wheel, 104), [(103, 1), (103, 2)]);
}

/// The first goes to level 2 and is late by four ticks. The second goes to level 1 and is late by
/// one.
#[test]
fn the_linux_wheel_expires_one_deadline_in_the_order_of_buckets() {
    let mut wheel = Wheel::linux();
    wheel.insert(100, 1);
    assert_eq!(expire(&mut wheel, 50), []);
    wheel.insert(100, 2);
    assert_eq!(expire(&mut wheel, 101), [(100, 2)]);
    assert_eq!(expire(&mut wheel, 104), [(100, 1)]);
}

/// The first is moved down in a jump that ends just before its tick. The second waits in a bucket
/// that begins with that tick.
#[test]
fn rule_07_a_timeout_moved_down_in_a_jump_stays_before_a_later_one_of_its_tick() {
    fn check<S: Unlimited>(mut wheel: Wheel<u64, S>, tick: u64, [second_at, jump_to]: [u64; 2]) {
        let first = wheel.insert(tick, 1);
        assert_eq!(expire(&mut wheel, second_at), []);
        let second = wheel.insert(tick, 2);
        assert_ne!(wheel.placement(first), wheel.placement(second));
        assert_eq!(expire(&mut wheel, jump_to), []);
        assert_eq!(expire(&mut wheel, tick), [(tick, 1), (tick, 2)]);
    }
    const TICK: u64 = (1 << 20) + (1 << 14);
    check(Wheel::linux_classic(), TICK, [(1 << 20) - 1, TICK - 300]);
    check(Wheel::hierarchical(3).unwrap(), 63, [50, 58]);
}

#[test]
fn rule_08_a_far_timeout_survives_a_sweep() {
    let deadline = (1 << 33) + 5;
    let mut wheel = Wheel::linux_classic();
    wheel.insert(deadline, 1);
    let others: Vec<_> = (0..2000).map(|n| wheel.insert(deadline, n)).collect();
    assert_eq!(others.into_iter().filter_map(|other| wheel.remove(other)).count(), 2000);
    assert_eq!(expire(&mut wheel, deadline - 1), []);
    assert_eq!(expire(&mut wheel, deadline), [(deadline, 1)]);
}
