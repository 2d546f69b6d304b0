//! Every task is dropped exactly once, whatever its end: rule 1, for what the tasks hold.
//!
//! Each test does the same with tasks that lie in their slots, with tasks that are boxed since they
//! are large, and with tasks that are boxed since they are aligned to more than a word.

mod common;

use common::{Mutex, TICK, assert_conserved, eventually, into_the_wheel, manual, manual_with, ms};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;
use wheelwork::executor::{Job, OnRefusal, ThreadPool};
use wheelwork::{Executor, HashedWheelTimer, Next, Period, Run, ScheduleError, Timeout, TimerTask};

/// Makes a test of each function for each kind of task.
macro_rules! with_every_task {
    ($($test:ident),* $(,)?) => { $(mod $test {
        #[test]
        fn small() {
            super::$test::<super::Small>();
        }
        #[test]
        fn large() {
            super::$test::<super::Large>();
        }
        #[test]
        fn aligned() {
            super::$test::<super::Aligned>();
        }
    })* };
}

with_every_task!(
    rule_01_a_task_that_runs_is_dropped_once,
    rule_01_a_task_whose_run_panics_is_dropped_once,
    rule_01_a_task_that_runs_on_an_executor_is_dropped_once,
    rule_01_a_repeating_task_that_is_cancelled_is_dropped_once,
    rule_01_a_repeating_task_that_ends_is_dropped_once,
    rule_01_a_repeating_task_on_an_executor_is_dropped_once,
    rule_01_a_periodic_task_is_dropped_once,
    rule_01_a_task_cancelled_in_the_queue_is_dropped_once,
    rule_01_a_task_cancelled_in_the_wheel_is_dropped_once,
    rule_01_a_task_cancelled_during_its_run_is_dropped_once,
    rule_01_a_task_cancelled_by_a_guard_is_dropped_once,
    rule_01_a_task_cancelled_by_two_threads_is_dropped_once,
    rule_01_a_returned_task_that_is_run_is_dropped_once,
    rule_01_a_returned_task_that_is_taken_out_is_dropped_once,
    rule_01_a_returned_task_that_is_dropped_is_dropped_once,
    rule_01_a_task_that_no_stop_collects_is_dropped_once,
    rule_01_a_repeating_task_in_a_stopped_timer_is_dropped_once,
    rule_01_a_task_refused_by_the_limit_is_dropped_once,
    rule_01_a_task_refused_by_a_stopped_timer_is_dropped_once,
    rule_01_a_task_scheduled_during_a_stop_is_dropped_once,
    rule_01_a_task_whose_job_is_refused_is_dropped_once,
    rule_01_a_task_whose_refused_job_goes_to_the_callback_is_dropped_once,
    rule_01_a_task_whose_job_the_executor_drops_is_dropped_once,
    rule_01_a_task_whose_job_outlives_the_timer_is_dropped_once,
    rule_01_a_task_queued_in_a_pool_that_ends_is_dropped_once,
    rule_01_a_task_pending_at_the_drop_of_its_timer_is_dropped_once,
    rule_01_a_task_whose_handle_outlives_the_timer_is_dropped_once,
    rule_01_a_task_whose_thread_has_ended_is_dropped_once,
    rule_01_a_task_whose_drop_panics_is_dropped_once,
    rule_01_a_rescheduled_task_is_dropped_once,
);

/// What has happened to the tasks of one test.
#[derive(Default)]
struct Fates {
    dropped: AtomicU32,
    run: AtomicU32,
    told: AtomicU32,
    /// How often a task goes on after a run.
    goes_on: AtomicU32,
    panics: AtomicBool,
    drop_panics: AtomicBool,
}

impl Fates {
    fn dropped(&self) -> u32 {
        self.dropped.load(SeqCst)
    }

    /// Asserts that `made` tasks were dropped, and how many runs and cancels they saw.
    #[track_caller]
    fn assert(&self, made: u32, run: u32, told: u32) {
        let fates = (self.dropped(), self.run.load(SeqCst), self.told.load(SeqCst));
        assert_eq!(fates, (made, run, told), "dropped, run, told of a cancel");
    }
}

/// Eight bytes that count their drops.
struct Counted(Arc<Fates>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
        let bad = self.0.drop_panics.load(SeqCst) && !std::thread::panicking();
        assert!(!bad, "a bad drop");
    }
}

trait Probe: TimerTask {
    fn of(fates: &Arc<Fates>) -> Self;
    fn fates(&self) -> &Arc<Fates>;

    /// Whether its bytes are as it was made.
    fn is_whole(&self) -> bool;

    fn step(self) -> Next<Self> {
        assert!(self.is_whole());
        let fates = self.fates();
        fates.run.fetch_add(1, SeqCst);
        assert!(!fates.panics.load(SeqCst), "a bad task");
        let more = fates.goes_on.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok();
        if more { Next::after(self, Duration::ZERO) } else { Next::done() }
    }
}

macro_rules! probes {
    ($($(#[$align:meta])* $name:ident { $counted:ident, $bytes:ident: [u8; $len:literal] })*) => { $(
        $(#[$align])*
        struct $name {
            $counted: Counted,
            $bytes: [u8; $len],
        }

        impl Probe for $name {
            fn of(fates: &Arc<Fates>) -> Self {
                Self { $counted: Counted(fates.clone()), $bytes: std::array::from_fn(|n| n as u8) }
            }

            fn fates(&self) -> &Arc<Fates> {
                &self.$counted.0
            }

            fn is_whole(&self) -> bool {
                let address = std::hint::black_box(std::ptr::from_ref(self)).addr();
                address % align_of::<Self>() == 0
                    && self.$bytes.iter().enumerate().all(|(n, &byte)| byte == n as u8)
            }
        }

        impl TimerTask for $name {
            fn run(self, _run: &Run<'_>) -> Next<Self> {
                self.step()
            }

            fn cancelled(self, _timeout: &Timeout) {
                assert!(self.is_whole());
                self.fates().told.fetch_add(1, SeqCst);
            }
        }
    )* };
}

probes! {
    Small { counted, bytes: [u8; 8] }
    Large { counted, bytes: [u8; 120] }
    #[repr(align(64))] Aligned { counted, bytes: [u8; 8] }
}

#[test]
fn the_kinds_of_tasks_have_the_size_and_alignment_of_their_names() {
    assert_eq!((size_of::<Small>(), align_of::<Small>()), (16, 8));
    assert_eq!((size_of::<Large>(), align_of::<Large>()), (128, 8));
    assert_eq!((size_of::<Aligned>(), align_of::<Aligned>()), (64, 64));
}

/// A closure that holds one.
fn closure<P: Probe>(fates: &Arc<Fates>) -> impl FnOnce() + Send + 'static {
    let probe = P::of(fates);
    move || {
        assert!(probe.is_whole());
        probe.fates().run.fetch_add(1, SeqCst);
    }
}

fn fates() -> Arc<Fates> {
    Arc::default()
}

fn rule_01_a_task_that_runs_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts: Vec<_> =
        (0..100).map(|_| timer.new_timeout(P::of(&fates), TICK).unwrap()).collect();
    (0..100).for_each(|_| drop(timer.new_timeout(closure::<P>(&fates), TICK).unwrap()));
    fates.assert(0, 0, 0);
    clock.advance(TICK);
    fates.assert(200, 200, 0);
    drop((timeouts, timer));
    fates.assert(200, 200, 0);
}

fn rule_01_a_task_whose_run_panics_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    fates.panics.store(true, SeqCst);
    (0..10).for_each(|_| drop(timer.new_timeout(P::of(&fates), TICK).unwrap()));
    clock.advance(TICK);
    fates.assert(10, 10, 0);
    assert_eq!(timer.metrics().panicked, 10);
    assert_conserved(&timer);
}

fn rule_01_a_task_that_runs_on_an_executor_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(common::run_here));
    let fates = fates();
    (0..100).for_each(|_| drop(timer.new_timeout(P::of(&fates), TICK).unwrap()));
    clock.advance(TICK);
    fates.assert(100, 100, 0);
}

fn rule_01_a_repeating_task_that_is_cancelled_is_dropped_once<P: Probe>() {
    for in_wheel in [false, true] {
        let (timer, clock) = manual();
        let fates = fates();
        fates.goes_on.store(1000, SeqCst);
        let timeout = timer.new_timeout(P::of(&fates), TICK).unwrap();
        (0..5).for_each(|_| clock.advance(TICK));
        fates.assert(0, 5, 0);
        if in_wheel {
            timeout.reschedule(ms(60_000)).unwrap();
            clock.advance(TICK);
        }
        assert!(timeout.cancel() && !timeout.cancel());
        fates.assert(1, 5, 1);
        assert_conserved(&timer);
    }
}

fn rule_01_a_repeating_task_that_ends_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    fates.goes_on.store(3, SeqCst);
    timer.new_timeout(P::of(&fates), TICK).unwrap();
    (0..10).for_each(|_| clock.advance(TICK));
    fates.assert(1, 4, 0);
    fates.goes_on.store(3, SeqCst);
    timer.new_timeout(P::of(&fates), TICK).unwrap();
    clock.advance(TICK);
    drop(timer.stop().unwrap());
    fates.assert(2, 5, 0);
}

fn rule_01_a_repeating_task_on_an_executor_is_dropped_once<P: Probe>() {
    let pool = ThreadPool::with_size(2, 1000).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool);
    let timer = builder.build().unwrap();
    let fates = fates();
    fates.goes_on.store(200, SeqCst);
    (0..20).for_each(|_| drop(timer.new_timeout(P::of(&fates), ms(1)).unwrap()));
    eventually("all have ended", || fates.dropped() == 20);
    fates.assert(20, 220, 0);
    fates.goes_on.store(u32::MAX, SeqCst);
    let timeouts: Vec<_> =
        (0..20).map(|_| timer.new_timeout(P::of(&fates), ms(1)).unwrap()).collect();
    std::thread::sleep(ms(20));
    // A cancel during the first run is answered with false, and yet the timeout does not go on.
    timeouts.iter().for_each(|timeout| _ = timeout.cancel());
    eventually("all have ended", || fates.dropped() == 40);
    timer.stop().unwrap();
    assert_eq!(fates.dropped(), 40);
    assert_conserved(&timer);
}

fn rule_01_a_periodic_task_is_dropped_once<P: Probe>() {
    for inline in [true, false] {
        let builder = HashedWheelTimer::builder();
        let builder = if inline { builder } else { builder.executor(common::run_here) };
        let (timer, clock) = manual_with(builder);
        let fates = fates();
        let series = [(); 4].map(|()| {
            let probe = P::of(&fates);
            let task = move || _ = probe.fates().run.fetch_add(1, SeqCst);
            timer.new_periodic(task, Period::fixed_rate(TICK)).unwrap()
        });
        clock.advance(5 * TICK);
        fates.assert(0, 20, 0);
        assert!(series[0].cancel());
        assert_eq!(fates.dropped(), 1);
        let refused = timer.new_periodic(
            {
                let probe = P::of(&fates);
                move || assert!(probe.is_whole())
            },
            Period::fixed_rate(Duration::ZERO),
        );
        drop(refused.expect_err("a period of zero"));
        assert_eq!(fates.dropped(), 2);
        drop(timer.stop().unwrap());
        assert_eq!(fates.dropped(), 5);
    }
}

fn rule_01_a_task_cancelled_in_the_queue_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    for n in 1..=200 {
        assert!(timer.new_timeout(P::of(&fates), TICK).unwrap().cancel());
        fates.assert(n, 0, n);
    }
    clock.advance(TICK);
    drop(timer);
    fates.assert(200, 0, 200);
}

fn rule_01_a_task_cancelled_in_the_wheel_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts: Vec<_> =
        (0..200).map(|_| timer.new_timeout(P::of(&fates), 5 * TICK).unwrap()).collect();
    into_the_wheel(&timer, &clock);
    assert!(timeouts.iter().all(Timeout::cancel));
    fates.assert(200, 0, 200);
    clock.advance(10 * TICK);
    fates.assert(200, 0, 200);
}

/// A task whose run waits until it was cancelled.
struct Waits<P>(P, mpsc::Sender<()>, mpsc::Receiver<()>);

impl<P: Probe> TimerTask for Waits<P> {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.fates().run.fetch_add(1, SeqCst);
        self.1.send(()).unwrap();
        self.2.recv().unwrap();
        assert!(run.is_cancelled() && self.0.is_whole());
        Next::after(self, Duration::ZERO)
    }
}

fn rule_01_a_task_cancelled_during_its_run_is_dropped_once<P: Probe>() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let fates = fates();
    let (runs, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let task = Waits(P::of(&fates), runs, may_go_on);
    let timeout = timer.new_timeout(task, ms(1)).unwrap();
    has_begun.recv().unwrap();
    assert!(!timeout.cancel(), "it runs");
    fates.assert(0, 1, 0);
    go_on.send(()).unwrap();
    eventually("its run ends", || fates.dropped() == 1);
    timer.stop().unwrap();
    fates.assert(1, 1, 0);
    assert_conserved(&timer);
}

fn rule_01_a_task_cancelled_by_a_guard_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual();
    let fates = fates();
    drop(timer.new_timeout(P::of(&fates), TICK).unwrap().cancel_on_drop());
    fates.assert(1, 0, 1);
}

fn rule_01_a_task_cancelled_by_two_threads_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual();
    let fates = fates();
    let timeouts: Vec<_> =
        (0..500).map(|_| timer.new_timeout(P::of(&fates), TICK).unwrap()).collect();
    // Each of them by two threads at once.
    let won = std::thread::scope(|scope| {
        let cancels = || timeouts.iter().filter(|timeout| timeout.cancel()).count();
        let (other, here) = (scope.spawn(cancels), cancels());
        other.join().unwrap() + here
    });
    assert_eq!(won, 500);
    fates.assert(500, 0, 500);
}

/// Some in the queue, some in the wheel.
fn with_pending<P: Probe>(fates: &Arc<Fates>) -> HashedWheelTimer {
    let (timer, clock) = manual();
    (0..10).for_each(|_| drop(timer.new_timeout(P::of(fates), ms(60_000)).unwrap()));
    into_the_wheel(&timer, &clock);
    (0..10).for_each(|_| drop(timer.new_timeout(P::of(fates), ms(60_000)).unwrap()));
    timer
}

fn rule_01_a_returned_task_that_is_run_is_dropped_once<P: Probe>() {
    let fates = fates();
    let left = with_pending::<P>(&fates).stop().unwrap();
    fates.assert(0, 0, 0);
    for (n, unprocessed) in (1..).zip(left) {
        unprocessed.run();
        fates.assert(n, n, 0);
    }
    fates.assert(20, 20, 0);
}

fn rule_01_a_returned_task_that_is_taken_out_is_dropped_once<P: Probe>() {
    let fates = fates();
    let left = with_pending::<P>(&fates).stop().unwrap();
    let (other, clock) = manual();
    for (n, unprocessed) in left.into_iter().enumerate() {
        let task = unprocessed.into_task();
        match n % 4 {
            0 => assert!(task.downcast::<P>().is_ok_and(|probe| probe.is_whole())),
            1 => drop(task),
            2 => drop(other.new_timeout(task, TICK).unwrap()),
            _ => assert!(other.new_timeout(task, TICK).unwrap().cancel()),
        }
    }
    fates.assert(15, 0, 5);
    clock.advance(TICK);
    fates.assert(20, 5, 5);
}

fn rule_01_a_returned_task_that_is_dropped_is_dropped_once<P: Probe>() {
    let fates = fates();
    let mut left = with_pending::<P>(&fates).stop().unwrap();
    left.truncate(15);
    fates.assert(5, 0, 0);
    drop(left);
    fates.assert(20, 0, 0);
}

/// The stop gives up waiting, and the last handle goes.
fn rule_01_a_task_that_no_stop_collects_is_dropped_once<P: Probe>() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let fates = fates();
    let (runs, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let blocking = move || {
        runs.send(()).unwrap();
        let _ = may_end.recv();
    };
    timer.new_timeout(blocking, ms(1)).unwrap();
    has_begun.recv().unwrap();
    (0..20).for_each(|_| drop(timer.new_timeout(P::of(&fates), ms(60_000)).unwrap()));
    assert!(timer.stop_timeout(ms(1)).is_err());
    fates.assert(0, 0, 0);
    drop(timer);
    drop(end);
    eventually("the worker has ended", || fates.dropped() == 20);
    std::thread::sleep(ms(10));
    fates.assert(20, 0, 20);
}

/// A timeout that would go on, in a timer that is stopped meanwhile.
fn rule_01_a_repeating_task_in_a_stopped_timer_is_dropped_once<P: Probe>() {
    for inline in [true, false] {
        let builder = HashedWheelTimer::builder().tick_duration(ms(1));
        let pool = ThreadPool::with_size(1, 1000).unwrap();
        let timer = if inline { builder } else { builder.executor(pool) }.build().unwrap();
        let fates = fates();
        fates.goes_on.store(u32::MAX, SeqCst);
        let pending: Vec<_> =
            (0..50).map(|_| timer.new_timeout(P::of(&fates), Duration::ZERO).unwrap()).collect();
        eventually("they run", || fates.run.load(SeqCst) > 500);
        let left = timer.stop().unwrap();
        drop((left, pending, timer));
        eventually("all have ended", || fates.dropped() == 50);
        std::thread::sleep(ms(10));
        assert_eq!(fates.dropped(), 50);
    }
}

fn rule_01_a_task_refused_by_the_limit_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    let fates = fates();
    let timeout = timer.new_timeout(P::of(&fates), TICK).unwrap();
    let error = timer.new_timeout(P::of(&fates), TICK).expect_err("the limit is reached");
    assert!(matches!(&error, ScheduleError::LimitReached { .. }));
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
    assert!(matches!(&error, ScheduleError::Stopped { .. }));
    fates.assert(0, 0, 0);
    drop(error); // with the task
    fates.assert(1, 0, 0);
}

/// Each is accepted and returned, or refused.
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

/// Has no room.
struct Full;

impl Executor for Full {
    fn execute(&self, job: Job) -> Result<(), Job> {
        Err(job)
    }
}

fn rule_01_a_task_whose_job_is_refused_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(Full));
    let fates = fates();
    (0..10).for_each(|_| drop(timer.new_timeout(P::of(&fates), TICK).unwrap()));
    clock.advance(TICK);
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
    (0..10).for_each(|_| drop(timer.new_timeout(P::of(&fates), TICK).unwrap()));
    clock.advance(TICK);
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
        clock.advance(TICK);
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
    (0..10).for_each(|_| drop(timer.new_timeout(P::of(&fates), TICK).unwrap()));
    clock.advance(TICK);
    drop((timer, clock));
    fates.assert(0, 0, 0);
    let mut jobs: Vec<Job> = std::mem::take(&mut *jobs.lock().unwrap());
    jobs.drain(..5).for_each(Job::run);
    fates.assert(5, 5, 0);
    drop(jobs);
    fates.assert(10, 5, 5);
}

/// What waits in its queue is not run, or is run: dropped once in both cases.
fn rule_01_a_task_queued_in_a_pool_that_ends_is_dropped_once<P: Probe>() {
    let pool = ThreadPool::with_size(1, 1000).unwrap();
    let builder = HashedWheelTimer::builder().executor(pool).tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let fates = fates();
    timer.new_timeout(|| std::thread::sleep(ms(50)), Duration::ZERO).unwrap();
    (0..100).for_each(|_| drop(timer.new_timeout(P::of(&fates), ms(1)).unwrap()));
    eventually("they wait in the pool", || timer.metrics().expired == 101);
    drop(timer);
    eventually("all have ended", || fates.dropped() == 100);
    std::thread::sleep(ms(10));
    let (run, told) = (fates.run.load(SeqCst), fates.told.load(SeqCst));
    fates.assert(100, run, 100 - run);
    assert_eq!(told, 100 - run);
}

fn rule_01_a_task_pending_at_the_drop_of_its_timer_is_dropped_once<P: Probe>() {
    let fates = fates();
    drop(with_pending::<P>(&fates));
    eventually("the worker has ended", || fates.dropped() == 20);
    std::thread::sleep(ms(10));
    fates.assert(20, 0, 20);
}

fn rule_01_a_task_whose_handle_outlives_the_timer_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = [(); 10].map(|()| timer.new_timeout(P::of(&fates), TICK).unwrap());
    drop((timer, clock));
    eventually("the worker has ended", || fates.dropped() == 10);
    assert!(timeouts.iter().all(|timeout| timeout.is_cancelled() && !timeout.cancel()));
    drop(timeouts);
    fates.assert(10, 0, 10);
}

/// A thread that ends while its timeouts live; then each end once.
fn rule_01_a_task_whose_thread_has_ended_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = std::thread::scope(|scope| {
        let schedule = || {
            let delays = [TICK, TICK, 9 * TICK, 9 * TICK];
            delays.map(|delay| timer.new_timeout(P::of(&fates), delay).unwrap())
        };
        scope.spawn(schedule).join().unwrap()
    });
    fates.assert(0, 0, 0);
    assert!(timeouts[0].cancel());
    fates.assert(1, 0, 1);
    clock.advance(TICK);
    fates.assert(2, 1, 1);
    assert!(timeouts[2].cancel());
    fates.assert(3, 1, 2);
    drop(timer.stop().unwrap());
    fates.assert(4, 1, 2);
}

fn rule_01_a_task_whose_drop_panics_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    fates.drop_panics.store(true, SeqCst);
    let timeouts = [(); 4].map(|()| timer.new_timeout(P::of(&fates), TICK).unwrap());
    assert!(timeouts[0].cancel());
    fates.assert(1, 0, 1);
    clock.advance(TICK);
    fates.assert(4, 3, 1);
    assert_eq!(timer.metrics().panicked, 4);
    assert_conserved(&timer);
    timer.new_timeout(P::of(&fates), TICK).unwrap();
    drop(timer);
    eventually("the worker has ended", || fates.dropped() == 5);
    fates.drop_panics.store(false, SeqCst);
}

fn rule_01_a_rescheduled_task_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts: Vec<_> =
        (0..100).map(|_| timer.new_timeout(P::of(&fates), 5 * TICK).unwrap()).collect();
    into_the_wheel(&timer, &clock);
    timeouts[..50].iter().for_each(|timeout| timeout.reschedule(2 * TICK).unwrap());
    timeouts[50..].iter().for_each(|timeout| timeout.reschedule(9 * TICK).unwrap());
    timeouts[..10].iter().for_each(|timeout| timeout.reschedule(20 * TICK).unwrap());
    clock.advance(2 * TICK);
    fates.assert(40, 40, 0);
    (0..30).for_each(|_| clock.advance(TICK));
    fates.assert(100, 100, 0);
}
