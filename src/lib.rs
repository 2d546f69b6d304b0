//! A hashed wheel timer for a million connection timeouts.
//!
//! A server arms a timeout for every connection and request, and pushes it back or cancels it long
//! before it fires. A [`HashedWheelTimer`] makes that cheap: scheduling, cancelling and
//! rescheduling are O(1) from any thread, tens of nanoseconds each, and one worker thread
//! serves them all and sleeps while nothing is due. It is modelled on Netty's class of the same
//! name and needs no async runtime.
//!
//! A timeout runs a closure. Push it back while there is traffic, or cancel it:
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use wheelwork::HashedWheelTimer;
//!
//! let timer = HashedWheelTimer::new()?; // a tick of 100 ms
//! let (sender, closed) = mpsc::channel();
//! let idle = move || sender.send("idle").unwrap();
//! let timeout = timer.new_timeout(idle, Duration::from_millis(200))?;
//!
//! timeout.reschedule(Duration::from_millis(300))?; // traffic: push it back
//! assert_eq!(closed.recv()?, "idle");              // no more traffic
//! assert!(!timeout.cancel());                      // false: too late, the task has begun
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In async code, limit a future. Any runtime will do, because the timer wakes the task:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), wheelwork::BuildError> {
//! use std::time::Duration;
//! use wheelwork::{HashedWheelTimer, future::TimeoutError};
//!
//! let timer = HashedWheelTimer::new()?;
//! let request = async { timer.sleep(Duration::from_secs(60)).await };
//! let answer = timer.timeout(Duration::from_millis(200), request).await;
//! assert_eq!(answer, Err(TimeoutError::Elapsed));
//! # Ok(())
//! # }
//! ```
//!
//! For very many connections, use [`IdleTimeouts`](idle::IdleTimeouts), because there, a read costs a reading of the
//! clock and a store, not a reschedule:
//!
//! ```
//! use std::time::Duration;
//! use wheelwork::HashedWheelTimer;
//! use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
//!
//! let timer = HashedWheelTimer::new()?;
//! let idle = IdleTimeouts::new(&timer, |connection: &mut u64, event| {
//!     println!("close {connection}, silent for {:?}", event.silent_for);
//!     Answer::StopWatching
//! });
//! let policy = IdlePolicy::new().reader(Duration::from_secs(60));
//! let watch = idle.watch(7, &policy)?; // your name for it, or the connection itself
//! watch.record_read(); // after each read
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Know this first**: one thread, the worker, runs all tasks, in ticks of 100 ms unless you [choose another
//! length](timer::Builder::tick_duration). So a timeout is up to a tick late, and a task that blocks delays all others.
//! Let tasks only send, wake or close, or give the timer an [`Executor`](executor::Executor).
//!
//! The [guide] has a chapter for each use, from [request deadlines](guide::request_deadlines) to [porting from
//! Netty](guide::from_netty) and [tokio](guide::from_tokio).
//!
//! # Modules and types
//!
//! - [`idle`] watches connections and reports the silent ones.
//! - [`watchdog`] reports a thread, a runtime or a shard that is stuck.
//! - [`future`] has sleeps, time limits, intervals and delay queues for async programs, on any executor.
//! - [`global`] is the timer of the process, for libraries.
//! - [`executor`] runs tasks on other threads.
//! - [`Period`] repeats a task. [`task`] has tasks of your own types, which can also run again.
//! - [`ManualClock`] tests timeouts without sleeping.
//! - [`metrics`] counts events, and measures lateness.
//! - [`timer`] has the builder, and the kinds of wheels to choose from. [`wheel`] has the structures alone, for your
//!   own event loop, and [`LocalTimer`](wheel::LocalTimer) has sleeps for the tasks of one thread.
//!
//! # Guarantees
//!
//! 1. **Nothing is lost.** Every accepted timeout ends in exactly one way: its task runs, it is cancelled, or
//!    [`stop`](HashedWheelTimer::stop) returns it.
//!    - A refused timeout gives its task back inside the error.
//!    - The drop of the last handle cancels what is pending.
//!    - [`pending_timeouts`](HashedWheelTimer::pending_timeouts) reflects every call that has returned.
//! 2. **No timeout is early**, measured by [`std::time::Instant`], and each fires within one tick of its deadline, plus
//!    the scheduling delay of the system and the tasks that run before it.
//!    - If the system computes `Instant` from the processor's counter, delays are measured with that counter.
//!    - One exception: if the counter loses time while the process runs, a thread can compute deadlines that are early
//!      by the lost time. The thread compares the counter with `Instant` about every 30 µs. If it finds a loss, the
//!      process stops using the counter.
//! 3. **A flood does not delay other timeouts**, because the worker hardly ever waits for a thread that schedules or
//!    cancels.
//!    - It waits only while the thread uses the same queue, or copies a counted reference under the lock of the
//!      same chunk. Both are rare, and take a few instructions, unless the system interrupts the thread there.
//!    - New timeouts wait in a *chunk* of their thread, memory for 62 timeouts, at least until the first of them is due.
//!    - A *pass* of the worker, one turn of its loop, expires all that are due, and then files at most about 100,000
//!      others in the wheel. Cancelled ones do not count.
//!    - The worker searches for the entries of ended timeouts in slices of a few milliseconds, and checks between two
//!      slices whether it must stop.
//! 4. **Memory is proportional to the live timeouts.** A cancel frees its task immediately, unless the task is running.
//!    - If a cancelled timeout was in the wheel already, it leaves eight bytes there (sixteen on a wheel with levels
//!      that cascade), which are swept out when they outnumber the live timeouts.
//!    - The memory of a burst is freed within about a second. But each timeout that outlives the burst, and each handle
//!      that you keep, can hold a chunk of 2.6 KB.
//!    - A handle that is kept after its timer has ended keeps about 3 KB.
//!    - A thread uses about 3 KB for each timer that it has used, and can keep one more chunk, of which it has freed
//!      slots last. Both are freed when the thread ends or, if the timer has ended, when the thread next changes to
//!      another timer.
//! 5. **No task can hurt another.** Panics of tasks are caught and counted.
//!    - On the worker, panics of an executor, a callback, a [`Clock`](time::Clock) or a logger are caught too.
//!    - If the clock panics after a run, while the next delay is computed, the timeout is cancelled.
//!    - If the worker dies anyway, the timer is stopped.
//!    - With `panic = "abort"` in your profile, nothing can be caught: a panic of a task ends the process.
//!    - A job that the executor refuses is not lost: [`OnRefusal`](executor::OnRefusal) decides what happens to it.
//! 6. **The worker hardly wakes up while nothing is due.** While nothing is pending, only what follows wakes it.
//!    - Ticks in which nothing is due cost nothing.
//!    - Threads that schedule wake the worker at most once per tick. A thread that is interrupted just before it wakes
//!      the worker may wake it once more.
//!    - Timeouts that were cancelled or pushed back before the worker went to sleep wake it at most once per second. If
//!      the timeout that it sleeps for is cancelled or pushed back, the worker wakes up once, at the old deadline.
//!    - To free memory, the worker wakes up at most once per second.
//! 7. **After a stall, due timeouts run in tick order**, and those that one thread scheduled for one tick run in the
//!    order in which it scheduled them.
//!    - A timeout that is overdue when it is scheduled, or moved to a sooner time, counts as due in the next tick.
//!    - The cost is proportional to the due timeouts plus the wheel's size.
//!    - If the missed runs of a periodic timeout take longer than a tick, the other due timeouts run in between.
//! 8. **A far timeout never delays a near one** in the same bucket.
//! 9. **No call blocks** unless its documentation says what it waits for, and no destructor waits for a task.
//!    - [`stop`](HashedWheelTimer::stop) waits for the task that runs on the worker at that moment, and for the end of
//!      the worker's thread.
//!    - [`stop_timeout`](HashedWheelTimer::stop_timeout) never waits longer than its limit, and then names the task
//!      that keeps the worker busy.
//!    - [`stop`](HashedWheelTimer::stop) inside a task on the worker is an error. So is any stop in a forked child.
//!    - [`build`](timer::Builder::build) fails if the thread cannot start.
//! 10. **Extremes work**: [`Duration::ZERO`](std::time::Duration::ZERO) means the next tick,
//!     [`Duration::MAX`](std::time::Duration::MAX) means never, and a wheel can have one bucket.
//!
//! # Limits
//!
//! - A tick is at least 50 µs, and 100 ms by default. The timer is made for timeouts, not for exact
//!   instants.
//! - Deadlines and the starts of ticks are rounded up to steps of 8 ns. A deadline more than 584 years after the
//!   timer's start means never.
//! - A timer has room for 2^26 chunks of 62 timeouts. Each thread that schedules uses its own chunks.
//! - Tasks run on the worker unless you configure an [`Executor`](executor::Executor). A slow task on the worker
//!   delays the others.
//! - Two timeouts of different threads that are due in the same tick run in no particular order.
//! - A timer has no list of what is pending, and no groups. Keep the handles, for example a
//!   [`CancelOnDrop`] for each timeout of a user: the drop of all cancels all.
//! - After a `fork`, the child's copy of a timer does nothing. So build timers after a program has become a daemon. If
//!   another thread was in a call of the timer as the parent forked, or the worker in a pass, the child's copy of a lock
//!   may stay locked. So leave the child by `exec` or `_exit`, without dropping a timer. One exception: if a task on the
//!   worker forks, a child that returns from the task goes on as a worker.
//! - Unsafe code is denied, except in nine files and one function, which loom models, the sanitizers and valgrind check.
//!
//! # In async code
//!
//! These calls block their thread:
//!
//! - [`stop`](HashedWheelTimer::stop): until the task that runs on the worker returns. Await
//!   [`stop_async`](HashedWheelTimer::stop_async) instead.
//! - [`stop_timeout`](HashedWheelTimer::stop_timeout): at most for its limit.
//! - [`ThreadPool::join`](executor::ThreadPool::join): until the queued jobs have run.
//! - [`ManualClock`]: each move of the time, until the worker has caught up.
//!
//! These calls do not block, apart from short locks: scheduling, every method of a [`Timeout`], and every
//! drop of a handle, a timer or an executor. The idle manager's [`watch`](idle::IdleTimeouts::watch) and
//! the drop of a [`Watch`](idle::Watch) wait for a lock that a check holds for about two thousand connections.
//!
//! Some calls run your code on the calling thread. A [`cancel`](Timeout::cancel), and the drop of a [`CancelOnDrop`],
//! call [`TimerTask::cancelled`](task::TimerTask::cancelled) and drop the task, unless it is running. If a stop gave up
//! waiting and nobody has called it again, the drop of the timer's last handle does this for each timeout that is left.
//!
//! The worker's thread hands jobs to the executor, so a full pool never delays a thread that schedules. A
//! task on the worker must not block, because all others wait for it. A task on a tokio runtime must not
//! block either, unless it runs on the blocking pool.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `log` warns through the [log](https://docs.rs/log) facade, target `wheelwork`. It warns of panics, refused jobs
//!   and timeouts, a backlog, timeouts that run ten ticks late (at least 100 ms), a last handle whose drop cancels
//!   timeouts, and more than 64 live timers. Refusals, backlogs and lateness are reported together, at most once per second.
//! - `metrics` adds [`publish_metrics`](HashedWheelTimer#method.publish_metrics) to a timer and to an idle manager:
//!   counters and lateness in the [metrics](https://docs.rs/metrics) facade, for Prometheus and others.
//! - `rayon` and `tokio` add their executors. `tokio` and `futures-io` add async streams with idle timeouts
//!   to [`idle`].
//! - `tracing` sends the same warnings as [tracing](https://docs.rs/tracing) events. The field `timer` has
//!   the name of the worker's thread; other fields have the numbers. Sleeps, and what is built on them,
//!   are resources in [tokio-console](https://docs.rs/tokio-console), each with the line that created it.
//! - `serde`: `Serialize` and `Deserialize` for [`Metrics`](metrics::Metrics) and [`Lateness`](metrics::Lateness).
//! - `stream`: `Stream` for [`Interval`](future::Interval) and [`DelayQueue`](future::DelayQueue); throttle, debounce
//!   and chunks.
//! - `backon` and `aws-smithy-async` make the timer the sleeper of
//!   [backon](https://docs.rs/backon)'s retries and of AWS SDKs.
//! - `boottime` adds `time::BoottimeClock`, for Linux: a clock that also runs while the machine is suspended.
//! - `hyper` makes a [`HashedWheelTimer`] the timer of hyper's servers and clients. `tonic` lets tonic's own server
//!   take an [`IdleStream`](idle::IdleStream).
//!
//! # How it works
//!
//! The picture follows a timeout from the call to its task. The [design notes](guide::design) explain each step.
//!
//! <div style="overflow-x:auto">
#![doc = include_str!("../docs/walk.svg")]
//! </div>
//!
//! # Beside other timers
//!
//! How late a heartbeat of 5 ms is while 16 other threads schedule and cancel. The chapter [How fast it is](guide::speed)
//! has all figures, also those where others win.
//!
//! <div style="overflow-x:auto">
#![doc = include_str!("../benches/results/headline.svg")]
//! </div>
//!
//! # Systems
//!
//! All tests pass on Linux, x86-64. [Systems](guide::systems) lists what was tested elsewhere. [Suspends and
//! stalls](guide::suspends) describes how clocks and sleeps differ.
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// First, so that the docs show the methods of `timer` before those of `future`.
pub mod timer;

mod base;
pub mod executor;
pub mod future;
#[cfg(any(doc, doctest))]
pub mod guide;
pub mod idle;
mod intake;
pub mod metrics;
pub mod time;
mod timeout;
mod unwind_safe;
pub mod watchdog;
pub mod wheel;
mod worker;

#[doc(inline)]
pub use time::ManualClock;
pub use timeout::{
    CancelOnDrop, MissedTickBehavior, Period, RefusalReason, RescheduleError, ScheduleError,
    Timeout, Unprocessed,
};
pub use timer::error::{BuildError, StopError};
#[cfg(not(any(loom, shuttle)))]
pub use timer::global::{global, install_global, try_global};
pub use timer::hashed_wheel_timer::HashedWheelTimer;

/// Tasks: what a timeout runs. Every `FnOnce() + Send + 'static` closure is one. Your own type can also see its
/// run, run again, and be told of its cancel.
pub mod task {
    pub use crate::timeout::{Next, Repeat, Run, Task, TaskFn, TimerTask, task_fn};
}

/// The README's program runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
