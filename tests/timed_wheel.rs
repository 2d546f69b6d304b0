//! Wheels that are told the time in instants.

use std::time::{Duration, Instant};
use wheelwork::wheel::{Linux, Ticks, TimedWheel, Wheel};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn rule_02_a_value_is_never_early_and_late_by_less_than_a_tick() {
    let start = Instant::now();
    let ticks = Ticks::new(10 * MS, start).unwrap();
    let mut wheel = TimedWheel::new(Wheel::hashed(64).unwrap(), ticks);
    for n in 0..1000u32 {
        wheel.insert_at(start + 777 * n * MS / 100, n);
    }
    for ms in 0..10_000u32 {
        let now = start + ms * MS;
        assert!(wheel.next_deadline().is_none_or(|next| next >= now));
        while let Some(expired) = wheel.pop(now) {
            let deadline = start + 777 * expired.value * MS / 100;
            assert!(deadline <= now && now < deadline + 11 * MS, "{:?}", expired);
        }
    }
    assert!(wheel.wheel().is_empty());
}

#[test]
fn pauses_and_speeds_move_all_deadlines() {
    let start = Instant::now();
    let ticks = Ticks::new(MS, start).unwrap();
    let mut wheel = TimedWheel::new(Wheel::hierarchical(8).unwrap(), ticks);
    let first = wheel.insert(start, 100 * MS, 1);
    wheel.insert(start, 1000 * MS, 2);
    wheel.set_speed(start + 50 * MS, 10.0).unwrap();
    assert_eq!(wheel.next_deadline(), Some(start + 55 * MS));
    wheel.pause(start + 52 * MS);
    assert!(wheel.pop(start + 10_000 * MS).is_none());
    wheel.resume(start + 60 * MS);
    assert!(wheel.reschedule(first, start + 60 * MS, 40 * MS));
    assert_eq!(wheel.expire(start + 63 * MS, |_, _| ()), 0);
    assert_eq!(wheel.expire(start + 64 * MS, |_, expired| assert_eq!(expired.value, 1)), 1);
    assert!(!wheel.reschedule_at(first, start));
    assert!(wheel.expire_at_most(start + 200 * MS, 10, |_, expired| assert_eq!(expired.value, 2)));
    assert_eq!(wheel.next_deadline(), None);
}

/// It is late by a tick, or by 12.7 % of the delay, however long nobody has told it the time.
#[test]
fn a_linux_wheel_counts_a_delay_from_the_time_that_it_gets() {
    type Timed = TimedWheel<u32, Linux>;
    let histories: [fn(&mut Timed, Instant, Instant); 8] = [
        |wheel, _, now| {
            wheel.insert(now, 50 * MS, 50);
        },
        |wheel, start, now| {
            let far = wheel.insert(start, 7200 * SECOND, 50);
            assert!(wheel.reschedule(far, now, 50 * MS));
        },
        |wheel, start, now| {
            let dead = wheel.insert(start, SECOND, 0);
            wheel.wheel_mut().remove(dead);
            wheel.insert(now, 50 * MS, 50);
        },
        |wheel, start, now| {
            for n in [5, 3, 4] {
                wheel.insert(start, n * SECOND, n);
            }
            wheel.insert(now, 50 * MS, 50);
            assert_eq!([(); 3].map(|()| wheel.pop(now).unwrap().value), [3, 4, 5]);
        },
        |wheel, start, now| {
            for n in [1, 2] {
                wheel.insert(start, n * SECOND, n);
            }
            assert_eq!(wheel.pop(now).unwrap().value, 1);
            wheel.insert(now, 50 * MS, 50);
            wheel.insert(now + SECOND, 50 * MS, 60); // the pass does not go so far
            assert_eq!(wheel.pop(now).unwrap().value, 2);
        },
        |wheel, start, now| {
            wheel.insert(start, SECOND, 50);
            let expired = wheel.pop(now).unwrap();
            let tick = wheel.ticks().after(now, 50 * MS);
            wheel.wheel_mut().insert(tick, expired.value); // in the pass, which knows the current tick
        },
        |wheel, start, now| {
            wheel.insert(start, SECOND, 50);
            let tick = wheel.ticks().after(now, 50 * MS);
            let is_done = wheel.expire_at_most(now, 10, |wheel, expired| {
                wheel.insert(tick, expired.value);
            });
            assert!(is_done);
        },
        |wheel, start, now| {
            let soon = wheel.insert(start, 3600 * SECOND + 40 * MS, 50); // in a coarse bucket
            assert!(wheel.reschedule(soon, now, 50 * MS));
        },
    ];
    for (history, number) in histories.iter().zip(1..) {
        let start = Instant::now();
        let now = start + 3600 * SECOND;
        let mut wheel = TimedWheel::new(Wheel::linux(), Ticks::new(MS, start).unwrap());
        history(&mut wheel, start, now);
        let fired = (0..100).find(|&ms| wheel.pop(now + ms * MS).is_some());
        assert!(matches!(fired, Some(50..=58)), "history {number}: {fired:?}");
    }
}

/// A loop that takes one value per turn ends no pass. Its time goes on nevertheless.
#[test]
fn a_linux_wheel_counts_a_delay_from_an_insertion_during_a_pass_that_has_not_ended() {
    let start = Instant::now();
    let mut wheel = TimedWheel::new(Wheel::linux(), Ticks::new(MS, start).unwrap());
    wheel.insert(start, MS, "first");
    assert!(wheel.pop(start + 2 * MS).is_some());
    let now = start + 100 * SECOND;
    wheel.insert(now, 10 * MS, "second");
    let popped = wheel.pop(now + 12 * MS).map(|expired| expired.value);
    assert_eq!(popped, Some("second"));
}
