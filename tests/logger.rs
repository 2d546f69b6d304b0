//! A logger that panics at every line that the library logs: no timer is affected.
//!
//! A process has one logger, so this is a file of its own.
#![cfg(feature = "log")]

mod common;

use common::wakers::Alarm;
use common::{Mutex, Record, TICK, assert_conserved, eventually, manual, manual_with, ms};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use wheelwork::executor::{Executor, Job, OnRefusal};
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, Timeout};

struct BadLogger(AtomicUsize);

static LOGGER: BadLogger = BadLogger(AtomicUsize::new(0));

impl log::Log for BadLogger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target() == "wheelwork" {
            self.0.fetch_add(1, SeqCst);
            panic!("a bad logger");
        }
    }

    fn flush(&self) {}
}

/// The tests run one after another, so that each can count its own lines.
struct BadLog<'a> {
    before: usize,
    _alone: std::sync::MutexGuard<'a, ()>,
}

impl BadLog<'_> {
    fn begin() -> Self {
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Only the first test can set the logger.
        let _ = log::set_logger(&LOGGER);
        log::set_max_level(log::LevelFilter::Warn);
        common::keep_events_from_the_log();
        Self { before: LOGGER.0.load(SeqCst), _alone: alone }
    }

    fn lines(&self) -> usize {
        LOGGER.0.load(SeqCst) - self.before
    }
}

#[test]
fn rule_05_a_task_may_panic_under_a_logger_that_panics() {
    let log = BadLog::begin();
    let (timer, clock) = manual();
    let ran = Record::new();
    timer.new_timeout(|| panic!("a bad task"), TICK).unwrap();
    timer.new_timeout(ran.note("same tick"), TICK).unwrap();
    timer.new_timeout(ran.note("next tick"), 2 * TICK).unwrap();
    clock.advance_in_one_jump(2 * TICK);
    assert!(log.lines() > 0, "the logger has panicked");
    assert_eq!(ran.take(), ["same tick", "next tick"]);
    assert_eq!(timer.metrics().panicked, 1, "the logger is no task");
    timer.new_timeout(|| (), TICK).unwrap();
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert_conserved(&timer);
}

#[test]
fn the_drop_of_the_last_handle_warns_if_timeouts_are_pending() {
    let log = BadLog::begin();
    let (stopped, _clock) = manual();
    stopped.new_timeout(|| (), TICK).unwrap();
    assert_eq!(stopped.stop().unwrap().len(), 1);
    drop(stopped);
    let (done, _clock) = manual();
    done.new_timeout(|| (), TICK).unwrap().cancel();
    // A future that waits does not keep its timer alive, and is woken at its end.
    let (task, mut sleep) = (Alarm::new(), done.sleep(TICK));
    assert!(task.poll(&mut sleep).is_pending());
    drop(done);
    eventually("the timer has ended", || task.wakes() == 1);
    assert_eq!(log.lines(), 0, "nothing of a user was pending");
    let (forgotten, _clock) = manual();
    let clone = forgotten.clone();
    let pending = forgotten.new_timeout(|| (), TICK).unwrap();
    drop(forgotten);
    assert!(pending.is_pending(), "there is another handle");
    drop(clone);
    eventually("it is cancelled", || pending.is_cancelled());
    eventually("the worker has warned", || log.lines() == 1);
}

struct BadCancel;

impl TimerTask for BadCancel {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        panic!("a bad cancelled callback");
    }
}

#[test]
fn rule_05_a_cancel_callback_may_panic_under_a_logger_that_panics() {
    let log = BadLog::begin();
    let (timer, _clock) = manual();
    assert!(timer.new_timeout(BadCancel, TICK).unwrap().cancel());
    assert!(log.lines() > 0, "the logger has panicked");
    assert_eq!((timer.metrics().panicked, timer.pending_timeouts()), (1, 0));
    let pending = timer.new_timeout(BadCancel, TICK).unwrap();
    let after = timer.new_timeout(|| (), 2 * TICK).unwrap();
    let so_far = log.lines();
    drop(timer);
    eventually("both are cancelled", || pending.is_cancelled() && after.is_cancelled());
    eventually("the worker has warned of both", || log.lines() == so_far + 2);
}

/// The job is dropped while the executor's panic unwinds. That is logged too.
#[test]
fn rule_05_an_executor_may_panic_or_drop_its_job_under_a_logger_that_panics() {
    let log = BadLog::begin();
    let calls = AtomicUsize::new(0);
    let executor = move |job: Job| match calls.fetch_add(1, SeqCst) {
        0 => panic!("a bad executor"),
        1 => {
            drop(job);
            Ok(())
        }
        _ => Err(job),
    };
    let callback = OnRefusal::callback(|_job| panic!("a bad callback"));
    let builder = HashedWheelTimer::builder().executor(executor).on_refusal(callback);
    let (timer, clock) = manual_with(builder);
    (0..3).for_each(|_| drop(timer.new_timeout(BadCancel, TICK).unwrap()));
    clock.advance_in_one_jump(TICK);
    assert!(log.lines() > 0, "the logger has panicked");
    let metrics = timer.metrics();
    // The executor, the callback, and three tasks that were told of their cancel.
    assert_eq!((metrics.abandoned, metrics.cancelled, metrics.panicked), (3, 3, 5));
    assert!(timer.stop().unwrap().is_empty());
    assert_conserved(&timer);
}

#[test]
fn rule_05_the_drop_of_an_executor_may_panic_under_a_logger_that_panics() {
    struct BadDrop;
    impl Executor for BadDrop {
        fn execute(&self, job: Job) -> Result<(), Job> {
            job.run();
            Ok(())
        }
    }
    impl Drop for BadDrop {
        fn drop(&mut self) {
            panic!("a bad executor");
        }
    }
    let log = BadLog::begin();
    let timer = HashedWheelTimer::builder().executor(BadDrop).build().unwrap();
    timer.new_timeout(|| (), Duration::MAX).unwrap();
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert!(log.lines() > 0, "the logger has panicked");
}

#[test]
fn rule_05_idle_callbacks_and_connections_may_panic_under_a_logger_that_panics() {
    struct BadConnection;
    impl Drop for BadConnection {
        fn drop(&mut self) {
            panic!("a bad connection");
        }
    }
    let log = BadLog::begin();
    let (timer, clock) = manual();
    let calls = Arc::new(Mutex::new(0));
    let count = calls.clone();
    let idle = IdleTimeouts::new(&timer, move |_: &mut BadConnection, _| {
        *count.lock().unwrap() += 1;
        assert!(*count.lock().unwrap() > 1, "a bad callback");
        Answer::StopWatching
    });
    let watch = idle.watch(BadConnection, &IdlePolicy::new().both(TICK)).unwrap();
    (0..6).for_each(|_| clock.advance_in_one_jump(TICK));
    assert!(log.lines() > 0, "the logger has panicked");
    assert_eq!((*calls.lock().unwrap(), idle.watched(), idle.panicked()), (2, 0, 1));
    drop(watch);
    let ran = Record::new();
    timer.new_timeout(ran.note(()), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran.len(), 1);
}

#[test]
fn rule_05_a_warning_of_too_many_timers_may_panic_in_the_logger() {
    let log = BadLog::begin();
    let timers: Vec<_> = (0..70).map(|_| HashedWheelTimer::new().unwrap()).collect();
    assert!(log.lines() > 0, "the logger has panicked");
    timers.iter().for_each(|timer| _ = timer.stop_timeout(ms(60_000)).unwrap());
}
