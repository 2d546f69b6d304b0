//! Idle timeouts for a million connections: report who has been silent for too long.
//!
//! A server tells the [`Watch`] of a connection of every read and write. That is a store, nothing
//! more. When a connection has been silent for its time, a callback says so, and answers whether to
//! watch on. The kinds of silence are those of Netty's `IdleStateHandler`: nothing read, nothing
//! written, neither.
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
//! let policy = IdlePolicy::new().all(Duration::from_millis(20));
//! let watch = idle.watch(7, &policy)?; // a connection is accepted
//! watch.read();                        // bytes have come from it
//! watch.wrote();                       // and some have gone out
//! assert_eq!(closed.recv()?.0, 7);     // then nothing for 20 ms
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! ```text
//!  your threads                     the timer's executor, each tick in which somebody comes up
//! ┌──────────────┐  one store     ┌───────────────────────────────────────────────────────┐
//! │ read, wrote  ├──────────────► │ look at the last touch:  active since ──► file again  │
//! │ touch        │  no lock       │                          silent       ──► callback    │
//! └──────────────┘                └───────────────────────────────────────────────────────┘
//! ```
//!
//! A touch moves nothing. Each connection is filed in a wheel under the tick at which it may first
//! be idle; when that comes, its last touch decides, and one that was active is filed again for the
//! rest. So a connection that is busy for an hour costs one wheel operation in each idle period. All
//! connections of a group of threads share one timeout of the timer, and one lock.
//!
//! The seats of a group lie in segments of 1024, each with a wheel of its own. The manager looks at
//! two or three thousand connections under the lock, then lets others have it, and goes on. A
//! million that are due in one tick are reported in some 500 batches, and a call of
//! [`watch`](IdleTimeouts::watch) meanwhile waits for one of these looks, 0.1 to 0.5 ms, not for all
//! of them.
//!
//! Whoever was active or has left still has an entry in a wheel. The manager looks ahead past such
//! entries, so they cause at most one wake-up in a second or so, and none if nobody is watched.
//!
//! # Guarantees
//!
//! - **Never early**, by the timer's clock: no event before the connection has been silent for its
//!   duration. Late by less than a tick, plus scheduling.
//! - **The event or the touch wins.** A touch that happens before the check leaves no event.
//! - **Nobody is lost.** If the timer is stopped, each connection that is watched is reported once,
//!   as [`IdleKind::TimerStopped`], when what [`stop`](crate::HashedWheelTimer::stop) has returned
//!   is dropped, or when a job of the manager that was with the executor is run or dropped. A job
//!   dropped before is made good, even at the timer's limit.
//! - **A callback may do anything**: touch, watch or drop other connections, drop its own handle,
//!   panic. None runs under a lock. A panic is caught and counted, and the connection is watched on.
//! - **Memory**: about 110 bytes for each connection with its handle, and 24 more while it is watched
//!   on after a report; `T` counts as 8 bytes of that. A burst that has ended keeps about 20 KB for
//!   each group of threads, and for each connection that is left of it at most 16 KB.
//!
//! An event says what one connection lacked, whether it is the first in a row, and for how long it
//! was silent. A connection that is watched on is reported again after each further duration.
//!
//! A closure for each connection is a `watch` as well:
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

mod activity;
mod event;
mod kind;
mod policy;
mod segment;
mod segments;
mod shard;
mod timeouts;
mod timestamp;
mod verdict;
mod watch;

pub use event::{Answer, Idle, IdleEvent};
pub use kind::IdleKind;
pub use policy::IdlePolicy;
pub use timeouts::{Evicted, IdleTimeouts, ScaleError};
pub use timestamp::{IntoTimestamp, Timestamp};
pub use watch::{Paused, Watch};
