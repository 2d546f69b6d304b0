//! Passes of the public wheels: expiry that stops half-way, and changes meanwhile.

use crate::cases::cases;
use proptest::prelude::*;
use std::collections::BTreeMap;
use wheelwork::wheel::{Expired, Key, Unlimited, Wheel};

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Remove(usize),
    Reschedule(usize, u64),
    /// Begins or extends a pass by a number of ticks, and pops a number of values.
    Pop(u64, usize),
}

fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0u64..20,
        4 => 0u64..500,
        2 => 0u64..70_000,
        1 => 0u64..1 << 34,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => distance().prop_map(Step::Insert),
        3 => any::<usize>().prop_map(Step::Remove),
        6 => (any::<usize>(), distance()).prop_map(|(pick, by)| Step::Reschedule(pick, by)),
        6 => (distance(), 0usize..4).prop_map(|(by, n)| Step::Pop(by, n)),
        2 => distance().prop_map(|by| Step::Pop(by, usize::MAX)),
    ]
}

/// What a wheel must contain.
#[derive(Default)]
struct Expected {
    /// By tick, then by the order of insertion.
    values: BTreeMap<(u64, u64), Key>,
    /// Every value that was inserted: its key, its tick, and whether it was ever moved.
    all: Vec<(Key, u64, bool)>,
}

impl Expected {
    /// Checks that a value which came out is the first one.
    fn take(&mut self, Expired { key, value: id, deadline, .. }: Expired<u64>, now: u64) {
        let (_, tick, _) = self.all[id as usize];
        assert_eq!(self.values.remove(&(tick, id)), Some(key), "it was there");
        assert!(deadline <= tick && tick <= now, "early");
        let first = self.values.keys().next();
        assert!(first.is_none_or(|&(first, _)| first >= tick), "{id} of {tick} before {first:?}");
        let older = self.values.range((tick, 0)..(tick, id)).next();
        let was_moved = |id: u64| self.all[id as usize].2;
        assert!(
            older.is_none_or(|(&(_, other), _)| was_moved(other) || was_moved(id)),
            "{id} of {tick} before {older:?}"
        );
    }
}

/// Plays a history. Values come out in the order of ticks and of their insertion, whatever happens
/// between two of them.
fn passes_agree_with_a_sorted_map<S: Unlimited>(mut wheel: Wheel<u64, S>, steps: &[Step]) {
    let (mut expected, mut now) = (Expected::default(), 0);
    for step in steps {
        let current = wheel.current_tick();
        match *step {
            Step::Insert(delay) => {
                let (id, deadline) = (expected.all.len() as u64, (now + delay).saturating_sub(30));
                let key = wheel.insert(deadline, id);
                expected.values.insert((deadline.max(current), id), key);
                expected.all.push((key, deadline.max(current), false));
            }
            Step::Reschedule(pick, delay) if !expected.all.is_empty() => {
                let (id, deadline) = (pick % expected.all.len(), (now + delay).saturating_sub(30));
                let (key, before, _) = expected.all[id];
                let found = expected.values.remove(&(before, id as u64));
                assert_eq!(wheel.reschedule(key, deadline), found.is_some());
                if found.is_some() {
                    let tick = deadline.max(current);
                    expected.values.insert((tick, id as u64), key);
                    expected.all[id] = (key, tick, true);
                }
            }
            Step::Remove(pick) if !expected.all.is_empty() => {
                let id = pick % expected.all.len();
                let (key, tick, _) = expected.all[id];
                let found = expected.values.remove(&(tick, id as u64));
                assert_eq!(wheel.remove(key), found.map(|_| id as u64));
            }
            Step::Pop(by, count) => {
                now += by;
                let mut popped = 0;
                while popped < count {
                    popped += 1;
                    let Some(value) = wheel.pop(now) else {
                        let first = expected.values.keys().next();
                        assert!(first.is_none_or(|&(tick, _)| tick > now), "one is left");
                        assert_eq!(wheel.current_tick(), now + 1);
                        break;
                    };
                    expected.take(value, now);
                }
            }
            Step::Remove(_) | Step::Reschedule(..) => {}
        }
        assert_eq!(wheel.len(), expected.values.len());
        assert_eq!(wheel.iter().count(), wheel.len());
        let first = expected.values.keys().next().map(|&(tick, _)| tick);
        assert!(first.is_none_or(|tick| wheel.next_expiry().is_some_and(|next| next <= tick)));
    }
}

/// The last tick in which a value may come out of the wheel that is late, if it is inserted or moved now.
fn latest<S: Unlimited>(wheel: &Wheel<u64, S>, deadline: u64) -> u64 {
    let delay = (deadline + 1).saturating_sub(wheel.current_tick());
    deadline.max(wheel.current_tick()) + 1 + delay * 8 / 63
}

/// Nothing is early, too late, lost or handed out twice, also on the wheel that is late.
fn nothing_is_lost<S: Unlimited>(mut wheel: Wheel<u64, S>, steps: &[Step]) {
    /// The deadline of each live value, and the last tick in which it may come out.
    type Live = BTreeMap<u64, (u64, u64)>;
    let (mut live, mut all): (Live, Vec<Key>) = Default::default();
    let mut now = 0;
    for step in steps {
        match *step {
            Step::Insert(delay) => {
                live.insert(all.len() as u64, (now + delay, latest(&wheel, now + delay)));
                all.push(wheel.insert(now + delay, all.len() as u64));
            }
            Step::Reschedule(pick, delay) if !all.is_empty() => {
                let id = pick % all.len();
                let moved = (now + delay, latest(&wheel, now + delay));
                let found = live.get_mut(&(id as u64)).map(|value| *value = moved);
                assert_eq!(wheel.reschedule(all[id], now + delay), found.is_some());
            }
            Step::Remove(pick) if !all.is_empty() => {
                let id = pick % all.len();
                assert_eq!(wheel.remove(all[id]), live.remove(&(id as u64)).map(|_| id as u64));
            }
            Step::Pop(by, count) => {
                now += by;
                for _ in 0..count.min(1000) {
                    let Some(expired) = wheel.pop(now) else { break };
                    let (deadline, last) = live.remove(&expired.value).expect("only once");
                    assert_eq!(expired.deadline, deadline);
                    let tick = wheel.current_tick();
                    assert!(deadline <= tick && tick <= last.min(now), "{deadline} in {tick}");
                }
            }
            Step::Remove(_) | Step::Reschedule(..) => {}
        }
        assert_eq!(wheel.len(), live.len());
    }
    wheel.expire(u64::MAX, |_, expired| _ = live.remove(&expired.value).expect("only once"));
    assert!(live.is_empty() && wheel.is_empty());
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn rule_07_passes_that_stop_half_way_keep_the_order(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        for size in [1, 8, 512] {
            passes_agree_with_a_sorted_map(Wheel::hashed(size).unwrap(), &steps);
        }
        for buckets in [2, 20] {
            passes_agree_with_a_sorted_map(Wheel::hierarchical(buckets).unwrap(), &steps);
        }
        passes_agree_with_a_sorted_map(Wheel::linux_classic(), &steps);
        nothing_is_lost(Wheel::linux(), &steps);
        nothing_is_lost(Wheel::hashed(64).unwrap(), &steps);
    }
}

/// Calls `expire_at_most` until nothing is due. Returns the number of calls.
fn calls<S: Unlimited>(wheel: &mut Wheel<u64, S>, now: u64, limit: usize) -> usize {
    let mut calls = 1;
    let mut seen = 0;
    while !wheel.expire_at_most(now, limit, |_, _| seen += 1) {
        assert!(seen <= calls * limit);
        calls += 1;
    }
    calls
}

#[test]
fn a_limit_divides_a_pass() {
    let mut wheel = Wheel::hashed(64).unwrap();
    (0..1000).for_each(|n| _ = wheel.insert(5, n));
    assert_eq!(calls(&mut wheel, 5, 100), 11, "the last call finds nothing");
    assert!(wheel.is_empty());
    assert!(wheel.expire_at_most(6, 1, |_, _| ()));
    assert!(!wheel.expire_at_most(7, 0, |_, _| ()), "no entry may be read");
}

/// Otherwise a pass over a million removed values would take as long as one over a million live ones.
#[test]
fn a_limit_counts_removed_values_too() {
    let mut wheel = Wheel::hashed(64).unwrap();
    let keys: Vec<Key> = (0..1000).map(|n| wheel.insert(5, n)).collect();
    keys[1..500].iter().for_each(|&key| _ = wheel.remove(key));
    let mut seen = 0;
    assert!(!wheel.expire_at_most(5, 100, |_, _| seen += 1));
    assert_eq!(seen, 1);
}

#[test]
fn a_callback_may_insert_remove_and_reschedule() {
    let mut wheel = Wheel::hierarchical(8).unwrap();
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|n| wheel.insert(n, n));
    let mut log = Vec::new();
    let ended = wheel.expire_at_most(10, usize::MAX, |wheel, expired| {
        log.push((wheel.current_tick(), expired.value));
        if expired.key == first {
            assert_eq!(wheel.remove(second), Some(2));
            assert!(wheel.reschedule(third, 9));
            assert!(wheel.reschedule(fourth, 70));
            assert!(!wheel.reschedule(first, 5), "it has expired");
            wheel.insert(0, 10); // overdue: in the current tick
            wheel.insert(5, 50);
        }
    });
    assert!(ended);
    assert_eq!(log, [(1, 1), (1, 10), (5, 50), (9, 3)]);
    assert_eq!((wheel.len(), wheel.deadline(fourth)), (1, Some(70)));
    let last = wheel.pop(70).expect("it is due");
    assert_eq!((last.key, last.deadline, last.value), (fourth, 70, 4));
}

#[test]
fn the_simple_wheel_reschedules_within_a_turn() {
    let mut wheel = Wheel::simple(8).unwrap();
    let key = wheel.insert(5, "value").unwrap();
    assert!(wheel.reschedule(key, 7).unwrap());
    assert!(wheel.reschedule(key, 2).unwrap());
    let refused = wheel.reschedule(key, 8).unwrap_err();
    assert_eq!((refused.delay, refused.ticks_per_wheel), (8, 8));
    assert_eq!(wheel.pop(7).map(|expired| expired.deadline), Some(2));
    assert!(!wheel.reschedule(key, 7).unwrap());
}
