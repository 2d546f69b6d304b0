//! `Counts`: what a server has counted, and the same in the `metrics` facade.

use crate::limit::Limit;
use crate::peer::Peer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Counts {
    accepted: AtomicU64,
    cuts: [AtomicU64; Limit::EVERY.len()],
    /// The connections that the shutdown has cut.
    ended: Mutex<Vec<Peer>>,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            accepted: AtomicU64::new(0),
            cuts: std::array::from_fn(|_| AtomicU64::new(0)),
            ended: Mutex::default(),
        }
    }

    pub(crate) fn accept(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        metrics::counter!("wheelwork_http_accepted_total").increment(1);
    }

    /// A connection has got its place in the register.
    pub(crate) fn open(&self) {
        #[cfg(feature = "metrics")]
        metrics::gauge!("wheelwork_http_connections").increment(1.0);
    }

    /// A connection has left.
    pub(crate) fn close(&self) {
        #[cfg(feature = "metrics")]
        metrics::gauge!("wheelwork_http_connections").decrement(1.0);
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn cut(&self, limit: Limit) {
        self.cuts[limit as usize].fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        metrics::counter!("wheelwork_http_cuts_total", "limit" => limit.name()).increment(1);
    }

    pub(crate) fn cuts(&self, limit: Limit) -> u64 {
        self.cuts[limit as usize].load(Ordering::Relaxed)
    }

    /// The shutdown has cut a connection.
    pub(crate) fn end(&self, peer: Peer) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
    }

    pub(crate) fn take_ended(&self) -> Vec<Peer> {
        std::mem::take(&mut self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
