//! Tests of all structures: budgets, the last tick, and callbacks that panic. The random histories
//! and the far timeouts have files of their own.

mod far;
mod histories;

use super::agenda::Agenda;
use super::filing::Filing;
use super::structure::TokenWheel;
use super::token::{Due, Token};
use super::values::InOrder;
use super::{Hashed, Hierarchical, Linux, LinuxClassic, Unlimited, Wheel, WheelSizeError};

const fn token(index: u32) -> Token {
    Token { index, version: 7 }
}

fn all_due(wheel: &mut impl TokenWheel, now: u64) -> Vec<Due> {
    let mut agenda = Agenda::default();
    std::iter::from_fn(|| agenda.pop(wheel, now)).collect()
}

/// A step of a sweep checks no more entries than its budget, even if all of them are in one bucket.
#[test]
fn rule_09_a_sweep_keeps_to_its_budget() {
    fn steps(mut wheel: impl TokenWheel, tick: u64) {
        (0..1000).for_each(|n| wheel.insert(tick, token(n)));
        let (mut met, mut ended) = (0, false);
        while !ended {
            let before = met;
            ended = wheel.sweep(70, |_| {
                met += 1;
                false
            });
            assert!(met - before <= 70);
        }
        assert_eq!((met, wheel.next_expiry()), (1000, None));
    }
    for tick in [5, 1000, u64::MAX / 2] {
        steps(Linux::default(), tick);
        steps(LinuxClassic::default(), tick);
        steps(Hierarchical::with_buckets(20).unwrap(), tick);
        steps(Hashed::new(8).unwrap(), tick);
    }
}

/// Tick `u64::MAX` never comes, not even when it is told.
#[test]
fn rule_10_the_last_tick_never_comes() {
    fn at_the_end(wheel: impl TokenWheel) {
        let mut filing = InOrder::new(wheel);
        filing.insert(u64::MAX, token(1));
        filing.insert(5, token(2));
        assert_eq!(filing.pop(u64::MAX).map(|due| due.token), Some(token(2)));
        assert_eq!((filing.pop(u64::MAX), filing.next_expiry()), (None, None));
    }
    at_the_end(Linux::default());
    at_the_end(LinuxClassic::default());
    at_the_end(Hierarchical::with_buckets(8).unwrap());
    at_the_end(Hashed::new(8).unwrap());
}

/// The buckets of a simple wheel are larger than those of a hashed one, and it has the same error.
#[test]
fn refused_memory_is_told_without_the_size_of_a_bucket() {
    let error = WheelSizeError { ticks_per_wheel: 8 };
    assert_eq!(error.to_string(), "cannot allocate 8 buckets");
}

fn ticks_and_tokens(wheel: &mut impl TokenWheel, now: u64) -> Vec<(u64, u32)> {
    all_due(wheel, now).iter().map(|due| (due.tick, due.token.index)).collect()
}

#[test]
fn rule_10_hashed_expires_the_ticks_just_before_the_last_one() {
    let mut wheel = Hashed::new(8).unwrap();
    assert_eq!(ticks_and_tokens(&mut wheel, u64::MAX - 100), []);
    wheel.insert(u64::MAX, token(1));
    wheel.insert(u64::MAX - 8, token(2));
    assert_eq!(ticks_and_tokens(&mut wheel, u64::MAX - 5), [(u64::MAX - 8, 2)]);
}

#[test]
fn rule_10_classic_expires_the_ticks_just_before_the_last_one() {
    let mut wheel = LinuxClassic::default();
    assert_eq!(ticks_and_tokens(&mut wheel, u64::MAX - 1000), []);
    wheel.insert(u64::MAX, token(1));
    wheel.insert(u64::MAX - 256, token(2));
    wheel.insert(u64::MAX - 8, token(3));
    assert_eq!(
        ticks_and_tokens(&mut wheel, u64::MAX - 5),
        [(u64::MAX - 256, 2), (u64::MAX - 8, 3)]
    );
}

/// After each panic, the rest of the pass comes with the next tick.
#[test]
fn rule_05_a_callback_that_panics_each_time_loses_and_reorders_nothing() {
    fn check<S: Unlimited>(mut wheel: Wheel<u64, S>) {
        wheel.expire(0, |_, _| ());
        let ticks = [3, 3, 11, 19, 11, 4, 300, 70_000, 70_000, 1 << 33, (1 << 33) + 1];
        for (n, tick) in ticks.into_iter().enumerate() {
            wheel.insert(tick, n as u64);
        }
        let mut got = Vec::new();
        while !wheel.is_empty() {
            let now = wheel.current_tick().max(1 << 34);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                wheel.expire(now, |_, expired| {
                    got.push((expired.deadline, expired.value));
                    panic!("a bad callback");
                })
            }));
            assert!(result.is_err());
        }
        let mut sorted: Vec<_> = ticks.into_iter().zip(0..).collect();
        sorted.sort();
        assert_eq!(got, sorted);
    }
    check(Wheel::hashed(1).unwrap());
    check(Wheel::hashed(8).unwrap());
    check(Wheel::linux_classic());
    check(Wheel::hierarchical(3).unwrap());
}

/// Tokens that are filed in a pass come out in their ticks, together with all others of that tick.
#[test]
fn rule_07_what_is_filed_in_a_pass_comes_in_the_order_of_ticks() {
    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) % below
    }
    fn play(wheel: impl TokenWheel, mut seed: u64) {
        let mut filing = Filing::new(wheel);
        let mut ticks: Vec<u64> = (0..200).map(|_| 1 + random(&mut seed, 500)).collect();
        (0..).zip(&ticks).for_each(|(index, &tick)| filing.insert(tick, token(index)));
        let (mut now, mut tokens, mut ended) = (0, Vec::new(), 0);
        while filing.entries() > 0 {
            now += random(&mut seed, 300);
            let mut last = 0;
            while let Some(tick) = filing.take_tick(now, &mut tokens) {
                assert!(last < tick && tick <= now, "tick {tick} comes after {last}");
                last = tick;
                let due = ticks.iter().filter(|&&due| due == tick).count();
                assert_eq!(tokens.len(), due, "all tokens of tick {tick}");
                for token in tokens.drain(..) {
                    let at = &mut ticks[token.index as usize];
                    assert_eq!(std::mem::take(at), tick);
                    if random(&mut seed, 3) == 0 {
                        ended += 1;
                        continue;
                    }
                    *at = tick + 1 + random(&mut seed, 400);
                    filing.insert_in_pass(*at, token, now);
                }
            }
            assert!(ticks.iter().all(|&tick| tick == 0 || tick > now));
        }
        assert_eq!(ended, ticks.len());
    }
    for seed in 0..100 {
        play(Hashed::new(8).unwrap(), seed);
        play(Hashed::new(1).unwrap(), seed);
        play(Hierarchical::with_buckets(4).unwrap(), seed);
        play(LinuxClassic::default(), seed);
    }
}
