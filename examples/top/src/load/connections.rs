//! Real connections: the event loop of `idle_connections`, and its clients. The server closes connections
//! that have been silent for too long, and the clients open new ones instead.

use super::clients::limits::{connections_within, raise_open_files};
use super::clients::{self, Outcome, Plan};
use super::mio_server::Server;
use super::{TICK, spawn};
use mio::Token;
use socket2::SockRef;
use std::array;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::idle::IdleTimeouts;

/// A connection is closed after this silence.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(10);

/// Ages are counted in steps of a second.
pub(crate) const AGES: usize = 10;

/// A client talks for this time at most.
const TALK: Duration = Duration::from_secs(30);

/// A close that is later than its time by this counts as missed. Long, for a busy machine.
const GRACE: Duration = Duration::from_secs(30);

/// How many clients may wait to be accepted.
const BACKLOG: i32 = 1024;

pub(crate) struct Connections {
    idle: IdleTimeouts<Token>,
    closed: Arc<AtomicU64>,
    /// What the clients have seen.
    seen: Mutex<Outcome>,
}

/// Starts the server, whose thread ends with the process, and the clients, whose thread is returned.
pub(super) fn start(
    timer: &HashedWheelTimer,
    count: u32,
    ends: &Arc<AtomicBool>,
) -> io::Result<(Arc<Connections>, JoinHandle<()>)> {
    let files = raise_open_files()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    SockRef::from(&listener).listen(BACKLOG)?;
    let (address, closed) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
    let server = Server::new(listener, timer, IDLE_AFTER)?;
    let (idle, seen) = (server.idle.clone(), Mutex::default());
    let connections = Arc::new(Connections { idle, closed: closed.clone(), seen });
    spawn("server".to_owned(), move || drop(server.run(&closed)))?;

    let plan = Plan {
        connections: u64::from(count).min(connections_within(files) / 2), // both ends are here
        replaces: true,
        idle: IDLE_AFTER,
        talk: TALK,
        tick: TICK,
        grace: GRACE,
        seed: 1,
    };
    let (reporting, ends) = (connections.clone(), ends.clone());
    let clients = spawn("clients".to_owned(), move || {
        let report = |outcome| reporting.report(outcome, &ends);
        drop(clients::run(plan, address, report));
    })?;
    Ok((connections, clients))
}

impl Connections {
    /// Fails when the load ends, which ends the clients.
    fn report(&self, outcome: Outcome, ends: &AtomicBool) -> io::Result<()> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
        if ends.load(Relaxed) { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    pub(crate) fn watched(&self) -> usize {
        self.idle.watched()
    }

    /// The number of connections that were closed because of their silence.
    pub(crate) fn closed(&self) -> u64 {
        self.closed.load(Relaxed)
    }

    /// The number of connections that the clients found closed too early, too late, or with other bytes
    /// than they sent.
    pub(crate) fn wrong(&self) -> u64 {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.wrongly_closed + seen.missed + seen.garbled
    }

    /// The number of connections by the seconds for which they have been silent.
    pub(crate) fn ages(&self) -> [u64; AGES] {
        let at_least = |seconds| self.idle.count_silent(Duration::from_secs(seconds)) as u64;
        let counts: [u64; AGES] = array::from_fn(|seconds| at_least(seconds as u64));
        // Connections age from count to count.
        let older = |age: usize| counts.get(age + 1).copied().unwrap_or_default();
        array::from_fn(|age| counts[age].saturating_sub(older(age)))
    }
}
