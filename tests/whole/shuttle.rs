//! The whole timer, worker included, under random schedules of every lock and atomic: `.ci/shuttle`.
//! `shuttle_future` does the same to futures, and `shuttle_stream` to streams with idle timeouts.
//!
//! Loom tries all schedules of a small protocol; this tries some of the schedules of everything.
//! `WHEELWORK_SHUTTLE_ITERATIONS` makes it longer. A failure prints the schedule, to be replayed.
extern crate whole as wheelwork;

#[path = "../common/schedules.rs"]
mod schedules;
mod shuttle_future;
mod shuttle_stream;

use schedules::iterations;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;
use wheelwork::executor::{OnRefusal, ThreadPool};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, ManualClock, Timeout, Unprocessed};

const TICK: Duration = Duration::from_millis(100);

/// Operations of each of the three threads.
const OPERATIONS: usize = 12;

/// The most turns that a thread waits before it stops the timer: some stops come first, some last.
const WAIT: u32 = 1500;

/// How often tasks ended in which way.
#[derive(Default)]
struct Ends {
    run: AtomicU64,
    cancelled: AtomicU64,
}

struct Tracked {
    ends: Arc<Ends>,
    more_runs: u8,
    has_run: bool,
}

/// A run was its end if it is dropped after that.
impl Drop for Tracked {
    fn drop(&mut self) {
        if self.has_run {
            self.ends.run.fetch_add(1, SeqCst);
        }
    }
}

impl TimerTask for Tracked {
    fn run(mut self, _run: &Run<'_>) -> Next<Self> {
        self.has_run = true;
        if self.more_runs == 0 {
            return Next::done();
        }
        self.more_runs -= 1;
        Next::after(self, TICK)
    }

    fn cancelled(mut self, _timeout: &Timeout) {
        self.has_run = false;
        self.ends.cancelled.fetch_add(1, SeqCst);
    }
}

/// The run of a task that was to go on was not its end.
fn count(returned: Vec<Unprocessed>) -> u64 {
    let tasks =
        returned.into_iter().map(|unprocessed| unprocessed.into_task().downcast::<Tracked>());
    tasks.map(|task| task.expect("tracked").has_run = false).count() as u64
}

/// One of the three threads. Returns how many of its timeouts were accepted.
fn producer(timer: &HashedWheelTimer, clock: &ManualClock, ends: &Arc<Ends>) -> u64 {
    let (mut accepted, mut held) = (0, Vec::<Timeout>::new());
    for _ in 0..OPERATIONS {
        let delay = TICK * thread_rng().gen_range(0..5u32);
        let pick = |held: &Vec<Timeout>| thread_rng().gen_range(0..held.len());
        match thread_rng().gen_range(0..8u8) {
            0 | 1 if !held.is_empty() => {
                let timeout = held.swap_remove(pick(&held));
                timeout.cancel();
            }
            2 if !held.is_empty() => _ = held[pick(&held)].reschedule(delay),
            3 if !held.is_empty() => held.push(held[pick(&held)].clone()),
            4 => clock.advance_in_one_jump(delay),
            _ => {
                let more_runs = thread_rng().gen_range(0..3);
                let task = Tracked { ends: ends.clone(), more_runs, has_run: false };
                if let Ok(timeout) = timer.new_timeout(task, delay) {
                    accepted += 1;
                    held.push(timeout);
                }
            }
        }
    }
    accepted
}

/// Over all histories, so that none of the ends is only thought of.
#[derive(Default)]
struct Totals([std::sync::atomic::AtomicU64; 3]);

fn check(executes: impl Fn() -> Option<(ThreadPool, OnRefusal)> + Send + Sync + 'static) {
    let iterations = iterations();
    let totals = Arc::new(Totals::default());
    let seen = totals.clone();
    let history = move || {
        let clock = ManualClock::new();
        let builder =
            HashedWheelTimer::builder().tick_duration(TICK).ticks_per_wheel(4).clock(clock.clone());
        let pool = executes();
        let timer = match &pool {
            None => builder,
            Some((pool, refusal)) => builder.executor(pool.clone()).on_refusal(refusal.clone()),
        };
        let timer = timer.build().expect("settings within their ranges");
        let ends = Arc::new(Ends::default());
        let producers = [(); 3].map(|()| {
            let (timer, clock, ends) = (timer.clone(), clock.clone(), ends.clone());
            thread::spawn(move || producer(&timer, &clock, &ends))
        });
        let second = {
            let timer = timer.clone();
            let wait = thread_rng().gen_range(0..WAIT);
            thread::spawn(move || {
                (0..wait).for_each(|_| thread::yield_now());
                timer.stop().map(count)
            })
        };
        (0..thread_rng().gen_range(0..WAIT)).for_each(|_| thread::yield_now());
        let mut returned = count(timer.stop().expect("not on the worker"));
        returned += second.join().expect("no panic").expect("not on the worker");
        let accepted: u64 = producers.map(|p| p.join().expect("no panic")).iter().sum();
        if let Some((pool, _)) = pool {
            assert!(pool.join(), "the timer has let go of the pool");
        }
        let metrics = timer.metrics();
        let ends = [ends.run.load(SeqCst), ends.cancelled.load(SeqCst), returned];
        assert_eq!(ends.iter().sum::<u64>(), accepted, "{metrics:?}");
        assert_eq!(metrics.scheduled, accepted);
        let counted = [metrics.expired - metrics.rearmed, metrics.cancelled, metrics.returned];
        assert_eq!(counted, ends, "{metrics:?}");
        for (total, end) in seen.0.iter().zip(ends) {
            total.fetch_add(end, SeqCst);
        }
        assert_eq!(metrics.pending, 0);
    };
    shuttle::check_random(history, iterations);
    let [run, cancelled, returned] = totals.0.each_ref().map(|total| total.load(SeqCst));
    println!("{iterations} schedules: {run} run, {cancelled} cancelled, {returned} returned");
    assert!(run > 0 && cancelled > 0 && returned > 0);
}

#[test]
fn rule_01_every_timeout_ends_in_exactly_one_way_inline() {
    check(|| None);
}

#[test]
fn rule_01_every_timeout_ends_in_exactly_one_way_on_a_pool_that_refuses() {
    check(|| Some((small_pool(), OnRefusal::RunOnWorker)));
}

#[test]
fn rule_01_every_timeout_ends_in_exactly_one_way_on_a_pool_that_is_waited_for() {
    check(|| Some((small_pool(), OnRefusal::Wait)));
}

/// Time stands still, and each timeout is due sooner than the one before, so each is a reason to wake
/// the worker. Each of the two producers may wake it once more, if it is interrupted while it does so.
#[test]
fn rule_06_producers_wake_the_worker_at_most_once_a_tick() {
    let history = || {
        let builder = HashedWheelTimer::builder().tick_duration(TICK).clock(ManualClock::new());
        let timer = builder.build().expect("settings within their ranges");
        let producers = [(); 2].map(|()| {
            let timer = timer.clone();
            thread::spawn(move || {
                for sooner in (1..30).rev() {
                    timer.new_timeout(|| (), 10 * TICK * sooner).expect("it is not stopped");
                }
            })
        });
        producers.into_iter().for_each(|p| p.join().expect("no panic"));
        (0..100).for_each(|_| thread::yield_now()); // the worker comes to rest
        let wakeups = timer.metrics().wakeups;
        assert!(wakeups <= 3, "{wakeups} wake-ups in one tick");
        timer.stop().expect("not on the worker");
    };
    shuttle::check_random(history, iterations());
}

fn small_pool() -> ThreadPool {
    ThreadPool::with_size(1, 1).expect("a pool of one")
}
