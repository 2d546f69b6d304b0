//! `Desk`: the register of connections.

use super::state::Conn;
use crate::counts::Counts;
use crate::peer::Peer;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Desk {
    register: Mutex<Register>,
    /// The number of connections. Written under the lock.
    open: AtomicUsize,
    pub(crate) counts: Arc<Counts>,
    /// A connection has left, or a shutdown was requested.
    pub(crate) changed: Notify,
    pub(crate) shutdown: AtomicBool,
}

#[derive(Debug, Default)]
struct Register {
    places: Vec<Option<Arc<Conn>>>,
    free: Vec<u32>,
    /// Counted only if there is a limit for it.
    by_host: HashMap<IpAddr, usize>,
    counts_hosts: bool,
}

/// There are too many connections from one address.
pub(crate) struct TooMany;

impl Desk {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            register: Mutex::default(),
            open: AtomicUsize::new(0),
            counts: Arc::new(Counts::new()),
            changed: Notify::new(),
            shutdown: AtomicBool::new(false),
        })
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection of this peer, unless there are too many. It counts for its previous one no longer.
    pub(crate) fn admit(&self, peer: &Peer, previous: &Peer, most: usize) -> Result<(), TooMany> {
        let mut register = self.register();
        register.counts_hosts = true;
        let count = |host| register.by_host.get(&host).map_or(0, |&count| count);
        let is_new = peer.host() != previous.host();
        if is_new && peer.host().is_some_and(|host| count(host) >= most) {
            return Err(TooMany);
        }
        register.forget_host(previous);
        if let Some(host) = peer.host() {
            *register.by_host.entry(host).or_default() += 1;
        }
        Ok(())
    }

    /// Gives a connection its place.
    pub(crate) fn enter(&self, conn: &Arc<Conn>) {
        let mut register = self.register();
        let place = register.free.pop().unwrap_or(register.places.len() as u32);
        if place as usize == register.places.len() {
            register.places.push(None);
        }
        register.places[place as usize] = Some(conn.clone());
        conn.place.store(place, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        drop(register);
        self.counts.open();
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
            register.forget_host(&conn.peer());
        }
        if register.free.len() == register.places.len() {
            (register.places, register.free) = (Vec::new(), Vec::new());
        }
        drop(register);
        drop(taken);
        self.counts.close();
        self.changed.notify_waiters();
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// All connections.
    pub(crate) fn all(&self) -> Vec<Arc<Conn>> {
        self.register().places.iter().flatten().cloned().collect()
    }

    /// Up to `n` connections without requests: those that are unused longest.
    pub(crate) fn idlest(&self, n: usize) -> Vec<Arc<Conn>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_connections_takes_no_room() {
        let desk = Desk::new();
        let [first, second] =
            ["10.0.0.1:80", "10.0.0.2:80"].map(|at| Peer::Tcp(at.parse().unwrap()));
        assert!(desk.admit(&first, &Peer::Local, 0).is_err());
        assert!(desk.register().by_host.is_empty());
        assert!(desk.admit(&first, &Peer::Local, 1).is_ok());
        assert!(desk.admit(&second, &first, 1).is_ok());
        assert!(desk.admit(&Peer::Local, &second, 1).is_ok());
        assert!(desk.register().by_host.is_empty());
    }
}
