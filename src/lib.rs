//! A hashed wheel timer for a million connection timeouts.
//!
//! A server arms a timeout for every connection and request, and pushes it back or cancels it long
//! before it fires. A [`HashedWheelTimer`] makes that cheap: scheduling, cancelling and
//! rescheduling are O(1) from any thread, tens of nanoseconds each, and one worker thread
//! serves them all and sleeps while nothing is due. It is modelled on Netty's class of the same
//! name and needs no runtime.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use wheelwork::HashedWheelTimer;
//!
//! let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
//! let (sender, closed) = mpsc::channel();
//! let timeout = timer.new_timeout(move || sender.send("idle").unwrap(), Duration::from_millis(5))?;
//!
//! timeout.reschedule(Duration::from_millis(10))?; // there was traffic: push it back
//! assert_eq!(closed.recv()?, "idle");             // then there was none
//! assert!(!timeout.cancel());                     // too late: it has expired
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The walk of a timeout
//!
//! ```text
//!  your threads                             the worker thread
//! ┌───────────────┐   a heap for each      ┌──────────────────────────────────────────┐
//! │ new_timeout   │   thread, no lock      │ every tick in which something is due:    │
//! │ reschedule    ├──► slots: 40 bytes  ───┼─► transfer   new slots ──► buckets       │
//! │ cancel        │    (task: 16 of them)  │   expire     bucket ──► executor ──► run │
//! └───────────────┘                        │   sweep      dead entries out of it      │
//!   cancel frees the task at once,         │ and sleeps until the next one            │
//!   on your thread                         └──────────────────────────────────────────┘
//! ```
//!
//! # Guarantees
//!
//! 1. **Nothing is lost.** Every accepted timeout ends in exactly one way: its task runs, it is
//!    cancelled, or [`stop`](HashedWheelTimer::stop) returns it. A refused one gives its task back
//!    inside the error. [`pending_timeouts`](HashedWheelTimer::pending_timeouts) is exact: it counts
//!    every call that has returned.
//! 2. **Never early**, by [`std::time::Instant`]; late by less than a tick, plus scheduling. (Where the
//!    system makes `Instant` of the processor's counter, delays are counted with that. Should the counter
//!    lose time while the process runs, each thread can take deadlines that are early by as much until
//!    its next look at `Instant`, which comes after 65,536 counts, some 30 µs; then the process gives
//!    the counter up for good.)
//! 3. **A flood costs nobody else.** No thread that schedules or cancels can make the worker wait. In
//!    one pass the worker takes from each heap its share of 100,000 timeouts, files and expires what is
//!    due, and then files the others. Cancelled ones do not count, and a backlog is worked off before
//!    the worker sleeps. (After a jump in time it takes all that is due, because of guarantee 7.) The
//!    worker looks for dead entries in slices of some milliseconds, and hears an order to stop between
//!    any two.
//! 4. **Memory follows what is alive.** A cancel frees its task at once; what is left in the wheel
//!    is eight bytes, swept out when they outnumber the living. (Sixteen on a wheel with levels that
//!    cascade, and for a timeout too far away for any bucket.) A burst gives its memory back, but
//!    each timeout that survives it, and each handle that is kept, can keep the 2.6 KB around its
//!    slot. A thread keeps 4 KB for each timer in which it has scheduled, until it ends. If the timer
//!    ends first, the thread keeps them until it schedules in another timer for the first time.
//! 5. **No task can hurt another.** Panics are caught and counted: those of tasks, and on the worker
//!    also those of an executor, a callback, a [`Clock`] or a logger. A worker that dies all the same
//!    leaves a stopped timer. A job that the executor refuses is not lost;
//!    [`OnRefusal`](executor::OnRefusal) says what happens to it.
//! 6. **Nothing due, no wake-up.** Ticks in which nothing is due cost nothing. Producers wake the
//!    worker at most once a tick. While nothing is pending the worker does not wake up; and it wakes
//!    up at most once a second for timeouts that were cancelled or pushed back before it went to
//!    sleep. (For one that is cancelled or pushed back while the worker sleeps until its deadline, the
//!    sleep ends once.)
//! 7. **After a stall** what is due runs in the order of ticks, and what one thread scheduled for
//!    one tick in the order it scheduled it. The cost is what is due plus the wheel's size. A periodic
//!    burst that outlasts a tick yields to whatever else is due.
//! 8. **Rounds do not hide each other**: a far timeout in a bucket never delays a near one.
//! 9. **No call hangs**, except where its page says what it waits for.
//!    [`stop`](HashedWheelTimer::stop) waits for the task that runs on the worker at that moment, and for
//!    the worker's thread to end. [`stop_timeout`](HashedWheelTimer::stop_timeout) never waits longer than
//!    its limit; it fails only if a task keeps the worker busy until then, and names that task. A stop
//!    inside a task on the worker is an error. [`build`](Builder::build) fails if the thread cannot start.
//!    No destructor of this crate waits.
//! 10. **Extremes are ordinary**: [`Duration::ZERO`](std::time::Duration::ZERO) is the next tick,
//!     [`Duration::MAX`](std::time::Duration::MAX) is never, one bucket is a wheel.
//!
//! # Limits
//!
//! - A tick is at least 50 µs and the default is 100 ms: this is a timer for timeouts, not for
//!   exact instants.
//! - Deadlines are kept in steps of 8 ns, rounded up, for 584 years from the start of the timer. What
//!   is later is never.
//! - A timer has room for 2^26 chunks of 62 timeouts. Each thread that schedules uses chunks of its
//!   own.
//! - 262,000 handles to one [`Timeout`] at one time are counted exactly. With more, its slot stays in
//!   use until the timer is gone.
//! - Tasks run on the worker unless you give it an [`Executor`]; a slow task there holds up others.
//! - Two timeouts of different threads, due in the same tick, run in no particular order.
//!
//! # In async code
//!
//! These calls block their thread:
//!
//! - [`stop`](HashedWheelTimer::stop): until the task that runs on the worker returns. Await
//!   [`stop_async`](HashedWheelTimer::stop_async) instead.
//! - [`stop_timeout`](HashedWheelTimer::stop_timeout): at most for its limit, and with
//!   [`Duration::ZERO`](std::time::Duration::ZERO) not at all. Taking out the returned timeouts comes on
//!   top, in time proportional to their number.
//! - [`ThreadPool::join`](executor::ThreadPool::join): until the queued jobs have run.
//! - [`ManualClock::advance`]: until the worker has caught up.
//!
//! These do not block, apart from short locks: scheduling, every method of a [`Timeout`], every drop of
//! a handle, of a timer or of an executor. The idle manager's [`watch`](idle::IdleTimeouts::watch) and
//! the drop of a [`Watch`](idle::Watch) wait for a lock that a check holds for 0.5 ms at most.
//!
//! Some run your code: a [`cancel`](Timeout::cancel) that wins, and the drop of a [`CancelOnDrop`], call
//! [`TimerTask::cancelled`] and drop the task, on the calling thread.
//!
//! Executors take their jobs on the worker's thread, so a full pool never holds up a thread that
//! schedules. A task on the worker must not block, because all others wait for it. Nor must one on a
//! tokio runtime, unless it is on the blocking pool.
//!
//! # Around it
//!
//! [`idle`] watches connections and reports the silent ones, at the price of one store for each read
//! or write. [`future`] has sleeps, limits, intervals and delay queues for async programs, on any
//! executor. [`executor`] runs tasks elsewhere; [`Period`] repeats them, and a
//! task of your own goes on as long as it answers so ([`Next`]); [`ManualClock`] tests them
//! without sleeping; [`Metrics`] counts them; [`WheelKind`] chooses the structure, and [`wheel`] has
//! the structures alone, for an event loop of your own.
//!
//! # Features
//!
//! None is on by default. `log` reports panics, refusals and more than 64 live timers through the
//! [log](https://docs.rs/log) facade; `rayon` and `tokio` add their executors; `stream` adds streams to
//! [`future`].
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod base;
pub mod executor;
pub mod future;
mod heap;
pub mod idle;
pub mod time;
mod timeout;
mod timer;
pub mod wheel;
mod worker;

pub use base::refused::Refused;
pub use executor::Executor;
pub use heap::metrics::{Lateness, Metrics};
pub use time::{Clock, ManualClock, SystemClock};
pub use timeout::{
    CancelOnDrop, MissedTickBehavior, Next, Period, Repeat, RescheduleError, Run, Task, Timeout,
    TimerTask, Unprocessed,
};
pub use timer::{
    BuildError, Builder, HashedWheelTimer, RefusalReason, ScheduleError, StopError, WheelKind,
};

/// The README's program runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
