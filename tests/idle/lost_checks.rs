//! Checks that an executor drops, delays or runs too late, and a timer at its limit.

use super::{both, queueing, recording, walk};
use crate::common::{Record, TICK, assert_conserved, manual_with};
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, IdleKind};

#[test]
fn rule_05_a_lost_check_of_all_connections_is_replaced() {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1, &both(10_000)).unwrap();
    idle.scale(0.01).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(jobs.take().len(), 1, "it is dropped");
    clock.advance_in_one_jump(TICK);
    jobs.take().into_iter().for_each(Job::run);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 200)]);
}

/// The executor drops the check's job three times, and the check is scheduled anew.
#[test]
fn rule_05_a_check_whose_job_was_dropped_is_replaced() {
    let dropped = Record::new();
    let record = dropped.clone();
    let executor = move |job: Job| {
        if record.len() < 3 {
            record.push(());
            drop(job);
        } else {
            job.run();
        }
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1, &both(100)).unwrap();
    walk(&clock, 3);
    assert_eq!((dropped.len(), events.len()), (3, 0));
    walk(&clock, 1);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 400)]);
}

/// Its connections have left while its job waited, and another check is there for the new one.
#[test]
fn an_outdated_check_does_nothing() {
    for end in [Job::run, drop] {
        let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
        let (idle, events) = recording(&timer, Answer::StopWatching);
        let first = idle.watch(1, &both(100)).unwrap();
        clock.advance_in_one_jump(TICK);
        drop(first);
        let _second = idle.watch(2, &both(100)).unwrap();
        clock.advance_in_one_jump(TICK);
        let [stale, current] = jobs.take().try_into().unwrap();
        end(stale);
        clock.advance_in_one_jump(TICK);
        assert_eq!((events.len(), jobs.len()), (0, 0), "no report, and no other check");
        Job::run(current);
        assert_eq!(events.take(), [(2, IdleKind::Both, true, 200)]);
        assert_conserved(&timer);
    }
}

#[test]
fn connections_are_watched_in_a_timer_at_its_limit() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let other = timer.new_timeout(|| (), Duration::MAX).unwrap();
    let _watches = [1, 2, 3].map(|id| idle.watch(id, &both(100)).unwrap());
    assert_eq!(timer.pending_timeouts(), 1, "the other one");
    assert!(timer.new_timeout(|| (), TICK).is_err());
    clock.advance_in_one_jump(TICK);
    assert_eq!((events.len(), idle.watched()), (3, 0));
    assert!(other.cancel());
    assert!(timer.new_timeout(|| (), TICK).is_ok());
    assert_conserved(&timer);
}

/// A check neither takes a place in the limit nor leaves one.
#[test]
fn rule_05_a_lost_check_is_replaced_in_a_timer_at_its_limit() {
    let limited = HashedWheelTimer::builder().max_pending_timeouts(1);
    let (timer, clock, jobs) = queueing(limited);
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let _watch = idle.watch(1, &both(100)).unwrap();
    clock.advance_in_one_jump(TICK);
    let other = timer.new_timeout(|| (), Duration::MAX).unwrap();
    drop(jobs.take());
    assert_eq!((events.len(), idle.watched(), timer.pending_timeouts()), (0, 1, 1));
    clock.advance_in_one_jump(TICK);
    jobs.take().into_iter().for_each(Job::run);
    assert_eq!(events.take(), [(1, IdleKind::Both, true, 200)]);
    assert!(timer.new_timeout(|| (), Duration::MAX).is_err());
    assert!(other.cancel());
    assert!(timer.new_timeout(|| (), Duration::MAX).is_ok());
    assert_conserved(&timer);
}

/// The stop finds no check to end. The executor's check reports when it is run or dropped.
#[test]
fn rule_01_a_check_that_waits_in_an_executor_reports_a_stop() {
    for end in [Job::run, drop] {
        let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
        let (idle, events) = recording(&timer, Answer::KeepWatching);
        let watch = idle.watch(1, &both(100)).unwrap();
        clock.advance_in_one_jump(TICK);
        watch.touch();
        timer.stop().unwrap();
        assert!(idle.watch(2, &both(100)).is_err());
        assert_eq!(events.len(), 0);
        jobs.take().into_iter().for_each(end);
        assert_eq!(events.take(), [(1, IdleKind::TimerStopped, true, 0)]);
        assert_eq!(idle.watched(), 0);
    }
}
