//! A stop, or the drop of the last handle, during a run after which the timeout goes on.

use crate::common::{Gate, Record, assert_conserved, blocking_task, eventually, ms, run_here};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use wheelwork::executor::Job;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::time::Clock;
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, Period, StopError, Timeout};

/// A clock that shows by its weak references whether the timer is gone.
struct Held(#[expect(dead_code, reason = "counted")] Arc<()>);

impl Clock for Held {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// A timer with room for one timeout.
fn timer(with: impl FnOnce(Builder) -> Builder) -> (HashedWheelTimer, Weak<()>) {
    let held = Arc::new(());
    let alive = Arc::downgrade(&held);
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).clock(Held(held));
    (with(builder.max_pending_timeouts(1)).build().unwrap(), alive)
}

/// A task that blocks in its first run, and goes on after each run.
struct Retry {
    blocks: Option<Box<dyn FnOnce() + Send>>,
    seen: Record<&'static str>,
}

impl TimerTask for Retry {
    fn run(mut self, _run: &Run<'_>) -> Next<Self> {
        self.seen.push("run");
        self.blocks.take().into_iter().for_each(|block| block());
        Next::after(self, Duration::from_secs(3600))
    }

    fn cancelled(self, timeout: &Timeout) {
        assert!(timeout.is_cancelled());
        self.seen.push("cancelled");
    }
}

/// Schedules such a task and waits until it runs.
fn running(timer: &HashedWheelTimer) -> (Timeout, Gate, Record<&'static str>) {
    let (blocks, gate) = blocking_task();
    let seen = Record::new();
    let task = Retry { blocks: Some(Box::new(blocks)), seen: seen.clone() };
    let timeout = timer.new_timeout(task, Duration::ZERO).unwrap();
    gate.wait();
    (timeout, gate, seen)
}

/// Stops the timer, and lets the task go on once the timer is closed.
fn stop_during_the_run(timer: &HashedWheelTimer, gate: Gate) -> Vec<wheelwork::Unprocessed> {
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| timer.stop().unwrap());
        let is_closed = || match timer.new_timeout(|| (), Duration::MAX) {
            Ok(timeout) => !timeout.cancel(),
            Err(error) => error.to_string().contains("stopped"),
        };
        eventually("the timer is closed", is_closed);
        gate.open();
        stop.join().unwrap()
    })
}

#[test]
fn rule_01_a_stop_during_a_run_returns_the_timeout_that_goes_on() {
    for on_worker in [false, true] {
        let (timer, alive) = timer(|b| if on_worker { b.executor(run_here) } else { b });
        let (timeout, gate, seen) = running(&timer);
        let mut returned = stop_during_the_run(&timer, gate);
        assert_eq!(returned.len(), 1, "executor: {on_worker}");
        let metrics = timer.metrics();
        assert_eq!((metrics.expired, metrics.rearmed, metrics.returned), (1, 1, 1));
        assert_conserved(&timer);
        assert!(!timeout.is_cancelled() && !timeout.is_expired() && !timeout.cancel());
        let unprocessed = returned.remove(0);
        assert!(unprocessed.deadline() > Instant::now() + Duration::from_secs(1800));
        assert_eq!(unprocessed.timeout(), &timeout);
        assert!(unprocessed.is::<Retry>());
        assert_eq!(seen.take(), ["run"]);
        unprocessed.run();
        assert_eq!(seen.take(), ["run"]);
        drop((timer, timeout));
        eventually("nothing keeps the timer", || alive.strong_count() == 0);
    }
}

#[test]
fn rule_01_a_stop_during_a_run_returns_the_series() {
    let (timer, alive) = timer(|builder| builder);
    let (blocks, gate) = blocking_task();
    let mut blocks = Some(blocks);
    let series = move || blocks.take().into_iter().for_each(|block| block());
    timer.new_periodic(series, Period::fixed_rate(ms(1))).unwrap();
    gate.wait();
    assert_eq!(stop_during_the_run(&timer, gate).len(), 1);
    assert_eq!(timer.metrics().returned, 1);
    assert_conserved(&timer);
    drop(timer);
    eventually("nothing keeps the timer", || alive.strong_count() == 0);
}

#[test]
fn rule_01_a_later_stop_returns_what_the_first_could_not_wait_for() {
    let (timer, alive) = timer(|builder| builder);
    let (timeout, gate, seen) = running(&timer);
    let error = timer.stop_timeout(ms(1)).unwrap_err();
    assert!(matches!(error, StopError::StillRunning { task: Some(_), .. }));
    gate.open();
    assert_eq!(timer.stop_timeout(ms(60_000)).unwrap().len(), 1);
    assert_eq!((timer.metrics().returned, seen.take()), (1, vec!["run"]));
    assert_conserved(&timer);
    drop((timer, timeout));
    eventually("nothing keeps the timer", || alive.strong_count() == 0);
}

#[test]
fn rule_01_the_drop_of_the_last_handle_during_a_run_tells_the_task_that_goes_on() {
    let (timer, alive) = timer(|builder| builder);
    let (timeout, gate, seen) = running(&timer);
    drop(timer);
    gate.open();
    eventually("it is told", || seen.len() == 2);
    assert_eq!(seen.take(), ["run", "cancelled"]);
    assert!(timeout.is_cancelled() && !timeout.is_expired());
    drop(timeout);
    eventually("nothing keeps the timer", || alive.strong_count() == 0);
}

/// A stop does not wait for a job that an executor has taken. What goes on after the end of the timer is
/// cancelled.
#[test]
fn rule_01_a_job_that_goes_on_after_the_end_of_the_timer_is_told() {
    for stops in [true, false] {
        let (jobs, taken) = std::sync::mpsc::channel::<Job>();
        let (timer, alive) = timer(|builder| {
            builder.executor(move |job| jobs.send(job).map_err(|refused| refused.0))
        });
        let seen = Record::new();
        let task = Retry { blocks: None, seen: seen.clone() };
        let timeout = timer.new_timeout(task, Duration::ZERO).unwrap();
        let job = taken.recv().unwrap();
        if stops {
            assert!(timer.stop().unwrap().is_empty());
            job.run();
            let metrics = timer.metrics();
            assert_eq!((metrics.expired, metrics.rearmed, metrics.cancelled), (1, 1, 1));
            assert_conserved(&timer);
            drop(timer);
        } else {
            drop(timer);
            job.run();
            eventually("it is told", || seen.len() == 2);
        }
        assert_eq!(seen.take(), ["run", "cancelled"]);
        assert!(timeout.is_cancelled() && timeout.deadline().is_none());
        drop(timeout);
        eventually("nothing keeps the timer", || alive.strong_count() == 0);
    }
}
