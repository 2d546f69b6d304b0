//! The list for timeouts of one delay, against a plain vector.

use proptest::prelude::*;
use std::time::{Duration, Instant};
use wheelwork::wheel::{DelayLine, Key, Ticks};

#[derive(Clone, Debug)]
enum Step {
    Insert,
    Remove(usize),
    Renew(usize),
    Advance(u64),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Insert),
        3 => any::<usize>().prop_map(Step::Remove),
        4 => any::<usize>().prop_map(Step::Renew),
        4 => (0u64..40).prop_map(Step::Advance),
        2 => Just(Step::Pop),
    ]
}

proptest! {
    #[test]
    fn histories_agree_with_a_vector(
        delay in 0u64..50,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let (mut line, mut now) = (DelayLine::new(delay), 0);
        let mut expected: Vec<(Key, u64, u64)> = Vec::new();
        let mut keys: Vec<Key> = Vec::new();
        for step in steps {
            match step {
                Step::Insert => {
                    let id = keys.len() as u64;
                    keys.push(line.insert(now, id));
                    expected.push((keys[id as usize], now + delay, id));
                }
                Step::Remove(pick) if !keys.is_empty() => {
                    let key = keys[pick % keys.len()];
                    let place = expected.iter().position(|&(other, ..)| other == key);
                    prop_assert_eq!(line.remove(key), place.map(|at| expected.remove(at).2));
                }
                Step::Renew(pick) if !keys.is_empty() => {
                    let key = keys[pick % keys.len()];
                    let place = expected.iter().position(|&(other, ..)| other == key);
                    prop_assert_eq!(line.renew(now, key), place.is_some());
                    if let Some(at) = place {
                        let (_, _, id) = expected.remove(at);
                        expected.push((key, now + delay, id));
                    }
                }
                Step::Advance(by) => {
                    now += by;
                    let due = expected.iter().filter(|entry| entry.1 <= now).count();
                    let mut out = Vec::new();
                    prop_assert_eq!(line.expire(now, |_, expired| out.push((expired.deadline, expired.value))), due);
                    prop_assert!(expected.drain(..due).map(|(_, tick, id)| (tick, id)).eq(out));
                }
                Step::Pop => {
                    let later = now + delay / 2;
                    let first = expected.first().copied().filter(|entry| entry.1 <= later);
                    let popped = line.pop(later).map(|e| (e.key, e.deadline, e.value));
                    prop_assert_eq!(popped, first);
                    expected.drain(..usize::from(first.is_some()));
                    now = later;
                }
                Step::Remove(_) | Step::Renew(_) => {}
            }
            prop_assert_eq!(line.len(), expected.len());
            prop_assert_eq!(line.next_expiry(), expected.first().map(|entry| entry.1));
            prop_assert!(line.iter().map(|(k, tick, &id)| (k, tick, id)).eq(expected.clone()));
            for &(key, tick, id) in &expected {
                prop_assert_eq!((line.get(key), line.deadline(key)), (Some(&id), Some(tick)));
            }
        }
    }
}

#[test]
fn a_key_outlives_its_value_and_finds_nothing() {
    let mut line = DelayLine::new(5).with_capacity(10);
    let first = line.insert(0, 1);
    assert_eq!(line.get_mut(first).map(|value| std::mem::replace(value, 2)), Some(1));
    assert_eq!(line.remove(first), Some(2));
    let second = line.insert(0, 3); // in the same slot
    assert!(!line.renew(9, first));
    assert_eq!((line.get(first), line.deadline(first)), (None, None));
    assert_eq!(line.get_mut(first), None);
    assert_eq!((line.remove(first), line.remove(second)), (None, Some(3)));
    assert!(line.is_empty());
}

#[test]
fn rule_10_time_saturates_and_does_not_go_back() {
    let mut line = DelayLine::new(u64::MAX);
    line.insert(7, "never");
    assert_eq!(line.next_expiry(), None);
    assert!(line.pop(u64::MAX).is_none());

    let mut line = DelayLine::new(5);
    line.insert(10, "first");
    line.insert(3, "at tick 10 too");
    assert_eq!(line.iter().map(|(_, tick, _)| tick).collect::<Vec<_>>(), [15, 15]);
    assert!(line.pop(14).is_none());
    assert_eq!(line.pop(15).map(|expired| expired.value), Some("first"));
}

proptest! {
    #[test]
    fn rule_02_no_value_is_early_at_random_instants(
        tick in 1u64..50,
        delay in 0u64..200,
        speed in prop_oneof![Just(1.0), Just(0.5), Just(3.0)],
        steps in prop::collection::vec((0u64..30, any::<bool>()), 1..200),
    ) {
        let [tick, delay] = [tick, delay].map(Duration::from_nanos);
        let mut now = Instant::now();
        let mut ticks = Ticks::new(tick, now).unwrap();
        ticks.set_speed(now, speed).unwrap();
        let mut line = DelayLine::for_duration(delay, &ticks);
        let (mut keys, most) = (Vec::new(), if delay.as_nanos() % tick.as_nanos() == 0 { 1 } else { 2 });
        for (pass, inserts) in steps {
            now += Duration::from_nanos(pass);
            while let Some(expired) = line.pop(ticks.at(now)) {
                prop_assert!(ticks.elapsed(now) >= expired.value + delay);
                let deadline = ticks.tick_duration() * u32::try_from(expired.deadline).unwrap();
                prop_assert!(deadline <= expired.value + delay + most * tick);
            }
            match keys.last() {
                Some(&key) if !inserts => {
                    if line.renew(ticks.at(now), key) {
                        *line.get_mut(key).unwrap() = ticks.elapsed(now);
                    }
                }
                _ => keys.push(line.insert(ticks.at(now), ticks.elapsed(now))),
            }
        }
    }
}

#[test]
fn rule_02_a_pop_at_an_earlier_tick_takes_out_nothing_early() {
    let mut line = DelayLine::new(5);
    line.insert(0, "due at tick 5");
    line.insert(9, "later");
    assert!(line.pop(4).is_none());
    assert_eq!(line.pop(5).map(|expired| expired.value), Some("due at tick 5"));
}

#[test]
fn rule_10_a_delay_of_the_longest_duration_never_ends() {
    let ticks = Ticks::new(Duration::from_millis(1), Instant::now()).unwrap();
    let mut line = DelayLine::for_duration(Duration::MAX, &ticks);
    line.insert(7, "never");
    assert_eq!((line.next_expiry(), line.delay()), (None, u64::MAX));
}
