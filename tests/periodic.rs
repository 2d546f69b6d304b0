//! Periodic timeouts, on the manual clock.

use crate::common::{
    Mutex, Record, TICK, assert_conserved, eventually, manual, manual_with, ms, run_here,
};
use std::ops::{Add, ControlFlow, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{
    HashedWheelTimer, ManualClock, MissedTickBehavior, Period, RefusalReason, Timeout,
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

fn bad_task() {
    panic!("a bad task");
}

/// A timer keeps deadlines in steps of 8 ns; the series does not drift by them.
#[test]
fn a_fixed_rate_does_not_drift() {
    let every = TICK + Duration::from_nanos(1);
    let (timer, clock) = manual();
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(every));
    (0..101).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(runs.len(), 100);
    let late = timeout.deadline().unwrap() - (timer.started_at() + every * 101);
    assert!(late < Duration::from_nanos(8), "{late:?} off after 100 runs");
}

#[test]
fn a_fixed_rate_keeps_its_beat() {
    let (timer, clock) = manual();
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(ms(250)));
    (0..10).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(runs.take(), [300, 500, 800, 1000], "each at the first tick not before its beat");
    assert!(!timeout.is_expired(), "armed again");
    assert_eq!(timer.pending_timeouts(), 1);
    assert!(timeout.cancel() && timeout.is_cancelled());
    clock.advance_in_one_jump(TICK * 10);
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
        let (_timeout, runs) = noting(&timer, &clock, Period::fixed_rate_with(ms(300), missed));
        clock.advance_in_one_jump(ms(1000));
        assert_eq!(runs.take(), vec![1000; in_jump], "{missed:?}");
        (0..6).for_each(|_| clock.advance_in_one_jump(TICK));
        assert_eq!(runs.take(), after, "{missed:?}");
        assert_conserved(&timer);
    }
}

/// An interval differs here: see `a_delayed_interval_counts_from_a_tick_that_is_taken_late`.
#[test]
fn a_late_run_delays_the_next_only_if_that_is_missed() {
    for (run_at, next_at) in [(500, 600), (600, 900), (700, 1000)] {
        let (timer, clock) = manual();
        let period = Period::fixed_rate_with(ms(300), MissedTickBehavior::Delay);
        let (_timeout, runs) = noting(&timer, &clock, period);
        clock.advance_in_one_jump(ms(run_at)); // the run of 300
        assert_eq!(runs.take(), [u128::from(run_at)]);
        clock.advance_in_one_jump(ms(next_at - run_at - 1));
        assert_eq!(runs.take(), [], "before {next_at}");
        clock.advance_in_one_jump(ms(1));
        assert_eq!(runs.take(), [u128::from(next_at)]);
    }
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_run() {
    let (timer, clock) = manual();
    let runs = Record::new();
    let (record, now) = (runs.clone(), clock.clone());
    let slow = move || {
        record.push(now.elapsed().as_millis());
        now.advance_in_one_jump(TICK); // on the worker itself: the clock moves, nobody waits
    };
    timer.new_periodic(slow, Period::fixed_delay(ms(200)).initial_delay(Duration::ZERO)).unwrap();
    clock.advance_in_one_jump(TICK); // runs from 100 to 200: next at 400
    (0..3).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(runs.take(), [100, 400]);
}

#[test]
fn a_run_may_cancel_its_own_series() {
    let (timer, clock) = manual();
    let own = Arc::new(Mutex::new(None::<Timeout>));
    let (runs, slot) = (Record::new(), own.clone());
    let record = runs.clone();
    let task = move || record.push(slot.lock().unwrap().as_ref().unwrap().cancel());
    let period = Period::fixed_rate_with(TICK, MissedTickBehavior::Burst);
    *own.lock().unwrap() = Some(timer.new_periodic(task, period).unwrap());
    clock.advance_in_one_jump(TICK * 5); // a burst of five is due
    assert_eq!(runs.take(), [true], "no run after the cancel");
    let timeout = own.lock().unwrap().take().unwrap();
    assert!(timeout.is_cancelled() && !timeout.is_expired());
    assert_conserved(&timer);
}

#[test]
fn rule_09_a_stop_ends_a_burst() {
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
        let burst = || clock.advance_in_one_jump(TICK * 1_000_000); // a quarter of an hour of runs
        let advance = scope.spawn(burst);
        is_running.recv().unwrap();
        assert_eq!(timer.stop().unwrap().len(), 1, "the series");
        advance.join().unwrap();
    });
    assert!(runs.len() < 1_000_000);
    assert_conserved(&timer);
}

#[test]
fn rule_05_a_panic_ends_the_series() {
    let (timer, clock) = manual();
    let timeout = timer.new_periodic(bad_task, Period::fixed_rate(TICK)).unwrap();
    (0..3).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(timer.metrics().panicked, 1);
    assert!(timeout.is_expired());
    assert_conserved(&timer);
}

#[test]
fn reschedule_moves_the_next_run_and_the_beat() {
    let (timer, clock) = manual();
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(ms(300)));
    clock.advance_in_one_jump(TICK);
    timeout.reschedule(ms(100)).unwrap();
    (0..6).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(runs.take(), [200, 500]);
}

#[test]
fn a_period_of_zero_is_an_error_with_the_task() {
    let (timer, _clock) = manual();
    let runs = Record::new();
    let record = runs.clone();
    let error = timer.new_periodic(move || record.push(1), Period::fixed_rate(ms(0))).unwrap_err();
    assert!(matches!(error.reason(), RefusalReason::ZeroPeriod));
    assert_eq!(error.to_string(), "the period must be greater than zero");
    error.into_task()();
    assert_eq!(runs.len(), 1);
}

/// `Next::after(Duration::MAX)` does so too.
#[test]
fn rule_10_a_period_of_ever_waits_after_its_first_run() {
    let (timer, clock) = manual();
    let rates = [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip]
        .map(|missed| Period::fixed_rate_with(Duration::MAX, missed));
    for period in [rates[0], rates[1], rates[2], Period::fixed_delay(Duration::MAX)] {
        let never = timer.new_periodic(|| (), period).unwrap();
        let runs = Record::new();
        let record = runs.clone();
        let period = period.initial_delay(TICK);
        let once = timer.new_periodic(move || record.push(()), period).unwrap();
        clock.advance_in_one_jump(TICK);
        clock.advance(Duration::from_secs(1_000_000_000));
        assert_eq!(runs.len(), 1);
        assert!(never.is_pending() && once.is_pending(), "{period:?}");
        once.reschedule(TICK).unwrap();
        clock.advance_in_one_jump(TICK);
        assert_eq!(runs.len(), 2);
        assert!(never.cancel() && once.cancel());
    }
    assert_conserved(&timer);
}

#[test]
fn rule_01_a_periodic_timeout_is_returned_by_stop() {
    let (timer, clock) = manual();
    let (_timeout, runs) = noting(&timer, &clock, Period::fixed_rate(TICK));
    clock.advance_in_one_jump(TICK);
    let mut unprocessed = timer.stop().unwrap();
    assert_eq!(unprocessed.len(), 1);
    unprocessed.remove(0).run();
    assert_eq!(runs.take(), [100, 100], "run once more by hand, and not armed again");
}

/// One task asks for another run after its timeout was cancelled during the current one.
#[test]
fn rule_01_a_timeout_repeats_only_if_nobody_ended_it_during_its_run() {
    struct Asked(Record<bool>, fn(&Run<'_>), #[expect(dead_code, reason = "counted")] Arc<()>);
    impl TimerTask for Asked {
        fn run(self, run: &Run<'_>) -> Next<Self> {
            (self.1)(run);
            self.0.push(run.is_cancelled());
            Next::after(self, TICK)
        }
    }
    let (timer, clock) = manual();
    let (runs, held) = (Record::new(), Arc::new(()));
    let goes_on = Asked(runs.clone(), |_| (), held.clone());
    let goes_on = timer.new_timeout(goes_on, TICK).unwrap();
    let cancels = |run: &Run<'_>| assert!(!run.timeout().cancel(), "it runs already");
    let ends = timer.new_timeout(Asked(runs.clone(), cancels, held.clone()), TICK).unwrap();
    (0..3).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(runs.take(), [false, true, false, false]);
    assert!(ends.is_cancelled() && !goes_on.is_expired());
    assert_eq!(Arc::strong_count(&held), 2, "the task of the one that ended is dropped");
    assert!(goes_on.cancel());
    assert_eq!((Arc::strong_count(&held), timer.metrics().rearmed), (1, 4));
    assert_conserved(&timer);
}

/// A task that is cancelled in one of its runs, after which it wants to go on.
struct Retry {
    /// The runs until the cancel.
    left: u32,
    panics_when_told: bool,
    seen: Record<(&'static str, std::thread::ThreadId)>,
}

impl Retry {
    fn see(&self, what: &'static str) {
        self.seen.push((what, std::thread::current().id()));
    }
}

impl TimerTask for Retry {
    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        self.left -= 1;
        if self.left == 0 {
            let won = run.timeout().cancel();
            self.see(if won { "won" } else { "not yet decided" });
            assert!(!run.timeout().cancel(), "a second cancel");
        }
        Next::after(self, Duration::ZERO)
    }

    fn cancelled(self, timeout: &Timeout) {
        assert!(timeout.is_cancelled() && !timeout.is_expired());
        self.see("told");
        assert!(!self.panics_when_told, "a bad callback");
    }
}

/// The task is told on the thread of its run. The count and the limit are as if the timeout had gone on and
/// had been cancelled then.
#[test]
fn rule_01_a_cancel_during_a_run_that_goes_on_is_told() {
    for (on_executor, runs) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
        let builder = HashedWheelTimer::builder().max_pending_timeouts(1);
        let builder = if on_executor { builder.executor(run_here) } else { builder };
        let (timer, clock) = manual_with(builder);
        let seen = Record::new();
        let task = Retry { left: runs, panics_when_told: runs == 2, seen: seen.clone() };
        let timeout = timer.new_timeout(task, TICK).unwrap();
        (0..runs).for_each(|_| clock.advance_in_one_jump(TICK));
        let (what, threads): (Vec<_>, Vec<_>) = seen.take().into_iter().unzip();
        let answer = if runs == 1 { "not yet decided" } else { "won" };
        assert_eq!(what, [answer, "told"], "executor: {on_executor}, run {runs}");
        assert_eq!(threads[0], threads[1]);
        assert!(timeout.is_cancelled() && !timeout.is_expired() && !timeout.cancel());
        let metrics = timer.metrics();
        let counts = [metrics.expired, metrics.rearmed, metrics.cancelled, metrics.panicked];
        let runs = u64::from(runs);
        assert_eq!(counts, [runs, runs, 1, runs - 1]);
        assert_conserved(&timer);
        let next = timer.new_timeout(|| (), TICK).expect("there is room again");
        assert!(timer.new_timeout(|| (), TICK).is_err(), "for one");
        assert!(next.cancel());
    }
}

/// A task can hand another task of its type to the next run.
#[test]
fn a_task_may_change_from_run_to_run() {
    struct Count(u32, Record<u32>);
    impl TimerTask for Count {
        fn run(self, run: &Run<'_>) -> Next<Self> {
            self.1.push(self.0);
            let next = Count(self.0 + 1, self.1.clone());
            if self.0 < 2 { Next::at(next, run.now() + TICK * 2) } else { Next::done() }
        }
    }
    let (timer, clock) = manual();
    let runs = Record::new();
    let timeout = timer.new_timeout(Count(0, runs.clone()), TICK).unwrap();
    (0..4).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(runs.take(), [0, 1]);
    clock.advance_in_one_jump(TICK);
    assert_eq!((runs.take(), timeout.is_expired()), (vec![2], true));
}

/// A delay of zero, and an instant that has passed, mean the next tick, not an endless loop.
#[test]
fn rule_10_a_timeout_that_repeats_at_once_waits_for_the_next_tick() {
    struct AtOnce(Record<()>, bool);
    impl TimerTask for AtOnce {
        fn run(self, run: &Run<'_>) -> Next<Self> {
            self.0.push(());
            let due = run.deadline();
            if self.1 { Next::after(self, Duration::ZERO) } else { Next::at(self, due) }
        }
    }
    for after in [true, false] {
        let (timer, clock) = manual();
        let runs = Record::new();
        timer.new_timeout(AtOnce(runs.clone(), after), TICK).unwrap();
        (0..5).for_each(|_| clock.advance_in_one_jump(TICK));
        assert_eq!(runs.len(), 5);
    }
}

#[test]
fn a_periodic_closure_can_end_its_series() {
    let (timer, clock) = manual();
    let (runs, mut left) = (Record::new(), 3);
    let record = runs.clone();
    let task = move || {
        record.push(());
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let timeout = timer.new_periodic(task, Period::fixed_rate(TICK)).unwrap();
    (0..5).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!((runs.len(), timer.pending_timeouts()), (3, 0));
    assert!(timeout.is_expired());
    assert_conserved(&timer);
}

#[test]
fn rule_07_a_burst_keeps_the_order_of_ticks() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let record = ran.clone();
    timer.new_periodic(move || record.push("periodic"), Period::fixed_rate(TICK * 10)).unwrap();
    timer.new_timeout(ran.note("once"), TICK * 15).unwrap();
    clock.advance_in_one_jump(TICK * 30);
    assert_eq!(ran.take(), ["periodic", "once", "periodic", "periodic"]);
    assert_eq!(timer.metrics().rearmed, 3, "each run of a burst is counted");
}

/// The task never catches up, so it is always due. Other timeouts still run, and a stop returns.
#[test]
fn rule_09_a_task_slower_than_its_period_does_not_block_the_worker() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let slow = || std::thread::sleep(ms(3));
    timer.new_periodic(slow, Period::fixed_rate(ms(1))).unwrap();
    let ran = Record::new();
    timer.new_timeout(ran.note(()), ms(20)).unwrap();
    eventually("the other timeout runs", || ran.len() == 1);
    assert!(timer.stop().unwrap().len() <= 1);
}

/// The burst has a million runs for each tick. It takes only the time that other timeouts leave.
#[test]
fn rule_05_a_burst_yields_to_the_timeouts_that_are_due() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let endless = timer.new_periodic(|| (), Period::fixed_rate(Duration::from_nanos(1))).unwrap();
    let ran = Record::new();
    for n in 0..20 {
        timer.new_timeout(ran.note(n), ms(5 + 5 * n)).unwrap();
    }
    eventually("the others run", || ran.len() == 20);
    assert_eq!(ran.take(), (0..20).collect::<Vec<_>>());
    assert!(endless.cancel());
}

/// Each of 20 missed runs takes a tick. A timeout that becomes due meanwhile does not wait for all of them.
#[test]
fn rule_05_a_burst_of_slow_runs_yields_to_a_timeout_that_becomes_due() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let (own, runs) = (clock.clone(), ran.clone());
    let mut slow_ones = 30;
    let slow = move || {
        if slow_ones > 0 {
            slow_ones -= 1;
            own.advance_in_one_jump(TICK);
        }
        runs.push("series");
    };
    timer.new_periodic(slow, Period::fixed_rate(TICK)).unwrap();
    timer.new_timeout(ran.note("other"), 21 * TICK).unwrap();
    clock.advance_in_one_jump(20 * TICK);
    assert_eq!(ran.take()[..3], ["series", "series", "other"]);
}

/// The worker files it at once, and need not look at its chunk.
#[test]
fn a_series_that_is_on_time_is_in_the_wheel_again_after_its_run() {
    let (timer, clock) = manual();
    timer.new_periodic(|| (), Period::fixed_rate(TICK)).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!((timer.metrics().expired, timer.queue_depth()), (1, 0));
}

/// A deadline has steps of 8 ns. One that is less than that after the series' own is rounded. An earlier one never is,
/// also on Windows, where instants that differ by up to 100 ns can subtract to zero.
#[test]
fn a_series_counts_from_a_deadline_that_was_moved_by_one_step() {
    let step = Duration::from_nanos(8);
    for by_a_step in [Instant::add, Instant::sub] {
        let (timer, clock) = manual();
        let series = timer.new_periodic(|| (), Period::fixed_rate(TICK)).unwrap();
        let moved = by_a_step(series.deadline().unwrap(), step);
        series.reschedule_at(moved).unwrap();
        clock.advance_in_one_jump(2 * TICK);
        let runs = timer.metrics().expired as u32;
        assert_eq!((runs > 0, series.deadline()), (true, Some(moved + runs * TICK)));
    }
}

/// The executor has the job, but has not run it yet.
#[test]
fn rule_01_a_cancel_that_returned_true_withdraws_a_waiting_job() {
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let queue = jobs.clone();
    let executor = move |job| {
        queue.lock().unwrap().push(job);
        Ok(())
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let (timeout, runs) = noting(&timer, &clock, Period::fixed_rate(TICK));
    clock.advance_in_one_jump(TICK);
    assert!(timeout.cancel());
    jobs.lock().unwrap().drain(..).for_each(wheelwork::executor::Job::run);
    assert_eq!(runs.len(), 0);
    assert!(timeout.is_cancelled());
    assert_conserved(&timer);
}

/// On a pool of many threads, with a period much shorter than a run.
#[test]
fn runs_of_one_timeout_never_overlap() {
    let pool = wheelwork::executor::ThreadPool::with_size(4, 16).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool);
    let timer = builder.build().unwrap();
    let (at_work, runs) = (Arc::new(AtomicBool::new(false)), Record::new());
    let record = runs.clone();
    let task = move || {
        assert!(!at_work.swap(true, SeqCst), "another run is at work");
        std::thread::sleep(ms(5));
        record.push(());
        at_work.store(false, SeqCst);
    };
    timer.new_periodic(task, Period::fixed_rate(ms(1))).unwrap();
    eventually("it has run", || runs.len() >= 20);
    timer.stop().unwrap();
    assert_eq!(timer.metrics().panicked, 0);
}
