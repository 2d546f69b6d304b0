//! `Shared`: the parts of a server that runs.

use crate::conn::{Desk, Settings};
use crate::cut::Effect;
use crate::limit::Limit;
use crate::peer::Peer;
use crate::request::Executor;
use hyper::server::conn::{http1, http2};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) desk: Arc<Desk>,
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<Executor>,
}

impl Shared {
    /// Counts a connection of this peer, in place of its previous one. Returns false if there are too many from its
    /// address.
    pub(super) fn admits(&self, peer: &Peer, previous: &Peer) -> bool {
        let Some(most) = self.settings.limits.connections_per_address else { return true };
        let is_one_too_many = self.desk.admit(peer, previous, most).is_err();
        if is_one_too_many {
            let limit = Limit::ConnectionsPerAddress;
            self.settings.report(limit, Effect::Refused, peer, Duration::ZERO, 0);
        }
        !is_one_too_many
    }
}
