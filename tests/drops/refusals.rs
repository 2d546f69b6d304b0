//! Tasks that the timer, a stop or an executor refuses, and jobs that never run.

use super::{Probe, fates, schedule};
use crate::common::{Mutex, TICK, assert_conserved, eventually, manual, manual_with, ms};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wheelwork::executor::{Executor, Job, OnRefusal, ThreadPool};
use wheelwork::{HashedWheelTimer, RefusalReason, Timeout};

with_every_task!(
    rule_01_a_task_refused_by_the_limit_is_dropped_once,
    rule_01_a_task_refused_by_a_stopped_timer_is_dropped_once,
    rule_01_a_task_scheduled_during_a_stop_is_dropped_once,
    rule_01_a_task_whose_job_is_refused_is_dropped_once,
    rule_01_a_task_whose_refused_job_goes_to_the_callback_is_dropped_once,
    rule_01_a_task_whose_job_the_executor_drops_is_dropped_once,
    rule_01_a_task_whose_job_outlives_the_timer_is_dropped_once,
    rule_01_a_task_queued_in_a_pool_that_ends_is_dropped_once,
);

fn rule_01_a_task_refused_by_the_limit_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    let fates = fates();
    let timeout = timer.new_timeout(P::of(&fates), TICK).unwrap();
    let error = timer.new_timeout(P::of(&fates), TICK).expect_err("the limit is reached");
    assert!(matches!(error.reason(), RefusalReason::LimitReached { .. }));
    let refused = error.into_task();
    assert!(refused.is_whole());
    fates.assert(0, 0, 0);
    drop(refused);
    fates.assert(1, 0, 0);
    assert!(timeout.cancel());
    fates.assert(2, 0, 1);
}

fn rule_01_a_task_refused_by_a_stopped_timer_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual();
    let fates = fates();
    timer.stop().unwrap();
    let error = timer.new_timeout(P::of(&fates), TICK).expect_err("it is stopped");
    assert!(matches!(error.reason(), RefusalReason::Stopped));
    fates.assert(0, 0, 0);
    drop(error); // with the task
    fates.assert(1, 0, 0);
}

/// Each task is either accepted and returned, or refused.
fn rule_01_a_task_scheduled_during_a_stop_is_dropped_once<P: Probe>() {
    for round in 0..200 {
        let (timer, _clock) = manual();
        let fates = fates();
        let (refused, returned) = std::thread::scope(|scope| {
            let producers = [(); 2].map(|()| {
                scope.spawn(|| {
                    (0..50).filter(|_| timer.new_timeout(P::of(&fates), TICK).is_err()).count()
                })
            });
            (0..round * 20).for_each(|_| std::hint::spin_loop());
            let returned = timer.stop().unwrap();
            (producers.map(|p| p.join().unwrap()).iter().sum::<usize>(), returned)
        });
        assert_eq!(refused + returned.len(), 100);
        fates.assert(refused as u32, 0, 0);
        drop(returned);
        fates.assert(100, 0, 0);
    }
}

/// An executor that refuses every job.
struct Full;

impl Executor for Full {
    fn execute(&self, job: Job) -> Result<(), Job> {
        Err(job)
    }
}

fn rule_01_a_task_whose_job_is_refused_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(Full));
    let fates = fates();
    drop(schedule::<P>(&timer, &fates, 10, TICK));
    clock.advance_in_one_jump(TICK);
    fates.assert(10, 10, 0);
    assert_eq!(timer.metrics().refused, 10);

    let waits = HashedWheelTimer::builder().executor(Full).on_refusal(OnRefusal::Wait);
    let timer = waits.tick_duration(ms(1)).build().unwrap();
    timer.new_timeout(P::of(&fates), ms(1)).unwrap();
    eventually("it is refused", || timer.metrics().refused == 1);
    timer.stop().unwrap();
    fates.assert(11, 11, 0);
}

fn rule_01_a_task_whose_refused_job_goes_to_the_callback_is_dropped_once<P: Probe>() {
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let overflow = jobs.clone();
    let callback = OnRefusal::callback(move |job| overflow.lock().unwrap().push(job));
    let (timer, clock) =
        manual_with(HashedWheelTimer::builder().executor(Full).on_refusal(callback));
    let fates = fates();
    drop(schedule::<P>(&timer, &fates, 10, TICK));
    clock.advance_in_one_jump(TICK);
    fates.assert(0, 0, 0);
    let mut jobs: Vec<Job> = std::mem::take(&mut *jobs.lock().unwrap());
    jobs.drain(..5).for_each(Job::run);
    fates.assert(5, 5, 0);
    drop(jobs);
    fates.assert(10, 5, 5);
    assert_eq!(timer.metrics().abandoned, 5);
    assert_conserved(&timer);
}

fn rule_01_a_task_whose_job_the_executor_drops_is_dropped_once<P: Probe>() {
    for panics in [false, true] {
        let executor = move |job: Job| {
            assert!(!panics, "a bad executor");
            drop(job);
            Ok(())
        };
        let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
        let fates = fates();
        let timeouts = [(); 10].map(|()| timer.new_timeout(P::of(&fates), TICK).unwrap());
        clock.advance_in_one_jump(TICK);
        fates.assert(10, 0, 10);
        assert!(timeouts.iter().all(Timeout::is_cancelled));
        assert_eq!(timer.metrics().abandoned, 10);
    }
}

/// The jobs outlive the timer.
fn rule_01_a_task_whose_job_outlives_the_timer_is_dropped_once<P: Probe>() {
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let queue = jobs.clone();
    let executor = move |job| {
        queue.lock().unwrap().push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let fates = fates();
    fates.goes_on.store(u32::MAX, SeqCst);
    drop(schedule::<P>(&timer, &fates, 10, TICK));
    clock.advance_in_one_jump(TICK);
    drop((timer, clock));
    fates.assert(0, 0, 0);
    let mut jobs: Vec<Job> = std::mem::take(&mut *jobs.lock().unwrap());
    jobs.drain(..5).for_each(Job::run);
    eventually("they are told that they do not go on", || fates.dropped() == 5);
    fates.assert(5, 5, 5);
    drop(jobs);
    fates.assert(10, 5, 10);
}

/// A job in the pool's queue may run or not. Its task is dropped once in both cases.
fn rule_01_a_task_queued_in_a_pool_that_ends_is_dropped_once<P: Probe>() {
    let pool = ThreadPool::with_size(1, 1000).unwrap();
    let builder = HashedWheelTimer::builder().executor(pool).tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let fates = fates();
    timer.new_timeout(|| std::thread::sleep(ms(50)), Duration::ZERO).unwrap();
    drop(schedule::<P>(&timer, &fates, 100, ms(1)));
    eventually("they wait in the pool", || timer.metrics().expired == 101);
    drop(timer);
    eventually("all have ended", || fates.dropped() == 100);
    std::thread::sleep(ms(10));
    let (run, told) = (fates.run.load(SeqCst), fates.told.load(SeqCst));
    fates.assert(100, run, 100 - run);
    assert_eq!(told, 100 - run);
}
