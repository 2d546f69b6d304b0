//! Periodic timeouts, on the manual clock.

mod common;

use common::{Record, TICK, assert_conserved, manual, ms};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wheelwork::{
    HashedWheelTimer, ManualClock, MissedTickBehavior, Period, RearmError, ScheduleError, Timeout,
    TimerTask,
};

/// A periodic timeout that notes the time of each run.
fn noting(
    timer: &HashedWheelTimer,
    clock: &ManualClock,
    period: Period,
) -> (Timeout, Record<u128>) {
    let runs = Record::new();
    let (record, now) = (runs.clone(), clock.clone());
    let timeout = timer.new_periodic(move || record.push(now.elapsed().as_millis()), period);
    (timeout.unwrap(), runs)
}

#[test]
fn a_fixed_rate_keeps_its_beat() {
    let (timer, clock) = manual();
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(ms(250)));
    (0..10).for_each(|_| clock.advance(TICK));
    assert_eq!(runs.take(), [300, 500, 800, 1000], "each at the first tick not before its beat");
    assert!(!timeout.is_expired(), "armed again");
    assert_eq!(timer.pending_timeouts(), 1);
    assert!(timeout.cancel() && timeout.is_cancelled());
    clock.advance(TICK * 10);
    assert_eq!(runs.len(), 0);
    assert_eq!(timer.metrics().rearmed, 4);
    assert_conserved(&timer);
}

#[test]
fn missed_runs_burst_delay_or_skip() {
    for (missed, in_jump, after) in [
        (MissedTickBehavior::Burst, 3, [1200, 1500]),
        (MissedTickBehavior::Delay, 1, [1300, 1600]),
        (MissedTickBehavior::Skip, 1, [1200, 1500]),
    ] {
        let (timer, clock) = manual();
        let (_timeout, runs) = noting(&timer, &clock, Period::fixed_rate(ms(300)).missed(missed));
        clock.advance(ms(1000));
        assert_eq!(runs.take(), vec![1000; in_jump], "{missed:?}");
        (0..6).for_each(|_| clock.advance(TICK));
        assert_eq!(runs.take(), after, "{missed:?}");
        assert_conserved(&timer);
    }
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_run() {
    let (timer, clock) = manual();
    let runs = Record::new();
    let (record, now) = (runs.clone(), clock.clone());
    let slow = move || {
        record.push(now.elapsed().as_millis());
        now.advance(TICK); // on the worker itself: the clock moves, nobody waits
    };
    timer.new_periodic(slow, Period::fixed_delay(ms(200)).initial_delay(Duration::ZERO)).unwrap();
    clock.advance(TICK); // runs from 100 to 200: next at 400
    (0..3).for_each(|_| clock.advance(TICK));
    assert_eq!(runs.take(), [100, 400]);
}

#[test]
fn a_run_may_cancel_its_own_series() {
    let (timer, clock) = manual();
    let own = Arc::new(Mutex::new(None::<Timeout>));
    let (runs, slot) = (Record::new(), own.clone());
    let record = runs.clone();
    let task = move || record.push(slot.lock().unwrap().as_ref().unwrap().cancel());
    let period = Period::fixed_rate(TICK).missed(MissedTickBehavior::Burst);
    *own.lock().unwrap() = Some(timer.new_periodic(task, period).unwrap());
    clock.advance(TICK * 5); // a burst of five is due
    assert_eq!(runs.take(), [true], "no run after the cancel");
    let timeout = own.lock().unwrap().take().unwrap();
    assert!(timeout.is_cancelled() && !timeout.is_expired());
    assert_conserved(&timer);
}

#[test]
fn a_stop_ends_a_burst() {
    let (timer, clock) = manual();
    let (started, is_running) = std::sync::mpsc::channel();
    let runs = Record::new();
    let record = runs.clone();
    let task = move || {
        record.push(());
        let _ = started.send(());
        std::thread::sleep(ms(1));
    };
    timer.new_periodic(task, Period::fixed_rate(TICK)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| clock.advance(TICK * 1_000_000)); // a quarter of an hour of runs
        is_running.recv().unwrap();
        assert!(timer.stop().unwrap().is_empty());
    });
    assert!(runs.len() < 1_000_000);
    assert_conserved(&timer);
}

#[test]
fn a_panic_ends_the_series() {
    let (timer, clock) = manual();
    let timeout = timer.new_periodic(|| panic!("a bad task"), Period::fixed_rate(TICK)).unwrap();
    (0..3).for_each(|_| clock.advance(TICK));
    assert_eq!(timer.metrics().panicked, 1);
    assert!(timeout.is_expired());
    assert_conserved(&timer);
}

#[test]
fn reschedule_moves_the_next_run_and_the_beat() {
    let (timer, clock) = manual();
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(ms(300)));
    clock.advance(TICK);
    timeout.reschedule(ms(100)).unwrap();
    (0..6).for_each(|_| clock.advance(TICK));
    assert_eq!(runs.take(), [200, 500]);
}

#[test]
fn a_period_of_zero_is_an_error_with_the_task() {
    let (timer, _clock) = manual();
    let runs = Record::new();
    let record = runs.clone();
    let error = timer.new_periodic(move || record.push(1), Period::fixed_rate(ms(0))).unwrap_err();
    assert!(matches!(error, ScheduleError::ZeroPeriod { .. }));
    assert_eq!(error.to_string(), "a period of 0s: expected a longer one");
    error.into_task()();
    assert_eq!(runs.len(), 1);
    let endless = Period::fixed_rate(Duration::MAX);
    let never = timer.new_periodic(|| (), endless).unwrap();
    assert!(never.cancel());
}

#[test]
fn a_periodic_timeout_is_returned_by_stop() {
    let (timer, clock) = manual();
    let (_timeout, runs) = noting(&timer, &clock, Period::fixed_rate(TICK));
    clock.advance(TICK);
    let mut unprocessed = timer.stop().unwrap();
    assert_eq!(unprocessed.len(), 1);
    unprocessed.remove(0).run();
    assert_eq!(runs.take(), [100, 100], "run once more by hand, and not armed again");
}

/// Arming again is only for the run itself.
#[test]
fn rearm_outside_of_a_run_gives_the_task_back() {
    struct Rearms(Record<&'static str>);
    impl TimerTask for Rearms {
        fn run(self: Box<Self>, timeout: &Timeout) {
            let record = self.0.clone();
            timeout.rearm(self, TICK).unwrap();
            // Pending again: a second time is refused.
            let error = timeout.rearm(Box::new(|| ()), TICK).unwrap_err();
            assert!(matches!(error, RearmError::NotRunning { .. }));
            record.push("run");
        }
    }
    let (timer, clock) = manual();
    let runs = Record::new();
    let timeout = timer.new_timeout(Rearms(runs.clone()), TICK).unwrap();
    let error = timeout.rearm(Box::new(|| ()), TICK).unwrap_err();
    assert!(matches!(error, RearmError::NotRunning { .. }), "{error}");
    (0..3).for_each(|_| clock.advance(TICK));
    assert_eq!(runs.len(), 3);
    assert!(timeout.cancel());
    let error = timeout.rearm(Box::new(|| ()), TICK).unwrap_err();
    drop(error.into_task());
    assert_eq!(timer.metrics().panicked, 0);
    assert_conserved(&timer);
}
