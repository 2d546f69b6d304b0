//! The operations that are counted, each repeated on one thread.
//!
//! Nothing depends on the time of day: times on a manual clock are whole seconds, and an instant
//! counts from the start of its timer. Otherwise the subtraction of two instants would sometimes
//! have to borrow from the seconds, and would then take some instructions more.
//!
//! A workload forgets what it has made, so that no destructor is counted.

use std::collections::VecDeque;
use std::future::ready;
use std::hint::black_box;
use std::mem::forget;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use wheelwork::future::DelayQueue;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock, Timeout};

/// A tick that no workload outlasts, so the worker sleeps.
const HOUR: Duration = Duration::from_secs(3600);

const SECOND: Duration = Duration::from_secs(1);
const DELAY: Duration = Duration::from_secs(30);

const WINDOW: usize = 1_000;

/// The number of values in the delay queue.
const PRESENT: u64 = 100_000;

/// The number of timeouts that fire in one jump of the clock. A small burst would reuse the memory of
/// the last one, and cost less.
const BURST: u64 = 10_000;

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// Performs the operation this many times.
    pub(crate) repeat: fn(u64),
    /// Whether the timer turns a delay into a deadline, by the system's clock.
    pub(crate) by_delay: bool,
}

const fn by_delay(name: &'static str, repeat: fn(u64)) -> Operation {
    Operation { name, repeat, by_delay: true }
}

const fn timeless(name: &'static str, repeat: fn(u64)) -> Operation {
    Operation { name, repeat, by_delay: false }
}

pub(crate) const OPERATIONS: [Operation; 13] = [
    by_delay("schedule+cancel, no captures", schedule_and_cancel),
    by_delay("schedule+cancel, no captures, with a limit", schedule_and_cancel_within_a_limit),
    by_delay("schedule+cancel, 16 bytes captured", schedule_and_cancel_16),
    timeless("schedule+cancel, 16 bytes captured, by instant", schedule_at_and_cancel_16),
    by_delay("reschedule, push back", reschedule),
    by_delay("schedule and keep the handle, 16 bytes captured", schedule_and_keep_16),
    by_delay("rolling window of 1,000, 16 bytes captured", rolling_16),
    timeless("schedule and fire, one Arc captured, manual clock", schedule_and_fire),
    timeless("idle manager: a read, the time known", idle_read),
    by_delay("future: a limit on a ready future", limit_ready),
    by_delay("future: sleep, poll, drop", sleep_poll_drop),
    by_delay("future: reset, poll", reset_poll),
    by_delay("delay queue: insert and remove beside 100,000", queue_insert_remove),
];

/// Returns when the worker has had its only wake-up, which the first timeout causes.
fn sleeping_timer() -> HashedWheelTimer {
    sleeping(HashedWheelTimer::builder())
}

fn sleeping(builder: Builder) -> HashedWheelTimer {
    let timer = builder.tick_duration(HOUR).build().expect("a timer");
    timer.new_timeout(|| (), 2 * HOUR).expect("it runs");
    thread::sleep(Duration::from_millis(50));
    timer
}

fn task_of_16_bytes() -> impl FnOnce() + Send + 'static {
    let captured = black_box([1u64, 2]);
    move || _ = black_box(captured)
}

#[inline(always)] // so that no call of the benchmark is counted
fn schedule_16(timer: &HashedWheelTimer) -> Timeout {
    timer.new_timeout(task_of_16_bytes(), black_box(DELAY)).expect("it runs")
}

fn schedule_and_cancel(times: u64) {
    schedule_and_cancel_in(sleeping_timer(), times);
}

fn schedule_and_cancel_within_a_limit(times: u64) {
    let builder = HashedWheelTimer::builder().max_pending_timeouts(1000);
    schedule_and_cancel_in(sleeping(builder), times);
}

fn schedule_and_cancel_in(timer: HashedWheelTimer, times: u64) {
    for _ in 0..times {
        black_box(timer.new_timeout(|| (), black_box(DELAY)).expect("it runs").cancel());
    }
    forget(timer);
}

fn schedule_and_cancel_16(times: u64) {
    let timer = sleeping_timer();
    for _ in 0..times {
        black_box(schedule_16(&timer).cancel());
    }
    forget(timer);
}

fn schedule_at_and_cancel_16(times: u64) {
    let timer = sleeping_timer();
    let deadline = timer.started_at() + DELAY;
    for _ in 0..times {
        let timeout = timer.new_timeout_at(task_of_16_bytes(), black_box(deadline));
        black_box(timeout.expect("it runs").cancel());
    }
    forget(timer);
}

fn reschedule(times: u64) {
    let timer = sleeping_timer();
    let timeout = schedule_16(&timer);
    for _ in 0..times {
        timeout.reschedule(black_box(DELAY)).expect("it is pending");
    }
    forget((timer, timeout));
}

fn schedule_and_keep_16(times: u64) {
    let timer = sleeping_timer();
    let mut kept = Vec::with_capacity(times as usize);
    for _ in 0..times {
        kept.push(schedule_16(&timer));
    }
    forget((timer, kept));
}

fn rolling_16(times: u64) {
    let timer = sleeping_timer();
    let mut window: VecDeque<_> = (0..WINDOW).map(|_| schedule_16(&timer)).collect();
    for _ in 0..times {
        black_box(window.pop_front().map(|oldest| oldest.cancel()));
        window.push_back(schedule_16(&timer));
    }
    forget((timer, window));
}

/// Counts the worker's instructions too.
fn schedule_and_fire(times: u64) {
    let clock = ManualClock::new();
    let builder = HashedWheelTimer::builder().tick_duration(SECOND).clock(clock.clone());
    let timer = builder.build().expect("a timer");
    let shared = Arc::new(());
    for _ in 0..times / BURST {
        for _ in 0..BURST {
            let captured = Arc::clone(&shared);
            timer.new_timeout(move || drop(captured), black_box(DELAY)).expect("it runs");
        }
        clock.advance_in_one_jump(DELAY + SECOND);
    }
    assert_eq!(timer.pending_timeouts(), 0, "all have fired");
    forget(timer);
}

fn idle_read(times: u64) {
    let idle = IdleTimeouts::new(&sleeping_timer(), |_: &mut u64, _| Answer::KeepWatching);
    let watch = idle.watch(0, &IdlePolicy::new().both(DELAY)).expect("it runs");
    let now = idle.now();
    for _ in 0..times {
        black_box(&watch).record_read_at(black_box(now));
    }
    forget((idle, watch));
}

/// The future never uses the wheel; its limit is computed when it is made.
fn limit_ready(times: u64) {
    let timer = sleeping_timer();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        let limited = pin!(timer.timeout(black_box(DELAY), black_box(ready(()))));
        let _ready = black_box(limited.poll(&mut context));
    }
    forget(timer);
}

fn sleep_poll_drop(times: u64) {
    let timer = sleeping_timer();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        let sleep = pin!(timer.sleep(black_box(DELAY)));
        black_box(sleep.poll(&mut context).is_pending());
    }
    forget(timer);
}

fn reset_poll(times: u64) {
    let timer = sleeping_timer();
    let mut context = Context::from_waker(Waker::noop());
    let mut sleep = timer.sleep(DELAY);
    for _ in 0..times {
        sleep.reset_after(black_box(DELAY));
        black_box(Pin::new(&mut sleep).poll(&mut context).is_pending());
    }
    forget((timer, sleep));
}

/// The delays spread over 30 seconds. Nothing is due meanwhile, so the worker sleeps.
fn queue_insert_remove(times: u64) {
    let builder = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1));
    let timer = builder.build().expect("a timer");
    let mut queue = DelayQueue::new(&timer);
    let delay = |n: u64| SECOND + Duration::from_millis(n * 7919 % 29_000);
    (0..PRESENT).for_each(|n| _ = queue.insert(n, delay(n)));
    for n in 0..times {
        let key = queue.insert(n, black_box(delay(n)));
        black_box(queue.remove(key));
    }
    forget((timer, queue));
}
