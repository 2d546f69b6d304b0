//! The timer in async programs: sleeps, limits, intervals and delay queues, on any executor.
//!
//! Everything here uses [`std::future`] alone. It needs no runtime, no feature, and no context that must
//! be entered. The timer's worker calls the wakers, and the executor polls.
//!
//! ```
//! # use std::time::Duration;
//! # async fn fetch() -> u32 { 7 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use wheelwork::HashedWheelTimer;
//!
//! let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(5)).build()?;
//! timer.sleep(Duration::from_millis(10)).await;
//! let answer = timer.timeout(Duration::from_secs(1), fetch()).await?;
//! assert_eq!(answer, 7);
//! # Ok(())
//! # }
//! ```
//!
//! # Which to use when
//!
//! | you want to | use |
//! |---|---|
//! | wait | [`sleep`], [`sleep_until`] |
//! | limit a future | [`timeout`], or [`TimedFutureExt`] on the future |
//! | push a limit back on each event | a [`Sleep`] beside it, and `reset` |
//! | do something periodically | [`interval`] |
//! | expire many values in one task | [`DelayQueue`] |
//! | close silent connections | [`idle`](crate::idle): one store per event |
//! | limit or thin out a stream | `TimedStreamExt`, feature `stream` |
//! | end the timer | [`stop_async`] |
//!
//! A library that is passed no timer uses the functions of this module: [`sleep()`], [`timeout()`],
//! [`interval()`]. They run on the timer of the process. See [In a library](crate::guide::in_a_library).
//!
//! [`sleep`]: crate::HashedWheelTimer::sleep
//! [`sleep_until`]: crate::HashedWheelTimer::sleep_until
//! [`timeout`]: crate::HashedWheelTimer::timeout
//! [`interval`]: crate::HashedWheelTimer::interval
//! [`stop_async`]: crate::HashedWheelTimer::stop_async
//!
//! # Guarantees
//!
//! - **The clock decides.** When a future is polled, it is ready if the timer's clock has reached its
//!   deadline, even if the worker has not processed the deadline yet. It is never ready early. With
//!   a delay of zero it is ready at its first poll. The wake-up comes within a tick after the deadline.
//! - **The latest waker is woken.** No wake-up is lost, even if another thread polls, resets, drops or
//!   stops at the same time.
//! - **A reset wakes.** A reset into the past wakes the waiting task immediately. Any other reset moves
//!   the wake-up, and the task need not poll again.
//! - **A drop frees.** It takes the waker out of the timer and drops it, in O(1).
//! - **Wake-ups run on the worker**, even if the timer has an executor, so a full pool delays none. (A
//!   reset into the past wakes on the thread that calls it.) A waker is cloned, woken
//!   and dropped under no lock. If a waker panics, the panic is caught and counted, and affects no other
//!   task.
//! - **A stop resolves everything.** Each sleep and each limit becomes ready and its task is woken;
//!   `was_stopped` distinguishes this from an expiry. Intervals end. `stop` returns none of their
//!   timeouts. No future keeps its timer alive: the drop of the last
//!   [`HashedWheelTimer`](crate::HashedWheelTimer) is a stop for them. So keep a handle.
//! - **Nothing is refused.** A future counts as one pending timeout while its waker is in the timer.
//!   [The limit](crate::timer::Builder::max_pending_timeouts) never refuses it, because a future could not report
//!   that. If all slots that a timer can have are in use (about 2^32), the task is woken again and again
//!   until a slot is free.
//!
//! # What it costs
//!
//! A timer has one thread. It sleeps while nothing is due, and wakes up once per tick in which
//! something is. One timer serves all runtimes of a process; make one and clone its handle.
//!
//! A [`Sleep`] takes 56 bytes, 64 with the feature `tracing`, and from its first poll a slot of 40 bytes in the timer.
//! Its first poll costs as much as [`new_timeout`](crate::HashedWheelTimer::new_timeout), and allocates nothing. A later
//! poll with the same waker costs one clock read. A [`FutureTimeout`] whose future is ready at its first poll never
//! uses the wheel.
//!
//! Each wake-up comes from the worker's thread. For a runtime, this is a wake-up from outside, which
//! costs more than a wake-up by its own timer. This matters for timeouts that fire, not for those that
//! are dropped in time. An executor that polls inside `wake` runs the task on the worker, where a slow
//! poll delays all other timeouts.
//!
//! A runtime must let other threads wake its tasks. All common ones do, but monoio only with its feature
//! `sync`: without it, the wake-up panics, and the task waits for ever.
//!
//! # In other crates
//!
//! Crates that wait can wait on this timer, if they let their user choose it:
//!
//! | crate | how |
//! |---|---|
//! | hyper, axum | feature `hyper`: [HTTP servers](crate::guide::http_servers) |
//! | backon | feature `backon`: `retry(..).sleep(timer.clone())` |
//! | AWS SDKs | feature `aws-smithy-async`: `sleep_impl(timer.clone())` |
//! | quinn | copy `examples/plugs/src/quic.rs`, 40 lines |
//! | OpenTelemetry | copy `examples/plugs/src/traces.rs`, 37 lines |
//!
//! The files are in the repository. End the work of these crates before you stop the timer: after a stop,
//! retries do not wait, calls of an SDK time out, and the two others have no timeouts.
//!
//! A connection of quinn gets its timers from a [`Sleep`] like this:
//!
//! ```
//! # use std::{pin::Pin, task::{Context, Poll, ready}, time::Instant};
//! use wheelwork::future::Sleep;
//!
//! struct QuicTimer(Sleep); // from `timer.sleep_until(deadline)`
//!
//! # trait AsyncTimer {
//! #     fn reset(self: Pin<&mut Self>, deadline: Instant);
//! #     fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
//! # }
//! impl AsyncTimer for QuicTimer {
//!     fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
//!         self.0.reset(deadline);
//!     }
//!     fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
//!         ready!(Pin::new(&mut self.0).poll(cx));
//!         // After a stop every sleep is ready, and quinn would poll again and again.
//!         if self.0.was_stopped() { Poll::Pending } else { Poll::Ready(()) }
//!     }
//! }
//! ```
//!
//! # Tests without waiting
//!
//! A [`ManualClock`](crate::ManualClock) stands still until the test moves it.
//! [`run`](crate::ManualClock::run) moves it whenever the future waits:
//!
//! ```
//! # use std::time::Duration;
//! use wheelwork::{HashedWheelTimer, ManualClock};
//!
//! let clock = ManualClock::new();
//! let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
//! let hour = Duration::from_secs(3600);
//! clock.run(timer.sleep(hour));
//! assert_eq!(clock.elapsed(), hour);
//! # Ok::<(), wheelwork::BuildError>(())
//! ```
//!
//! On another executor, `advance` returns after all due wakers were called.
//! See [Tests on virtual time](crate::guide::virtual_time).
//!
//! # Compared with `tokio::time`
//!
//! A program that has tokio's timer, and only a few long timeouts, needs no other timer. This crate is
//! for programs without such a runtime or with several runtimes, for very many timeouts that rarely fire,
//! and for timeouts that are shared with plain threads. [From `tokio::time`](crate::guide::from_tokio)
//! has each call and what differs.

// The files:
//   resource     a sleep as tokio-console shows it
//   sleep        a future that is ready at an instant; all others are built on it
//   timeout      a future with a limit
//   interval     ticks at a period
//   global       sleeps, limits and intervals of the process's timer
//   delay_queue  values that each come out at their own deadline
//   sleepers     the timer as the sleeper of other crates: backon's retries; timeouts and retries of AWS SDKs
//   stop_async   the end of a timer, without blocking
//   stream       methods on streams
//   hyper        the timer as hyper's
//   virtual_time  runs futures on a manual clock, which moves when all of them wait
mod delay_queue;
#[cfg(not(any(loom, shuttle)))]
mod global;
#[cfg(feature = "hyper")]
mod hyper;
mod interval;
#[cfg(all(test, loom))]
mod model;
mod resource;
mod sleep;
#[cfg(any(feature = "aws-smithy-async", feature = "backon"))]
mod sleepers;
mod stop_async;
#[cfg(feature = "stream")]
mod stream;
mod timeout;
mod virtual_time;

pub use delay_queue::{DelayKey, DelayQueue, Delayed};
#[cfg(not(any(loom, shuttle)))]
pub use global::{interval, sleep, sleep_until, timeout, timeout_at};
pub use interval::Interval;
pub use sleep::Sleep;
pub use stop_async::Stop;
#[cfg(feature = "stream")]
pub use stream::{ChunksTimeout, Debounce, StreamTimeout, Throttle, TimedStreamExt};
pub use timeout::{FutureTimeout, TimedFutureExt, TimeoutError};
pub use virtual_time::{Spawned, Tasks};
