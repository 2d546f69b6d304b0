//! What `metrics` counts about the worker. The counts of timeouts are checked in all test files, by
//! `assert_conserved`.

mod common;

use common::{TICK, eventually, into_the_wheel, manual, ms};

#[test]
fn a_wake_up_is_counted() {
    let (timer, clock) = manual();
    eventually("it has slept and been called", || {
        clock.advance(TICK);
        timer.metrics().wakeups > 0
    });
}

#[test]
fn ticks_that_are_stepped_over_are_counted() {
    let (timer, clock) = manual();
    let skipped = || timer.metrics().ticks_skipped;
    clock.advance(TICK);
    assert_eq!(skipped(), 0);
    clock.advance(10 * TICK);
    assert_eq!(skipped(), 9);
    clock.advance(TICK / 2);
    clock.advance(TICK / 2);
    assert_eq!(skipped(), 9);
}

#[test]
fn a_completed_sweep_is_counted() {
    let (timer, clock) = manual();
    // Next in the wheel, so the worker leaves the dead entries behind it to the sweep.
    timer.new_timeout(|| (), 10 * TICK).unwrap();
    let far = |_| timer.new_timeout(|| (), 100 * TICK).unwrap();
    let timeouts: Vec<_> = (0..10_240).map(far).collect();
    into_the_wheel(&timer, &clock);
    assert_eq!(timer.metrics().sweeps, 0);
    assert!(timeouts.iter().all(|timeout| timeout.cancel()));
    clock.advance(TICK);
    assert_eq!(timer.metrics().sweeps, 1);
}

/// If many timeouts are due at once, the last ones are late by the time that the others took.
#[test]
fn lateness_grows_while_a_pass_goes_on() {
    let (timer, clock) = manual();
    for _ in 0..40 {
        let clock = clock.clone();
        timer.new_timeout(move || clock.advance(ms(1)), TICK).unwrap();
    }
    clock.advance(TICK);
    let lateness = timer.metrics().lateness;
    assert_eq!((lateness.count(), lateness.max()), (40, ms(32)), "the clock is read at 16 and 32");
    assert!(lateness.quantile(0.3) < ms(1));
}
