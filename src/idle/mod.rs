//! Idle timeouts for a million connections: reports connections that have been silent for too long.
//!
//! A server records every read and write of a connection in the connection's [`Watch`]. This costs one or two stores.
//! When a connection has been silent for its duration, a callback receives it and answers whether to keep watching. The
//! kinds of silence are those of Netty's `IdleStateHandler`: no reads, no writes, no activity; a write that waits, as
//! in its `WriteTimeoutHandler`; and a maximum age. [The guide](crate::guide::idle_connections) shows it in servers of
//! threads, event loops and tasks.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use wheelwork::HashedWheelTimer;
//! use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
//!
//! let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(5)).build()?;
//! let (sender, closed) = mpsc::channel();
//! let idle = IdleTimeouts::new(&timer, move |id: &mut u64, event| {
//!     let _ = sender.send((*id, event.kind)); // close the connection here
//!     Answer::StopWatching
//! });
//!
//! let policy = IdlePolicy::new().both(Duration::from_millis(20));
//! let watch = idle.watch(7, &policy)?; // a connection is accepted
//! watch.record_read();                 // bytes were read
//! watch.record_write();                // bytes were written
//! assert_eq!(closed.recv()?.0, 7);     // then silence for 20 ms
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # How it works
//!
//! ```text
//!  your threads                     the timer's executor, in each tick with a check
//! ┌──────────────┐  one store     ┌───────────────────────────────────────────────────────┐
//! │ record_read  ├──────────────► │ check the last touch:    active since ──► refile      │
//! │ record_write │  no lock       │                          silent       ──► callback    │
//! └──────────────┘                └───────────────────────────────────────────────────────┘
//! ```
//!
//! A *touch* (a read or a write) moves nothing. Each connection is filed in a wheel under the tick
//! at which it may first be idle. In that tick its last touch decides: a connection that was active
//! meanwhile is refiled for the rest of its duration. So a busy connection costs one wheel operation
//! in each idle period. A *shard* serves a group of threads. All connections of a shard share one
//! timeout of the timer, the *check*, and one lock.
//!
//! The check handles a *slice* of about two thousand connections under the lock, then releases the lock
//! to others before it continues. A million connections that are due in one tick are reported in about
//! 500 batches. Meanwhile a call of [`watch`](IdleTimeouts::watch) waits for one slice at most.
//!
//! The wheel still holds entries of connections that have left or were active. The manager skips them
//! in advance, so they cause at most about one wake-up a second, and none if no connection is watched.
//!
//! # Guarantees
//!
//! - **Never early**, by the timer's clock: no event before the connection has been silent for its
//!   duration. Late by less than a tick, plus scheduling.
//! - **The event or the touch wins.** A touch that happens before the check suppresses the event.
//! - **No connection is lost.** If the timer is stopped, each watched connection is reported once,
//!   as [`IdleKind::TimerStopped`]: on the worker's thread, at its end. The first
//!   [`stop`](crate::HashedWheelTimer::stop) waits for that, unless another kind of stop has ended the
//!   timer before. If an executor still has a job of the
//!   manager, the connections of that shard are reported when the job is run or dropped. A job that an
//!   executor drops before a stop is replaced.
//! - **The manager's own timeouts stay out of sight.** The timer's limit does not apply to them,
//!   [`pending_timeouts`](crate::HashedWheelTimer::pending_timeouts) and
//!   [`metrics`](crate::HashedWheelTimer::metrics) do not count them, and a stop does not return them.
//! - **A callback may do anything**: touch, watch or drop other connections, drop its own handle,
//!   panic. No callback runs under a lock. A panic is caught and counted, and the connection stays
//!   watched.
//! - **Memory**: 84 bytes for each connection with its handle, and 24 more while it stays
//!   watched after a report. A waiting write and an age take up to 32 more. `T` counts as 8 bytes of that. A shard
//!   takes 10 KB; after a burst it keeps at most 140 KB, and each connection that survives the burst keeps at
//!   most 8 KB. If the last one survives, it keeps up to 30 bytes for each 64 connections before it, too: at most
//!   0.5 MB after a million that one thread watched.
//!
//! An event has the kind of silence, its length, and whether it is the first report since the last
//! activity. A connection that stays watched is reported again after each further duration.
//!
//! The watched value can be a closure, one for each connection:
//!
//! ```
//! # use std::time::Duration;
//! # use wheelwork::{HashedWheelTimer, idle::{Answer, IdleEvent, IdlePolicy, IdleTimeouts}};
//! type OnIdle = Box<dyn FnMut(IdleEvent) -> Answer + Send>;
//!
//! let timer = HashedWheelTimer::new()?;
//! let idle = IdleTimeouts::new(&timer, |on_idle: &mut OnIdle, event| on_idle(event));
//! let policy = IdlePolicy::new().reader(Duration::from_secs(30));
//! let watch = idle.watch(Box::new(|_event| Answer::KeepWatching), &policy)?;
//! # drop(watch);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Async streams
//!
//! With the feature `tokio` or `futures-io`, `IdleStreams` wraps async streams. It records their reads and
//! writes itself. If a stream is idle, its waiting read or write fails with an error of kind
//! [`TimedOut`](std::io::ErrorKind::TimedOut).

// From the public entry point down to the words that a touch writes:
//   stream     streams whose reads and writes fail when they are idle
//   timeouts   `IdleTimeouts`, the public entry point
//   watch      `Watch`, the handle of a connection
//   shard      the seats of a group of threads under their lock, and their check
//   manager    what all shards share
//   seats      all seats of a shard, the filing of their checks, and what follows an answer
//   row        64 seats: the stages of a connection
//   verdict    decides whether a connection is idle, and which kind comes first
//   activity   the words that a touch writes and a check reads
//   event      what a callback gets, and its answer
//   outgoing   the progress of a write that only the system sees
//   policy     the durations of a connection
//   kind       the kinds of silence
//   publish    the manager's counts in the `metrics` facade
//   timestamp  a time that was taken once, for many touches
//   untaken    Unix alone: what a socket still holds, because its peer has not taken it
mod activity;
mod event;
mod kind;
mod manager;
mod outgoing;
mod policy;
mod row;
mod seats;
mod shard;
#[cfg(any(feature = "tokio", feature = "futures-io"))]
mod stream;
mod timeouts;
mod timestamp;
#[cfg(unix)]
#[allow(unsafe_code)] // a call of the system; the file explains why it is sound
mod untaken;
mod verdict;
mod watch;

// Last, so that the docs show the other methods before it.
#[cfg(feature = "metrics")]
mod publish;

pub use event::{Answer, Idle, IdleEvent};
pub use kind::IdleKind;
pub use outgoing::Outgoing;
pub use policy::IdlePolicy;
#[cfg(any(feature = "tokio", feature = "futures-io"))]
pub use stream::{IdleStream, IdleStreams, OwnedPauseGuard, Pauser, TimedOut};
pub use timeouts::{IdleTimeouts, ScaleError, Taken};
pub use timestamp::{IntoTimestamp, Timestamp};
pub use watch::{PauseGuard, Watch};
