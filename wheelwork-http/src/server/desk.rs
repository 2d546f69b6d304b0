//! `Desk`: the register of connections, and the counts.

use crate::conn::Conn;
use crate::limit::Limit;
use crate::peer::Peer;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Desk {
    register: Mutex<Register>,
    /// The number of connections. Written under the lock.
    open: AtomicUsize,
    accepted: AtomicU64,
    cuts: [AtomicU64; Limit::EVERY.len()],
    /// The connections that the shutdown has cut.
    ended: Mutex<Vec<Peer>>,
    /// A connection has left, or a shutdown was requested.
    pub(super) changed: Notify,
    pub(super) shutdown: AtomicBool,
}

#[derive(Debug, Default)]
struct Register {
    places: Vec<Option<Arc<Conn>>>,
    free: Vec<u32>,
    /// Counted only if there is a limit for it.
    by_host: HashMap<IpAddr, usize>,
    counts_hosts: bool,
}

/// A place in the register that no connection has taken yet.
pub(super) struct TooMany;

impl Desk {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            register: Mutex::default(),
            open: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            cuts: std::array::from_fn(|_| AtomicU64::new(0)),
            ended: Mutex::default(),
            changed: Notify::new(),
            shutdown: AtomicBool::new(false),
        })
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection of this peer, unless there are too many.
    pub(super) fn admit(&self, peer: &Peer, most_of_host: Option<usize>) -> Result<(), TooMany> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let (Some(most), Some(host)) = (most_of_host, peer.host()) else { return Ok(()) };
        let mut register = self.register();
        register.counts_hosts = true;
        let count = register.by_host.entry(host).or_default();
        if *count >= most {
            return Err(TooMany);
        }
        *count += 1;
        Ok(())
    }

    /// Gives a connection its place.
    pub(super) fn enter(&self, conn: &Arc<Conn>) {
        let mut register = self.register();
        let place = register.free.pop().unwrap_or(register.places.len() as u32);
        if place as usize == register.places.len() {
            register.places.push(None);
        }
        register.places[place as usize] = Some(conn.clone());
        conn.place.store(place, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, conn: &Conn) {
        let mut register = self.register();
        let place = conn.place.load(Ordering::Relaxed);
        let taken = register.places.get_mut(place as usize).and_then(Option::take);
        if taken.is_none() {
            return;
        }
        register.free.push(place);
        self.open.fetch_sub(1, Ordering::Relaxed);
        if register.counts_hosts {
            register.forget_host(&conn.peer);
        }
        if register.free.len() == register.places.len() {
            (register.places, register.free) = (Vec::new(), Vec::new());
        }
        drop(register);
        drop(taken);
        self.changed.notify_waiters();
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, limit: Limit) {
        self.cuts[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cuts(&self, limit: Limit) -> u64 {
        self.cuts[limit as usize].load(Ordering::Relaxed)
    }

    /// The shutdown has cut a connection.
    pub(crate) fn note_end(&self, peer: Peer) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
    }

    pub(super) fn take_ended(&self) -> Vec<Peer> {
        std::mem::take(&mut self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All connections.
    pub(super) fn all(&self) -> Vec<Arc<Conn>> {
        self.register().places.iter().flatten().cloned().collect()
    }

    /// Up to `n` connections without requests, the longest unused first.
    pub(super) fn idlest(&self, n: usize) -> Vec<Arc<Conn>> {
        let unused = |conn: Arc<Conn>| Some((conn.unused_since()?, conn));
        let mut unused: Vec<_> = self.all().into_iter().filter_map(unused).collect();
        let n = n.min(unused.len());
        if n == 0 {
            return Vec::new();
        }
        unused.select_nth_unstable_by_key(n - 1, |&(since, _)| since);
        unused.truncate(n);
        unused.into_iter().map(|(_, conn)| conn).collect()
    }
}

impl Register {
    fn forget_host(&mut self, peer: &Peer) {
        let Some(host) = peer.host() else { return };
        let Some(count) = self.by_host.get_mut(&host) else { return };
        *count -= 1;
        if *count == 0 {
            self.by_host.remove(&host);
        }
    }
}
