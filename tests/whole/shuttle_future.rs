//! The futures under random schedules of every lock and atomic, like `shuttle.rs`. Three tasks
//! sleep, reset, limit, drop, and pass sleeps to each other, each on a thread that is woken by its waker
//! alone. One thread moves the clock until all have ended, and one may stop the timer before. A wake-up that is lost leaves a task
//! waiting, and shuttle's bound of steps ends the schedule.

use crate::schedules::{Bell, iterations};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use wheelwork::future::{DelayQueue, Sleep, TimeoutError};
use wheelwork::{HashedWheelTimer, ManualClock};

const TICK: Duration = Duration::from_millis(100);

const TASKS: usize = 3;

/// Operations of each task.
const OPERATIONS: usize = 8;

/// The most turns before the timer is stopped: in some schedules all tasks have ended by then.
const WAIT: u32 = 3000;

/// What the tasks of all schedules have seen. Not shuttle's atomics: it outlives each schedule.
#[derive(Default)]
struct Seen {
    elapsed: std::sync::atomic::AtomicUsize,
    stopped: std::sync::atomic::AtomicUsize,
}

impl Seen {
    /// Notes why a sleep has ended.
    fn ended(&self, timer: &HashedWheelTimer, sleep: &Sleep) {
        if sleep.was_stopped() {
            self.stopped.fetch_add(1, SeqCst);
        } else {
            assert!(timer.now() >= sleep.deadline(), "early");
            self.elapsed.fetch_add(1, SeqCst);
        }
    }
}

fn random_delay() -> Duration {
    TICK * thread_rng().gen_range(0..4u32)
}

/// Sleeps that one task has polled and another one takes over.
type Passed = Mutex<Vec<Sleep>>;

/// Returns the task's bell.
fn task(timer: &HashedWheelTimer, passed: &Passed, seen: &Seen) -> Arc<Bell> {
    let bell = Arc::new(Bell::default());
    for _ in 0..OPERATIONS {
        let mut sleep = timer.sleep(random_delay());
        match thread_rng().gen_range(0..7u8) {
            0 => _ = bell.poll(&mut sleep), // and drop
            1 => {
                // Another task has polled it before.
                let mut other = Context::from_waker(Waker::noop());
                _ = pin!(&mut sleep).poll(&mut other);
                bell.block_on(&mut sleep);
                seen.ended(timer, &sleep);
            }
            2 => {
                // The reset alone must see to the wake-up.
                if bell.poll(&mut sleep).is_pending() {
                    sleep.reset_after(random_delay());
                    bell.wait();
                }
                bell.block_on(&mut sleep);
                seen.ended(timer, &sleep);
            }
            3 => {
                let limit = timer.timeout(random_delay(), sleep);
                match bell.block_on(&mut Box::pin(limit)) {
                    Ok(()) | Err(TimeoutError::Elapsed) => {}
                    Err(error) => assert!(error.was_stopped()),
                }
            }
            4 => queue(timer, &bell),
            5 => {
                _ = bell.poll(&mut sleep);
                let mut sleep = pass(passed, sleep);
                bell.block_on(&mut sleep);
                seen.ended(timer, &sleep);
            }
            _ => {
                bell.block_on(&mut sleep);
                seen.ended(timer, &sleep);
            }
        }
    }
    bell
}

/// Leaves a sleep to the other tasks, and takes one of theirs if there is one.
fn pass(passed: &Passed, sleep: Sleep) -> Sleep {
    let mut passed = passed.lock().unwrap();
    passed.push(sleep);
    let at = thread_rng().gen_range(0..passed.len());
    passed.swap_remove(at)
}

fn queue(timer: &HashedWheelTimer, bell: &Arc<Bell>) {
    let mut queue = DelayQueue::new(timer);
    let keys = [(); 3].map(|()| queue.insert((), random_delay()));
    _ = bell.poll(&mut pin!(queue.next()));
    queue.reset(keys[0], random_delay());
    queue.remove(keys[1]);
    while let Some(due) = bell.block_on(&mut pin!(queue.next())) {
        assert!(timer.now() >= due.deadline, "early");
    }
    assert!(queue.is_empty() || queue.was_stopped());
}

fn history(seen: &Arc<Seen>) {
    let clock = ManualClock::new();
    let builder = HashedWheelTimer::builder().tick_duration(TICK).ticks_per_wheel(4);
    let timer = builder.clock(clock.clone()).build().expect("settings within their ranges");
    let running = Arc::new(AtomicUsize::new(TASKS));
    let passed = Arc::new(Mutex::new([(); 2].map(|()| timer.sleep(random_delay())).into()));
    let tasks = [(); TASKS].map(|()| {
        let (timer, seen, running) = (timer.clone(), seen.clone(), running.clone());
        let passed = passed.clone();
        thread::spawn(move || {
            let bell = task(&timer, &passed, &seen);
            running.fetch_sub(1, SeqCst);
            bell
        })
    });
    let stopper = {
        let timer = timer.clone();
        let wait = thread_rng().gen_range(0..WAIT);
        thread::spawn(move || {
            (0..wait).for_each(|_| thread::yield_now());
            let bell = Arc::new(Bell::default());
            assert!(
                bell.block_on(&mut timer.stop_async()).unwrap().is_empty(),
                "no sleep is returned"
            );
        })
    };
    while running.load(SeqCst) > 0 {
        clock.advance_in_one_jump(TICK);
        thread::yield_now();
    }
    let bells = tasks.map(|task| task.join().expect("no panic"));
    stopper.join().expect("no panic");
    drop(passed);
    assert!(timer.stop().expect("not on the worker").is_empty());
    assert_eq!(timer.pending_timeouts(), 0);
    assert!(bells.iter().all(|bell| Arc::strong_count(bell) == 1), "a waker is left");
}

#[test]
fn every_task_is_woken() {
    let iterations = iterations();
    let seen = Arc::new(Seen::default());
    let own = seen.clone();
    shuttle::check_random(move || history(&own), iterations);
    let [elapsed, stopped] = [&seen.elapsed, &seen.stopped].map(|n| n.load(SeqCst));
    println!("{iterations} schedules: {elapsed} sleeps elapsed, {stopped} were stopped");
    assert!(elapsed > 0 && stopped > 0);
}
