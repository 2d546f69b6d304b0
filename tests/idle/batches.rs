//! Reports of many connections at once.

use super::{MANY, Seen, both, queueing, recording, seen};
use crate::common::{Record, TICK, assert_conserved, manual, manual_with, ms};
use std::time::Duration;
use wheelwork::executor::Job;
use wheelwork::idle::{Answer, Idle, IdleKind, IdlePolicy, IdleTimeouts};
use wheelwork::{HashedWheelTimer, ManualClock};

#[test]
fn a_batch_is_one_call_and_one_job() {
    let batches = Record::new();
    let jobs = Record::new();
    let (record, count) = (batches.clone(), jobs.clone());
    let executor = move |job: Job| {
        count.push(());
        job.run();
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let idle = IdleTimeouts::batched(&timer, move |batch: &mut [Idle<u32>]| {
        record.push(batch.iter().map(|idle| idle.connection).collect::<Vec<_>>());
        for idle in batch {
            assert!(idle.is_still_silent() && idle.event().kind == IdleKind::Both);
            if idle.connection % 2 == 0 {
                idle.answer(Answer::StopWatching);
            }
        }
    });
    let _watches: Vec<_> = (0..1000).map(|id| idle.watch(id, &both(100)).unwrap()).collect();
    clock.advance_in_one_jump(TICK);
    assert_eq!(batches.take(), [(0..1000).collect::<Vec<_>>()]);
    assert_eq!((jobs.len(), idle.watched()), (1, 500), "without an answer it is watched on");
    clock.advance_in_one_jump(TICK);
    assert_eq!(batches.take()[0].len(), 500);
}

/// A timer whose idle timeouts record the ids of each batch, and how each was told.
fn batching(
    answer: Answer,
) -> (ManualClock, IdleTimeouts<u32>, Record<Vec<Seen>>, HashedWheelTimer) {
    let (timer, clock) = manual();
    let batches = Record::new();
    let record = batches.clone();
    let idle = IdleTimeouts::batched(&timer, move |batch: &mut [Idle<u32>]| {
        record.push(batch.iter().map(|idle| seen(idle.connection, idle.event())).collect());
        batch.iter_mut().for_each(|idle| idle.answer(answer));
    });
    (clock, idle, batches, timer)
}

/// Several batches, none of which is large, and each connection once.
fn assert_sliced(batches: &[Vec<Seen>], expected: impl Fn(u32) -> Seen) {
    let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|&size| size <= MANY as usize / 3), "{sizes:?}");
    let mut all = batches.concat();
    all.sort_unstable_by_key(|&(id, ..)| id);
    assert_eq!(all, (0..MANY).map(expected).collect::<Vec<_>>());
}

#[test]
fn many_connections_due_in_one_tick_are_reported_in_batches_within_it() {
    let (clock, idle, batches, _timer) = batching(Answer::KeepWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &both(250)).unwrap()).collect();
    clock.advance_in_one_jump(ms(299));
    assert_eq!(batches.len(), 0);
    clock.advance_in_one_jump(ms(1));
    assert_sliced(&batches.take(), |id| (id, IdleKind::Both, true, 300));
    clock.advance_in_one_jump(ms(200));
    assert_eq!(batches.len(), 0);
    clock.advance_in_one_jump(ms(100));
    assert_sliced(&batches.take(), |id| (id, IdleKind::Both, false, 600));
    drop(watches);
}

#[test]
fn many_connections_with_two_due_kinds_are_reported_for_both() {
    let (clock, idle, batches, _timer) = batching(Answer::KeepWatching);
    let policy = IdlePolicy::new().reader(ms(100)).writer(ms(100));
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &policy).unwrap()).collect();
    clock.advance_in_one_jump(TICK);
    let (readers, writers): (Vec<_>, Vec<_>) = (batches.take().into_iter())
        .partition(|batch| batch.iter().all(|&(_, kind, ..)| kind == IdleKind::Reader));
    assert_sliced(&readers, |id| (id, IdleKind::Reader, true, 100));
    assert_sliced(&writers, |id| (id, IdleKind::Writer, true, 100));
    drop(watches);
}

#[test]
fn shorter_durations_of_many_are_noticed_in_the_next_tick() {
    let (clock, idle, batches, _timer) = batching(Answer::StopWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &both(10_000)).unwrap()).collect();
    clock.advance_in_one_jump(ms(5000));
    idle.scale(0.5).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_sliced(&batches.take(), |id| (id, IdleKind::Both, true, 5100));
    assert_eq!(idle.watched(), 0);
    drop(watches);
}

#[test]
fn a_stop_reports_many_connections_in_batches() {
    let (clock, idle, batches, timer) = batching(Answer::KeepWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &both(10_000)).unwrap()).collect();
    clock.advance_in_one_jump(ms(5000));
    drop(timer.stop().unwrap());
    assert_sliced(&batches.take(), |id| (id, IdleKind::TimerStopped, true, 5000));
    assert_eq!(idle.watched(), 0);
    assert!(idle.watch(0, &both(100)).is_err());
    drop(watches);
}

/// The check that should handle the next slice is lost, and another one handles it.
#[test]
fn rule_05_a_check_lost_between_two_slices_is_replaced() {
    let (timer, clock, jobs) = queueing(HashedWheelTimer::builder());
    let (idle, events) = recording(&timer, Answer::StopWatching);
    let watches: Vec<_> = (0..MANY).map(|id| idle.watch(id, &both(100)).unwrap()).collect();
    clock.advance_in_one_jump(TICK);
    jobs.take().into_iter().for_each(Job::run);
    let first = events.len();
    assert!(first > 0 && first < MANY as usize);
    clock.advance_in_one_jump(Duration::ZERO);
    assert_eq!(jobs.take().len(), 1, "the next slice, which is dropped");
    while idle.watched() > 0 {
        clock.advance_in_one_jump(TICK);
        let slices = jobs.take();
        assert!(!slices.is_empty(), "{} are forgotten", idle.watched());
        slices.into_iter().for_each(Job::run);
    }
    assert_eq!(events.len(), MANY as usize);
    drop(watches);
    assert_conserved(&timer);
}
