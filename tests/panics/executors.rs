//! Panics of executors and of the callback for refused jobs.

use super::{BadCancel, Bomb, assert_unhurt, with_a_bomb};
use crate::common::{Record, TICK, manual_with};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use wheelwork::HashedWheelTimer;
use wheelwork::executor::{Executor, Job, OnRefusal};

/// An executor that panics for its first jobs and refuses the others.
fn bad_for(jobs: usize) -> impl Executor {
    let calls = AtomicUsize::new(0);
    move |job: Job| -> Result<(), Job> {
        assert!(calls.fetch_add(1, SeqCst) >= jobs, "a bad executor");
        Err(job)
    }
}

#[test]
fn rule_05_a_panic_in_an_executor_is_contained() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(bad_for(2)));
    let told = Record::new();
    let bad = timer.new_timeout(BadCancel(told.clone()), TICK).unwrap();
    timer.new_timeout(with_a_bomb(), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert!(bad.is_cancelled());
    let metrics = timer.metrics();
    // The executor twice, a task that was told of its cancel, and one that was dropped.
    assert_eq!((metrics.panicked, metrics.abandoned, metrics.cancelled), (4, 2, 2));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_callback_for_refused_jobs_is_contained() {
    let calls = AtomicUsize::new(0);
    let callback = OnRefusal::callback(move |job: Job| {
        assert!(calls.fetch_add(1, SeqCst) > 0, "a bad callback");
        job.run();
    });
    let builder = HashedWheelTimer::builder().executor(bad_for(0)).on_refusal(callback);
    let (timer, clock) = manual_with(builder);
    let bad = timer.new_timeout(with_a_bomb(), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert!(bad.is_cancelled());
    assert_eq!((timer.metrics().panicked, timer.metrics().abandoned), (2, 1));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_panics_in_the_drops_of_an_executor_and_its_callback_are_contained() {
    struct BadDrop {
        _bomb: Bomb,
    }
    impl Executor for BadDrop {
        fn execute(&self, job: Job) -> Result<(), Job> {
            Err(job)
        }
    }
    for armed in [(true, false), (false, true), (true, true)] {
        let (executor, bomb) = (BadDrop { _bomb: Bomb(armed.0) }, Bomb(armed.1));
        let callback = OnRefusal::callback(move |job| {
            let _bomb = &bomb;
            job.run();
        });
        let builder = HashedWheelTimer::builder().executor(executor).on_refusal(callback);
        let (timer, clock) = manual_with(builder);
        assert_unhurt(&timer, &clock);
    }
}
