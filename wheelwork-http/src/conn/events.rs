//! What happens to a connection: the words that it writes, and the checks that it needs.

use super::allowance::CHUNK;
use super::flow::Flow;
use super::record::Record;
use super::settings::Settings;
use super::state::{Cold, Conn, Flags, Stage, UNSTAMPED, Writing, after_begin};
use crate::peer::Peer;
use crate::time::after;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// In a list of at most this many requests, those that have ended are forgotten at the next one; in a longer list, when
/// it is full.
const FEW: usize = 8;

/// How soon the check looks at a window that was closed. One that opens again at once needs no check.
const A_WHILE: u64 = 1_000_000_000;

impl Conn {
    /// A connection was accepted.
    pub(crate) fn accept(settings: Arc<Settings>, peer: Peer) -> Arc<Self> {
        let conn = Arc::new(Self::new(settings, peer));
        let end = conn.end(&conn.control());
        conn.arm(after(conn.born, conn.limits().handshake).min(end));
        conn
    }

    /// The handshake has told another peer.
    pub(crate) fn set_peer(self: &Arc<Self>, peer: Peer) {
        let mut control = self.control();
        control.address = peer.into();
        let end = self.end(&control);
        drop(control);
        self.arm(end);
    }

    /// The first bytes have told the protocol.
    pub(crate) fn begin_protocol(self: &Arc<Self>, stage: Stage) {
        self.control().stage = stage;
        if stage == Stage::Http2 {
            self.set(Flags::HTTP2);
            self.header_since.store(0, Ordering::Relaxed); // the preface is no header
        }
        let now = self.now();
        self.idle_since.store(now, Ordering::Relaxed);
        // The check may have come while only the handshake's limit ran, so it knows nothing of the header's.
        let header = after_begin(&self.header_since, self.limits().header);
        self.arm(after(now, self.limits().idle).min(header));
    }

    /// A request's header is complete.
    pub(crate) fn begin_request(&self) {
        if !self.has(Flags::HTTP2) {
            self.header_since.store(0, Ordering::Relaxed);
        }
        self.begin_part();
    }

    /// A part of a request has begun, which may outlast the others: its body, a chunk of its response, a tunnel.
    pub(crate) fn begin_part(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A part of a request has ended.
    pub(crate) fn end_part(self: &Arc<Self>) {
        let now = self.now();
        self.idle_since.store(now, Ordering::Relaxed);
        // Release: whoever sees no request in flight sees the time since then. Acquire: the last request that ends
        // beside tunnels sees all of them.
        let left = self.in_flight.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 0 {
            self.arm(after(now, self.idle_limit()));
        } else if left == self.tunnels.load(Ordering::Relaxed) {
            self.arm(after(now, self.limits().tunnel));
        }
    }

    /// A request of HTTP/2 has become a tunnel. Its own ticket is dropped afterwards.
    pub(crate) fn begin_inner_tunnel(&self) {
        self.tunnels.fetch_add(1, Ordering::Relaxed);
    }

    /// A tunnel within HTTP/2 has ended, at least in the direction to the client: hyper tells nothing of the other one.
    /// Its ticket is dropped afterwards.
    pub(crate) fn end_inner_tunnel(&self) {
        self.set(Flags::HALF_TUNNEL);
        self.tunnels.fetch_sub(1, Ordering::Relaxed);
    }

    /// HTTP/2: something is on its way to the client, which may answer it with control frames.
    pub(crate) fn allow_answers(&self) {
        self.allowed.fetch_add(CHUNK, Ordering::Relaxed);
    }

    /// A byte has passed through the tunnel.
    pub(crate) fn touch(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
    }

    /// DATA of HTTP/2 has come or gone. It may be a tunnel's, if there is no other request. hyper takes what a service
    /// writes as a whole, and hands it over as a whole, so only the frames tell when it goes.
    pub(super) fn touch_tunnels(&self) {
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        let has_tunnel = in_flight > 0 || self.has(Flags::HALF_TUNNEL);
        if has_tunnel && in_flight == self.tunnels.load(Ordering::Relaxed) {
            self.touch();
        }
    }

    /// The connection becomes a tunnel when the response has been written.
    pub(crate) fn become_tunnel(self: &Arc<Self>) {
        self.set(Flags::TUNNEL);
        let now = self.now();
        self.idle_since.store(now, Ordering::Relaxed);
        let mut control = self.control();
        control.stage = Stage::Tunnel;
        if let Some(cold) = control.cold_if_any() {
            cold.write.clear();
        }
        drop(control);
        self.set_writing(Writing::Free);
        self.arm(after(now, self.limits().tunnel));
    }

    /// Gives the header the time of its first byte, at the end of a poll that did not complete it.
    pub(crate) fn stamp_header(self: &Arc<Self>) {
        let now = self.now();
        self.header_since.store(now, Ordering::Relaxed);
        self.arm(after(now, self.limits().header));
    }

    /// A request with a record has begun: the check must know it.
    pub(crate) fn note_request(&self, record: &Arc<Record>) {
        let mut control = self.control();
        let Cold { requests, flow, .. } = control.cold_mut();
        if self.in_flight.load(Ordering::Relaxed) == 0 {
            requests.clear();
            requests.shrink_to(FEW); // so that at most half of the full list has ended
            flow.streams = 0;
        } else if requests.len() < FEW || requests.len() == requests.capacity() {
            requests.retain(|earlier| earlier.strong_count() > 0);
        }
        requests.push(Arc::downgrade(record));
        flow.streams = flow.streams.max(requests.len() as u32);
    }

    /// The client takes what was written, so it is neither idle nor gone. The check follows.
    #[cold]
    pub(super) fn client_takes(&self) {
        let now = self.now();
        self.idle_since.store(now, Ordering::Relaxed);
        if (1..=now).contains(&self.ping_at.load(Ordering::Relaxed)) {
            self.ping_at.store(after(now, self.limits().ping), Ordering::Relaxed);
        }
    }

    /// h2 reads nothing before it has written something, and the socket is full: what the client has sent in time may lie in
    /// the system. The waits for it begin anew. The limits of the write go on.
    #[cold]
    pub(super) fn reads_nothing(&self) {
        let now = self.now();
        if self.header_since.load(Ordering::Relaxed) > UNSTAMPED {
            self.header_since.store(now, Ordering::Relaxed);
        }
        let mut control = self.control();
        control.cold_mut().flow.turned = now;
        let records = control.records();
        drop(control);
        records.iter().for_each(|record| record.window_opened(0, now));
    }

    /// Bytes of DATA have come.
    pub(super) fn data_came(&self, bytes: usize) {
        if let Some(cold) = self.control().cold_if_any() {
            cold.flow.received += bytes as u64;
        }
    }

    /// Bytes of DATA were written.
    pub(super) fn data_sent(&self, bytes: u64) {
        if let Some(cold) = self.control().cold_if_any() {
            cold.flow.sent += bytes;
        }
    }

    /// The client may send no more DATA.
    #[cold]
    pub(super) fn window_closed(self: &Arc<Self>) {
        let now = self.now();
        let mut control = self.control();
        let flow = &mut control.cold_mut().flow;
        (flow.turned, flow.is_closed) = (now, true);
        let flow = *flow;
        drop(control);
        self.watch_window(flow, now);
    }

    /// Lets the check look at a window that is closed, while a body waits.
    #[inline]
    pub(crate) fn watch_window(self: &Arc<Self>, flow: Flow, now: u64) {
        if flow.is_closed {
            self.arm(now.saturating_add(A_WHILE));
        }
    }

    /// The client may send DATA again: the limits of the bodies that wait begin now, or go on.
    #[cold]
    pub(super) fn window_opened(self: &Arc<Self>) {
        let now = self.now();
        let mut control = self.control();
        let flow = &mut control.cold_mut().flow;
        let closed = std::mem::replace(&mut flow.turned, now);
        flow.is_closed = false;
        let was_seen = std::mem::take(&mut flow.is_seen);
        let records = control.records();
        drop(control);
        records.iter().for_each(|record| record.window_opened(closed, now));
        if was_seen {
            self.arm(now);
        }
    }
}
