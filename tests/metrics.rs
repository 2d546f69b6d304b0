//! What `metrics` counts about the worker, and what `thread_metrics` shows. The counts of timeouts are checked
//! in all test files, by `assert_conserved`.

use crate::common::{TICK, eventually, manual, ms, partly_in_the_wheel};
use std::thread;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
use wheelwork::metrics::ThreadMetrics;

#[test]
fn a_wake_up_is_counted() {
    let (timer, clock) = manual();
    eventually("it has slept and been called", || {
        clock.advance_in_one_jump(TICK);
        timer.metrics().wakeups > 0
    });
}

/// However many timeouts a thread schedules in a tick.
#[test]
fn rule_06_a_flood_wakes_the_worker_once_per_tick() {
    flood_of(1_000_000);
}

#[test]
#[ignore = "a second in release, half a minute without: part of the long run"]
fn rule_06_a_flood_of_three_million_wakes_the_worker_once_per_tick() {
    flood_of(3_000_000);
}

fn flood_of(timeouts: u64) {
    const HOUR: Duration = Duration::from_secs(3600);
    let timer = HashedWheelTimer::builder().tick_duration(HOUR).build().unwrap();
    (0..timeouts).for_each(|_| drop(timer.new_timeout(|| (), 10 * HOUR).unwrap()));
    let (wakeups, took) = (timer.metrics().wakeups, timer.now() - timer.started_at());
    println!("{timeouts} timeouts in {took:?} of a tick of an hour: {wakeups} wake-ups");
    assert!(wakeups <= 1, "{wakeups} wake-ups");
    timer.stop().unwrap();
}

#[test]
fn ticks_that_are_stepped_over_are_counted() {
    let (timer, clock) = manual();
    let skipped = || timer.metrics().ticks_skipped;
    clock.advance_in_one_jump(TICK);
    assert_eq!(skipped(), 0);
    clock.advance_in_one_jump(10 * TICK);
    assert_eq!(skipped(), 9);
    clock.advance_in_one_jump(TICK / 2);
    clock.advance_in_one_jump(TICK / 2);
    assert_eq!(skipped(), 9);
}

#[test]
fn a_completed_sweep_is_counted() {
    let (timer, clock) = manual();
    // Next in the wheel, so the worker leaves the dead entries behind it to the sweep.
    timer.new_timeout(|| (), 20 * TICK).unwrap();
    let far = |_| timer.new_timeout(|| (), 100 * TICK).unwrap();
    let timeouts = partly_in_the_wheel(&timer, &clock, 20_480, far);
    assert_eq!(timer.metrics().sweeps, 0);
    assert!(timeouts.iter().all(|timeout| timeout.cancel()));
    // No pass of the sweep waits for a tick.
    eventually("the sweep has ended", || timer.metrics().sweeps >= 1);
}

/// The entries were no reason while so many others were pending, and these were never in the wheel.
#[test]
fn rule_04_dead_entries_are_swept_out_once_what_waits_outside_the_wheel_is_cancelled() {
    let (timer, clock) = manual();
    let _kept = timer.new_timeout(|| (), 1000 * TICK).unwrap();
    let far = |_| timer.new_timeout(|| (), 100_000 * TICK).unwrap();
    let filed = partly_in_the_wheel(&timer, &clock, 20_480, far);
    let outside: Vec<_> = (0..20_480).map(far).collect();
    clock.advance_in_one_jump(Duration::ZERO);
    assert!(filed.iter().chain(&outside).all(|timeout| timeout.cancel()));
    drop((filed, outside));
    clock.advance_in_one_jump(Duration::from_secs(1)); // a release may have begun before
    eventually("the sweep has ended", || timer.metrics().sweeps >= 1);
}

/// If many timeouts are due at once, the last ones are late by the time that the others took.
#[test]
fn lateness_grows_while_a_pass_goes_on() {
    let (timer, clock) = manual();
    for _ in 0..160 {
        let clock = clock.clone();
        timer.new_timeout(move || clock.advance_in_one_jump(ms(1)), TICK).unwrap();
    }
    clock.advance_in_one_jump(TICK);
    let lateness = timer.metrics().lateness;
    assert_eq!(
        (lateness.count(), lateness.max()),
        (160, ms(128)),
        "the clock is read at 64 and 128"
    );
    assert!(lateness.quantile(0.3) < ms(1));
}

/// Schedules on a thread of this name, and returns the snapshot that it sees then.
fn schedule_on(name: &str, timer: &HashedWheelTimer, count: usize) -> Vec<ThreadMetrics> {
    let timer = timer.clone();
    let schedule = move || {
        (0..count).for_each(|_| drop(timer.new_timeout(|| (), TICK).unwrap()));
        timer.thread_metrics()
    };
    thread::Builder::new().name(name.to_owned()).spawn(schedule).unwrap().join().unwrap()
}

#[test]
fn a_thread_is_shown_with_what_it_has_scheduled_until_it_ends() {
    let (timer, _clock) = manual();
    timer.new_timeout(|| (), TICK).unwrap();
    let threads = schedule_on("other", &timer, 63);
    let mut shown: Vec<_> = threads.into_iter().map(|t| (t.scheduled, t.thread)).collect();
    shown.sort();
    let this = thread::current().name().unwrap_or_default().to_owned();
    assert_eq!(shown, [(1, this.clone()), (63, "other".to_owned())]);
    eventually("the thread has left", || timer.thread_metrics().len() == 1);
    assert_eq!(timer.thread_metrics()[0].thread, this);
    assert_eq!(timer.metrics().scheduled, 64, "its counts stay");
}

#[test]
fn the_slots_of_a_timer_follow_its_timeouts() {
    let (timer, clock) = manual();
    assert_eq!(timer.metrics().slots, 0);
    let timeouts: Vec<_> = (0..6200).map(|_| timer.new_timeout(|| (), TICK).unwrap()).collect();
    assert_eq!(timer.metrics().slots, 6200);
    drop(timeouts);
    clock.advance_in_one_jump(TICK);
    clock.advance_in_one_jump(ms(1000));
    assert!(timer.metrics().slots < 20 * 62, "{} slots for no timeout", timer.metrics().slots);
    timer.stop().unwrap();
    assert_eq!(timer.metrics().slots, 0);
}

#[test]
fn the_timeouts_of_the_idle_manager_belong_to_no_thread() {
    let (timer, _clock) = manual();
    let idle = IdleTimeouts::new(&timer, |_: &mut (), _| Answer::StopWatching);
    let _watch = idle.watch((), &IdlePolicy::new().both(TICK)).unwrap();
    assert_eq!(timer.thread_metrics(), []);
}
