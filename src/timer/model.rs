//! Loom models of the whole timer: the worker's own thread, and the public calls against it.
//!
//! Each model ends with `accounted_for`: the tasks, the results of `stop` and the timer's counters
//! agree that every timeout has ended in exactly one way.

use super::error::StopError;
use super::{Builder, HashedWheelTimer};
use crate::base::sync::thread::JoinHandle;
use crate::base::sync::{Arc, ArrayQueue, Condvar, Mutex, Ordering, check, check_up_to, spawn};
use crate::executor::Job;
use crate::executor::model::{Counted, Ends};
use crate::metrics::Metrics;
use crate::time::{Clock, ManualClock};
use crate::timeout::{Admit, Next, RescheduleError, Run, Task, Timeout, TimerTask};
use crate::worker::Control;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);

/// An executor that runs each job on the worker.
fn run_here(job: Job) -> Result<(), Job> {
    job.run();
    Ok(())
}

fn built(clock: impl Clock, with: impl FnOnce(Builder) -> Builder) -> HashedWheelTimer {
    let builder = HashedWheelTimer::builder().tick_duration(TICK).ticks_per_wheel(1).clock(clock);
    with(builder.max_pending_timeouts(1)).build().expect("settings within their ranges")
}

fn on(clock: &ManualClock) -> HashedWheelTimer {
    built(clock.clone(), |builder| builder)
}

fn counted(ends: &Arc<Ends>) -> Counted {
    Counted(ends.clone())
}

fn stop(timer: &HashedWheelTimer) -> usize {
    let returned = timer.stop().expect("not on the worker");
    assert!(timer.is_stopped(), "whoever stops it returns after its end");
    returned.into_iter().map(|unprocessed| return_of(unprocessed.into_task())).count()
}

/// Takes the task out of a returned timeout. If the timeout went on after a run, that run was not its end.
fn return_of(task: Task) {
    if let Ok(mut again) = task.downcast::<Again>() {
        again.has_run = false;
    }
}

/// Takes the worker's thread out of the timer, for a model that drops the last handle.
fn worker_of(timer: &HashedWheelTimer) -> JoinHandle<()> {
    timer.0.control.thread.lock().take().expect("nobody has stopped it")
}

/// Asserts that each of `accepted` timeouts has ended once, by its task's count and by the timer's.
fn accounted_for(control: &Control, ends: &Ends, returned: usize, accepted: usize) {
    let [run, cancelled] = [&ends.run, &ends.cancelled].map(|n| n.load(Ordering::Relaxed));
    assert_eq!(run + cancelled + returned, accepted, "{run}, {cancelled}, {returned}");
    let metrics = control.shared.counts.snapshot();
    assert_eq!(metrics.pending, 0);
    let Metrics { scheduled, rearmed, expired, cancelled: told, returned: back, .. } = metrics;
    assert_eq!(scheduled, accepted as u64);
    assert_eq!(
        [expired - rearmed, told, back],
        [run, cancelled, returned].map(|n| n as u64),
        "{metrics:?}"
    );
    assert_eq!(control.shared.gate.take_permit(), Ok(()), "there is room again");
}

/// A clock that moves by a tick at each read.
struct Restless {
    origin: Instant,
    ticks: std::sync::atomic::AtomicU32,
}

impl Clock for Restless {
    fn now(&self) -> Instant {
        self.origin + TICK * self.ticks.fetch_add(1, Ordering::Relaxed)
    }
}

/// A task that signals its run.
struct Bell(Arc<(Mutex<bool>, Condvar)>, Counted);

impl TimerTask for Bell {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        let _done = self.1.run(run);
        *self.0.0.lock() = true;
        self.0.1.notify_one();
        Next::done()
    }
}

/// A timeout is submitted while the worker goes to sleep without a limit. If the wake-up were lost,
/// nothing would wake the worker, and loom would report the deadlock.
#[test]
fn rule_09_a_timeout_wakes_a_worker_that_goes_to_sleep() {
    check(|| {
        let origin = Instant::now();
        let timer = built(Restless { origin, ticks: 0.into() }, |builder| builder);
        let ends = Arc::new(Ends::default());
        let bell = Arc::new((Mutex::new(false), Condvar::new()));
        let task = Bell(bell.clone(), counted(&ends));
        drop(timer.new_timeout_at(task, origin + TICK * 9).map_err(drop).expect("it is open"));
        let mut rung = bell.0.lock();
        while !*rung {
            rung = bell.1.wait(rung);
        }
        drop(rung);
        let returned = stop(&timer);
        accounted_for(&timer.0.control, &ends, returned, 1);
    });
}

/// Admission against two stops. The timeout is refused, and its task comes back, or one stop
/// returns it.
#[test]
fn rule_01_admission_against_two_stops() {
    check_up_to(1, || {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let producer = {
            let (timer, ends) = (timer.clone(), ends.clone());
            spawn(move || usize::from(timer.new_timeout(counted(&ends), TICK).is_ok()))
        };
        let other = timer.clone();
        let second = spawn(move || stop(&other));
        let returned = stop(&timer) + second.join().unwrap();
        let accepted = producer.join().unwrap();
        accounted_for(&timer.0.control, &ends, returned, accepted);
    });
}

/// An internal timeout against a stop. It is refused, or the worker's thread cancels it. No stop returns
/// it, and no count shows it.
#[test]
fn an_internal_timeout_against_a_stop() {
    check_up_to(1, || {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let producer = {
            let (timer, ends) = (timer.clone(), ends.clone());
            spawn(move || {
                let due = timer.started_at() + TICK;
                usize::from(timer.schedule_internal(counted(&ends), due, Admit::Once).is_ok())
            })
        };
        let (control, worker) = (timer.0.control.clone(), worker_of(&timer));
        assert_eq!(stop(&timer), 0);
        let accepted = producer.join().unwrap();
        worker.join().unwrap();
        assert_eq!(ends.cancelled.load(Ordering::Relaxed), accepted);
        let counts = &control.shared.counts.internals;
        assert_eq!(counts.scheduled.get() - counts.taken_back.get(), accepted as u64);
        accounted_for(&control, &Ends::default(), 0, 0);
    });
}

/// One thread moves the clock over a deadline while another cancels the timeout.
#[test]
fn rule_01_cancel_against_the_worker() {
    check_up_to(2, || {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let timeout = timer.new_timeout(counted(&ends), TICK).map_err(drop).expect("it is open");
        let canceller = spawn(move || timeout.cancel());
        clock.advance_in_one_jump(TICK * 2);
        let won = canceller.join().unwrap();
        assert_eq!((ends.run.load(Ordering::Relaxed) == 0), won);
        let returned = stop(&timer);
        assert_eq!(returned, 0);
        accounted_for(&timer.0.control, &ends, returned, 1);
    });
}

/// One thread moves the clock over a deadline while another pushes the timeout back or pulls it
/// forward. It runs once, when the clock has reached its last deadline, and not before.
#[test]
fn rule_01_reschedule_against_the_worker() {
    for (from, to) in [(1, 5), (5, 1)] {
        check_up_to(2, move || {
            let clock = ManualClock::new();
            let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
            let begin = timer.started_at();
            let timeout = timer.new_timeout_at(counted(&ends), begin + TICK * from);
            let timeout = timeout.map_err(drop).expect("it is open");
            let mover = spawn(move || timeout.reschedule_at(begin + TICK * to));
            clock.advance_in_one_jump(TICK * 2);
            let run = ends.run.load(Ordering::Relaxed);
            match mover.join().unwrap() {
                Ok(()) => assert!(run == 0 || to == 1, "not before its last deadline"),
                Err(error) => assert!(run == 1 && matches!(error, RescheduleError::Expired)),
            }
            clock.advance_in_one_jump(TICK * 3);
            let returned = stop(&timer);
            assert_eq!(returned, 0, "its last deadline has come");
            accounted_for(&timer.0.control, &ends, returned, 1);
        });
    }
}

/// A thread schedules a timeout for the tick that the worker expires. It runs in that tick or in the next one,
/// and a clock that looks for what is due next does not wait for it in the past.
#[test]
fn rule_09_a_late_timeout_does_not_hold_up_the_clock() {
    check_up_to(2, || {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let begin = timer.started_at();
        let producer = {
            let (timer, ends) = (timer.clone(), ends.clone());
            spawn(move || {
                let timeout = timer.new_timeout_at(counted(&ends), begin + TICK);
                drop(timeout.map_err(drop).expect("it is open"));
            })
        };
        clock.advance_in_one_jump(TICK);
        producer.join().unwrap();
        clock.advance_in_one_jump(Duration::ZERO);
        if ends.run.load(Ordering::Relaxed) == 0 {
            assert_eq!(clock.advance_to_next(), Some(begin + TICK * 2));
        }
        let returned = stop(&timer);
        assert_eq!(returned, 0, "it has run");
        accounted_for(&timer.0.control, &ends, returned, 1);
    });
}

/// The last handle is dropped while the timeout expires. The timeout runs or is cancelled.
#[test]
fn rule_01_the_drop_of_the_last_handle_against_the_worker() {
    check(|| {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let (control, worker) = (timer.0.control.clone(), worker_of(&timer));
        drop(timer.new_timeout(counted(&ends), TICK).map_err(drop).expect("it is open"));
        let dropper = spawn(move || drop(timer));
        clock.advance_in_one_jump(TICK * 2);
        dropper.join().unwrap();
        worker.join().unwrap();
        accounted_for(&control, &ends, 0, 1);
    });
}

/// A stop gives up waiting immediately. Then the last handle is dropped, or a second stop collects.
#[test]
fn rule_01_a_stop_that_gave_up_loses_nothing() {
    for again in [false, true] {
        check(move || {
            let clock = ManualClock::new();
            let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
            let (control, worker) = (timer.0.control.clone(), worker_of(&timer));
            drop(timer.new_timeout(counted(&ends), TICK).map_err(drop).expect("it is open"));
            let mut returned = timer.stop_timeout(Duration::ZERO).map_or(0, |left| left.len());
            if again {
                returned += stop(&timer);
                assert_eq!(returned, 1);
            }
            drop(timer);
            worker.join().unwrap();
            accounted_for(&control, &ends, returned, 1);
        });
    }
}

/// A stop that does not wait, while the worker claims and runs a timeout. If the stop succeeds, the
/// timeout has run or is returned, and nothing runs afterwards.
fn a_stop_that_does_not_wait_ends_all(with: fn(Builder) -> Builder) {
    check_up_to(2, move || {
        let clock = ManualClock::new();
        let (timer, ends) = (built(clock.clone(), with), Arc::new(Ends::default()));
        drop(timer.new_timeout(counted(&ends), TICK).map_err(drop).expect("it is open"));
        let mover = spawn(move || clock.advance_in_one_jump(TICK));
        let mut returned = 0;
        match timer.stop_timeout(Duration::ZERO) {
            Ok(left) => {
                returned = left.len();
                assert!(timer.is_stopped());
                assert_eq!(ends.run.load(Ordering::Relaxed) + returned, 1, "nothing runs later");
            }
            Err(error) => assert!(matches!(error, StopError::StillRunning { .. })),
        }
        returned += stop(&timer);
        mover.join().unwrap();
        accounted_for(&timer.0.control, &ends, returned, 1);
    });
}

#[test]
fn rule_09_a_stop_that_does_not_wait_against_a_run() {
    a_stop_that_does_not_wait_ends_all(|builder| builder);
}

#[test]
fn rule_09_a_stop_that_does_not_wait_against_a_hand_over() {
    a_stop_that_does_not_wait_ends_all(|builder| builder.executor(run_here));
}

/// A task whose timeout goes on `left` times. If it is dropped after a run, that run was its end.
struct Again {
    left: u32,
    missed: bool,
    has_run: bool,
    ends: Arc<Ends>,
}

impl Again {
    fn new(left: u32, missed: bool, ends: &Arc<Ends>) -> Self {
        Self { left, missed, has_run: false, ends: ends.clone() }
    }
}

impl TimerTask for Again {
    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        self.has_run = true;
        if self.left == 0 {
            return Next::done();
        }
        self.left -= 1;
        if self.missed {
            Next::on_beat(self, run.deadline(), true)
        } else {
            Next::after(self, TICK)
        }
    }

    fn cancelled(mut self, _timeout: &Timeout) {
        self.has_run = false;
        self.ends.cancelled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        if self.has_run {
            self.ends.run.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A timer whose executor puts the jobs into this queue.
fn queueing(clock: &ManualClock, jobs: &Arc<ArrayQueue<Job>>) -> HashedWheelTimer {
    let jobs = jobs.clone();
    built(clock.clone(), |b| b.executor(move |job| jobs.push(job)))
}

/// Runs the job of the timeout that is due in a tick, on a thread of its own.
fn run_first(clock: &ManualClock, jobs: &ArrayQueue<Job>) -> JoinHandle<()> {
    clock.advance_in_one_jump(TICK);
    let first = jobs.pop().expect("it is due");
    spawn(move || first.run())
}

/// A run ends on an executor's thread and its timeout goes on, while the clock moves and another
/// thread may cancel. The timeout ends once. If there was a cancel, the task is told.
#[test]
fn rule_01_a_job_that_goes_on_against_the_worker_and_a_cancel() {
    for cancels in [false, true] {
        check_up_to(2, move || {
            let ends = Arc::new(Ends::default());
            let (clock, jobs) = (ManualClock::new(), Arc::new(ArrayQueue::<Job>::new(1)));
            let timer = queueing(&clock, &jobs);
            let timeout = timer.new_timeout(Again::new(1, false, &ends), TICK);
            let timeout = timeout.map_err(drop).expect("it is open");
            let runner = run_first(&clock, &jobs);
            let won = cancels && timeout.cancel();
            clock.advance_in_one_jump(TICK * 2);
            runner.join().unwrap();
            jobs.pop().into_iter().for_each(Job::run);
            let cancelled = ends.cancelled.load(Ordering::Relaxed);
            assert_eq!(cancelled, usize::from(cancels), "the answer was {won}");
            let returned = stop(&timer);
            // If it was announced after the clock had moved, the worker may have handed it over since.
            jobs.pop().into_iter().for_each(Job::run);
            accounted_for(&timer.0.control, &ends, returned, 1);
        });
    }
}

/// A run ends on an executor's thread and its timeout goes on, while another thread stops the timer. The stop
/// returns the timeout, or the timeout is cancelled.
#[test]
fn rule_01_a_job_that_goes_on_against_a_stop() {
    for missed in [false, true] {
        check_up_to(2, move || {
            let ends = Arc::new(Ends::default());
            let (clock, jobs) = (ManualClock::new(), Arc::new(ArrayQueue::<Job>::new(1)));
            let timer = queueing(&clock, &jobs);
            let timeout = timer.new_timeout(Again::new(9, missed, &ends), TICK);
            drop(timeout.map_err(drop).expect("it is open"));
            let runner = run_first(&clock, &jobs);
            let returned = stop(&timer);
            runner.join().unwrap();
            jobs.pop().into_iter().for_each(Job::run);
            assert_eq!(ends.run.load(Ordering::Relaxed), 0, "no run is its end");
            accounted_for(&timer.0.control, &ends, returned, 1);
        });
    }
}

/// A run ends on the worker and its timeout goes on, while one thread cancels it and another stops
/// the timer. The timeout is cancelled or returned.
#[test]
fn rule_01_an_inline_run_that_goes_on_against_a_cancel_and_a_stop() {
    check_up_to(2, || {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let timeout = timer.new_timeout(Again::new(1, false, &ends), TICK);
        let timeout = timeout.map_err(drop).expect("it is open");
        let mover = spawn(move || clock.advance_in_one_jump(TICK));
        let canceller = spawn(move || timeout.cancel());
        let returned = stop(&timer);
        mover.join().unwrap();
        let won = canceller.join().unwrap();
        assert!(!won || returned == 0);
        assert_eq!(ends.run.load(Ordering::Relaxed), 0, "the run is not its end");
        accounted_for(&timer.0.control, &ends, returned, 1);
    });
}

/// Consumes a wake-up that was already sent to the worker, as any task may that parks its thread.
fn eat_wake_up(run: &Run<'_>) {
    let shared = run.timeout().pin().chunk().timer.shared().expect("its worker runs it");
    shared.alarm.sleep(Some(Duration::ZERO));
}

struct Parks(Counted);

impl TimerTask for Parks {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        eat_wake_up(run);
        let _done = self.0.run(run);
        Next::done()
    }
}

/// A task consumes the worker's wake-up while another thread moves the clock and the timer is
/// stopped. No thread waits for ever.
#[test]
fn rule_09_a_task_that_parks_blocks_no_other_thread() {
    check_up_to(2, || {
        let clock = ManualClock::new();
        let (timer, ends) = (on(&clock), Arc::new(Ends::default()));
        let task = Parks(counted(&ends));
        drop(timer.new_timeout(task, TICK * 2).map_err(drop).expect("it is open"));
        let other = clock.clone();
        let mover = spawn(move || other.advance_in_one_jump(TICK));
        clock.advance_in_one_jump(TICK);
        let returned = stop(&timer);
        mover.join().unwrap();
        accounted_for(&timer.0.control, &ends, returned, 1);
    });
}

/// A list of jobs, and a signal for each.
struct Hands(Mutex<Vec<Job>>, Condvar);

impl Hands {
    fn put(&self, job: Job) {
        self.0.lock().push(job);
        self.1.notify_one();
    }

    fn run_one(&self) {
        let mut jobs = self.0.lock();
        while jobs.is_empty() {
            jobs = self.1.wait(jobs);
        }
        let job = jobs.pop().expect("it is not empty");
        drop(jobs);
        job.run();
    }
}

/// Two runs on other threads miss their next runs while the worker goes to sleep. The missed runs happen
/// without a further wake-up. If not, loom would report the deadlock.
#[test]
fn rule_09_no_run_that_is_due_now_is_missed() {
    check_up_to(1, || {
        let clock = ManualClock::new();
        let hands = Arc::new(Hands(Mutex::new(Vec::new()), Condvar::new()));
        let executor = hands.clone();
        let timer = built(clock.clone(), |builder| {
            builder.max_pending_timeouts(2).executor(move |job| {
                executor.put(job);
                Ok(())
            })
        });
        let ends = Arc::new(Ends::default());
        for _ in 0..2 {
            let task = Again::new(1, true, &ends);
            drop(timer.new_timeout(task, TICK).map_err(drop).expect("it is open"));
        }
        clock.advance_in_one_jump(TICK * 2);
        let runner = {
            let hands = hands.clone();
            spawn(move || (0..2).for_each(|_| hands.run_one()))
        };
        (0..2).for_each(|_| hands.run_one());
        runner.join().unwrap();
        let returned = stop(&timer);
        accounted_for(&timer.0.control, &ends, returned, 2);
    });
}
