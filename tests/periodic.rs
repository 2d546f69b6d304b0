//! Periodic timeouts, on the manual clock.

mod common;

use common::{Mutex, Record, TICK, assert_conserved, manual, manual_with, ms};
use std::sync::{Arc, mpsc};
use std::thread;
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
        let burst = || clock.advance(TICK * 1_000_000); // a quarter of an hour of runs
        let advance = scope.spawn(burst);
        is_running.recv().unwrap();
        assert!(timer.stop().unwrap().is_empty());
        advance.join().unwrap();
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

#[test]
fn a_burst_keeps_the_order_of_ticks() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let record = ran.clone();
    timer.new_periodic(move || record.push("periodic"), Period::fixed_rate(TICK * 10)).unwrap();
    timer.new_timeout(ran.note("once"), TICK * 15).unwrap();
    clock.advance(TICK * 30);
    assert_eq!(ran.take(), ["periodic", "once", "periodic", "periodic"]);
    assert_eq!(timer.metrics().rearmed, 3, "each run of a burst is counted");
}

/// It never catches up, so it is always due; the others still get their turn, and a stop too.
#[test]
fn a_task_slower_than_its_period_does_not_lock_the_worker() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let slow = || std::thread::sleep(ms(3));
    timer.new_periodic(slow, Period::fixed_rate(ms(1))).unwrap();
    let ran = Record::new();
    timer.new_timeout(ran.note(()), ms(20)).unwrap();
    common::eventually("the other timeout runs", || ran.len() == 1);
    assert!(timer.stop().unwrap().len() <= 1);
}

/// A burst of a million runs for each tick takes only the time that is left over.
#[test]
fn a_burst_yields_to_the_timeouts_that_are_due() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let endless = timer.new_periodic(|| (), Period::fixed_rate(Duration::from_nanos(1))).unwrap();
    let ran = Record::new();
    for n in 0..20 {
        timer.new_timeout(ran.note(n), ms(5 + 5 * n)).unwrap();
    }
    common::eventually("the others run", || ran.len() == 20);
    assert_eq!(ran.take(), (0..20).collect::<Vec<_>>());
    assert!(endless.cancel());
}

/// The executor has the job, and has not begun with it.
#[test]
fn a_cancel_that_was_true_withdraws_a_job_that_waits() {
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let queue = jobs.clone();
    let executor = move |job| {
        queue.lock().unwrap().push(job);
        Ok(())
    };
    let (timer, clock) = common::manual_with(HashedWheelTimer::builder().executor(executor));
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(TICK));
    clock.advance(TICK);
    assert!(timeout.cancel());
    jobs.lock().unwrap().drain(..).for_each(wheelwork::executor::Job::run);
    assert_eq!(runs.len(), 0);
    assert!(timeout.is_cancelled());
    assert_conserved(&timer);
}

/// The first run arms the timeout again and works on; it ends during the second.
#[test]
fn overlapping_runs_do_not_end_each_other() {
    struct Early(u32, Record<Result<(), RearmError>>);
    impl TimerTask for Early {
        fn run(self: Box<Self>, timeout: &Timeout) {
            let Early(n, ref record) = *self;
            let record = record.clone();
            if n == 1 {
                std::thread::sleep(ms(200));
            }
            if n < 3 {
                record.push(timeout.rearm(Box::new(Early(n + 1, record.clone())), ms(10)));
            }
            if n == 0 {
                std::thread::sleep(ms(100));
                // The second run may have begun: this one cannot arm it a second time.
                assert!(timeout.rearm(Box::new(|| ()), ms(10)).is_err());
            }
        }
    }
    let pool = wheelwork::executor::ThreadPool::with_size(4, 16).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool);
    let timer = builder.build().unwrap();
    let armed = Record::new();
    let timeout = timer.new_timeout(Early(0, armed.clone()), ms(1)).unwrap();
    common::eventually("the series comes to its end", || {
        armed.len() == 3 && timeout.is_expired() && timer.metrics().expired == 4
    });
    assert!(armed.take().iter().all(Result::is_ok));
    assert_eq!(timer.metrics().panicked, 0);
}

/// A task that arms itself again at once, and on its first run then waits.
struct Again(Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>);

impl TimerTask for Again {
    fn run(mut self: Box<Self>, timeout: &Timeout) {
        let first = self.0.take();
        timeout.rearm(self, TICK).expect("the latest run");
        if let Some((armed, may_end)) = first {
            armed.send(()).unwrap();
            may_end.recv().unwrap();
        }
    }
}

/// Runs are told apart by 12 bits, and the first is still at work when its name comes round.
#[test]
fn a_run_that_outlasts_thousands_ends_none_of_them() {
    let jobs = Record::new();
    let queue = jobs.clone();
    let executor = move |job| {
        queue.push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let next = || {
        clock.advance(TICK);
        jobs.take().pop().expect("one is due in each tick")
    };
    let (armed, is_armed) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    timer.new_timeout(Again(Some((armed, may_end))), TICK).unwrap();
    let first = next();
    let first = thread::spawn(move || first.run());
    is_armed.recv().unwrap();
    (0..4095).for_each(|_| next().run());
    let of_its_name = next();
    end.send(()).unwrap();
    first.join().unwrap();
    of_its_name.run();
    assert_eq!((timer.metrics().panicked, timer.pending_timeouts()), (0, 1));
}
