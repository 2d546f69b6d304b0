//! The server, in three kinds: each watches its connections with the idle manager in the way that
//! suits it.
//!
//! | kind | a touch | what an idle event does |
//! |---|---|---|
//! | `event_loop` | after each read | sends "look at this one" to the loop, which closes it |
//! | `threaded` | after each read | shuts the socket down, which ends the thread's read |
//! | `tasks` | after each read | wakes the task, which closes its connection |
//!
//! An idle event closes nothing without one more look at the socket: bytes may lie there that the
//! server has not come to read. So no unread byte is ever thrown away. A peer that has shut down its
//! sending side may still be reading, so it is kept until it is idle.

mod event_loop;
mod tasks;
mod threaded;
mod unread;

use clap::ValueEnum;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wheelwork::idle::IdlePolicy;
use wheelwork::{HashedWheelTimer, Metrics};

/// A wheel of more buckets gains nothing: the rest of a longer delay is counted in rounds.
const MOST_TICKS: u128 = 1 << 14;

/// How soon to accept again after the system had no file or no memory for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// One event loop, on mio.
    #[default]
    Mio,
    /// A thread for each connection.
    Threaded,
    /// A tokio task for each connection.
    Tokio,
}

/// What the server can say of itself at the end.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) closed_as_idle: u64,
    pub(crate) timer: Metrics,
}

/// A running server.
pub(crate) trait Server {
    fn address(&self) -> SocketAddr;
    /// Whether it has ended, which it only does by itself after an error.
    fn has_ended(&self) -> bool;
    fn stop(self: Box<Self>) -> io::Result<Report>;
}

/// What all kinds need.
#[derive(Clone, Debug)]
struct Terms {
    idle: Duration,
    policy: IdlePolicy,
    timer: HashedWheelTimer,
}

pub(crate) fn start(kind: Kind, idle: Duration, tick: Duration) -> io::Result<Box<dyn Server>> {
    let ticks = idle.as_nanos() / tick.as_nanos().max(1) + 1;
    let timer = HashedWheelTimer::builder()
        .tick_duration(tick)
        .ticks_per_wheel(ticks.min(MOST_TICKS) as usize)
        .thread_name("idle-timer")
        .build()
        .map_err(io::Error::other)?;
    let terms = Terms { idle, policy: IdlePolicy::new().reader(idle), timer };
    Ok(match kind {
        Kind::Mio => Box::new(event_loop::start(terms)?),
        Kind::Threaded => Box::new(threaded::start(terms)?),
        Kind::Tokio => Box::new(tasks::start(terms)?),
    })
}

/// Connections closed as idle.
#[derive(Debug, Default)]
struct Closed(AtomicU64);

impl Closed {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self, terms: &Terms) -> Report {
        Report { closed_as_idle: self.0.load(Ordering::Relaxed), timer: terms.timer.metrics() }
    }
}
