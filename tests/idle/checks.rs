//! The number of checks: one for each idle period, and none of connections that have left.

use super::{MANY, both, queueing, recording, walk};
use crate::common;
use crate::common::{Record, TICK, manual_with, ms};
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, IdleTimeouts, Watch};
use wheelwork::{HashedWheelTimer, ManualClock};

/// A timer that counts its jobs. Those of these tests are the manager's checks.
fn counting() -> (HashedWheelTimer, ManualClock, Record<()>) {
    let checks = Record::new();
    let record = checks.clone();
    let executor = move |job: Job| {
        record.push(());
        common::run_here(job)
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    (timer, clock, checks)
}

/// Asserts that no count and no metric of the timer shows anything.
fn assert_nothing_is_counted(timer: &HashedWheelTimer) {
    let m = timer.metrics();
    let begun = [m.scheduled, m.rearmed, m.rescheduled, m.rejected, timer.queue_depth() as u64];
    let ended = [m.expired, m.cancelled, m.returned, m.abandoned, m.lateness.count()];
    assert_eq!((begun, ended), ([0; 5], [0; 5]), "{m:?}");
    assert_eq!((m.pending, timer.pending_timeouts()), (0, 0));
}

/// The number of touches does not matter.
#[test]
fn rule_06_a_busy_connection_costs_one_check_in_each_idle_period() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watch = idle.watch(1, &both(10_000)).unwrap();
    for _ in 0..3600 {
        clock.advance_in_one_jump(TICK);
        watch.touch();
    }
    assert_eq!(events.len(), 0);
    assert!((36..=37).contains(&checks.len()), "{} checks in 360 s", checks.len());
}

#[test]
fn rule_06_a_silent_connection_costs_one_check() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    clock.advance_in_one_jump(ms(30)); // its time is up in the middle of a tick
    let _watch = idle.watch(1, &both(1000)).unwrap();
    clock.advance_in_one_jump(ms(70)); // and the clock moves from tick to tick
    walk(&clock, 12);
    assert_eq!((events.len(), checks.len()), (1, 1));
}

#[test]
fn rule_06_only_a_smaller_factor_costs_a_check() {
    let (timer, clock, checks) = counting();
    let (idle, _events) = recording(&timer, Answer::StopWatching);
    idle.scale(0.5).unwrap(); // no connection is watched
    let _watch = idle.watch(1, &both(60_000)).unwrap();
    for (factor, expected) in [(1.0, 0), (2.0, 0), (2.0, 0), (1.5, 1), (1.5, 1)] {
        idle.scale(factor).unwrap();
        clock.advance_in_one_jump(TICK);
        assert_eq!(checks.len(), expected, "after a factor of {factor}");
    }
}

/// Watches connections that are due in a tick each, from the second tick on.
fn one_in_each_tick(idle: &IdleTimeouts<u32>, count: u32) -> Vec<Watch> {
    let policy = |id| both(100 * (2 + u64::from(id)));
    (0..count).map(|id| idle.watch(id, &policy(id)).unwrap()).collect()
}

#[test]
fn rule_06_connections_that_have_left_cost_one_check() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1000, &both(100_000)).unwrap();
    let watches = one_in_each_tick(&idle, 500);
    clock.advance_in_one_jump(TICK);
    watches.into_iter().rev().for_each(drop); // the first one last
    walk(&clock, 998);
    assert_eq!((events.len(), checks.len()), (0, 0));
    walk(&clock, 1);
    assert_eq!((events.len(), checks.len()), (1, 1));
}

#[test]
fn rule_06_a_connection_that_leaves_in_time_costs_no_check() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    for watch in one_in_each_tick(&idle, 500) {
        clock.advance_in_one_jump(TICK);
        drop(watch);
    }
    walk(&clock, 10);
    assert_eq!((events.len(), checks.len()), (0, 0));
}

#[test]
fn rule_06_a_new_connection_causes_no_check_of_those_that_left() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    drop(one_in_each_tick(&idle, 50));
    let _watch = idle.watch(1000, &both(10_000)).unwrap();
    walk(&clock, 99);
    assert_eq!((events.len(), checks.len()), (0, 0));
    walk(&clock, 1);
    assert_eq!((events.len(), checks.len()), (1, 1));
}

/// One check for all of them, whenever they have come.
#[test]
fn rule_06_busy_connections_cost_one_check_in_each_idle_period() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let mut watches = Vec::new();
    for id in 0..300 {
        watches.push(idle.watch(id, &both(60_000)).unwrap());
        clock.advance_in_one_jump(TICK);
    }
    for _ in 0..3600 {
        clock.advance_in_one_jump(TICK);
        watches.iter().for_each(Watch::touch);
    }
    assert_eq!(events.len(), 0);
    assert!((6..=13).contains(&checks.len()), "{} checks in 390 s", checks.len());
}

#[test]
fn rule_06_very_many_connections_that_left_or_were_active_cost_few_wake_ups() {
    let (timer, clock, checks) = counting();
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let policies: Vec<_> = (0..50).map(|n| both(2000 + 100 * n)).collect();
    let watch = |id: u32| idle.watch(id, &policies[id as usize % 50]).unwrap();
    let mut watches: Vec<_> = (0..4 * MANY).map(watch).collect();
    clock.advance_in_one_jump(ms(1900));
    watches.iter().for_each(Watch::touch);
    watches.truncate(2 * MANY as usize);
    let mut ticks_with_a_check = 0;
    for _ in 0..18 {
        let before = checks.len();
        clock.advance_in_one_jump(TICK);
        ticks_with_a_check += u32::from(checks.len() > before);
    }
    assert_eq!(events.len(), 0);
    assert!((1..=2).contains(&ticks_with_a_check), "{ticks_with_a_check} in 1.8 s");
    walk(&clock, 60);
    assert_eq!(events.len(), 2 * MANY as usize);
}

#[test]
fn checks_are_in_no_count_of_the_timer() {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let (idle, events) = recording(&timer, Answer::KeepWatching);
    let first = idle.watch(1, &both(1000)).unwrap();
    assert_nothing_is_counted(&timer);
    let sooner = idle.watch(2, &both(100)).unwrap(); // pulls the check forward
    assert_nothing_is_counted(&timer);
    clock.advance_in_one_jump(TICK);
    assert_nothing_is_counted(&timer); // it waits in the executor
    jobs.take().into_iter().for_each(Job::run);
    assert_eq!(events.len(), 1);
    clock.advance_in_one_jump(TICK);
    drop(jobs.take()); // it is replaced
    drop(sooner); // puts the check off
    drop(first); // cancels it
    assert_nothing_is_counted(&timer);
    let _third = idle.watch(3, &both(1000)).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_nothing_is_counted(&timer);
    timer.stop().unwrap();
    assert!(idle.watch(4, &both(1000)).is_err());
    assert_nothing_is_counted(&timer);
}
