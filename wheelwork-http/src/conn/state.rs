//! `Conn`: the words of a connection, and its deadlines.

use super::address::Address;
use super::flow::Flow;
use super::record::Record;
use super::settings::Settings;
use crate::limit::Limit;
use crate::limits::{Limits, RequestLimits};
use crate::meter::{Bounds, Meter, response_bounds};
use crate::peer::Peer;
use crate::time::{NEVER, after, nanos};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;
use wheelwork::Timeout;

/// A time that is set at the end of the current poll, so that a header that is complete by then costs no clock.
pub(crate) const UNSTAMPED: u64 = 1;

/// How long a connection may take to end: one without requests after a soft close, or one whose client answers no ping.
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// The bits of `Conn::flags`.
pub(crate) struct Flags;

impl Flags {
    /// The check has found a deadline that is due.
    pub(crate) const DUE: u16 = 1;
    /// The check was dropped or refused.
    pub(crate) const LOST: u16 = 1 << 1;
    /// The handler's limit has passed, for the request without a record.
    pub(crate) const PASSED: u16 = 1 << 2;
    /// The socket fails from now on.
    pub(crate) const ABORT: u16 = 1 << 3;
    /// The socket takes its leave before it fails: it says why, or forgets what was not sent.
    pub(crate) const FAREWELL: u16 = 1 << 4;
    /// The connection is a tunnel, or becomes one.
    pub(crate) const TUNNEL: u16 = 1 << 5;
    /// The server shuts down.
    pub(crate) const SHUTDOWN: u16 = 1 << 6;
    /// The server needs room.
    pub(crate) const ROOM: u16 = 1 << 7;
    /// The protocol is HTTP/2.
    pub(crate) const HTTP2: u16 = 1 << 8;
    /// HTTP/2: the header of a request has begun and not ended.
    pub(super) const HEADER: u16 = 1 << 9;
    /// A verdict is due, and bytes have come that the runtime has not told of.
    pub(crate) const BEHIND: u16 = 1 << 10;
    /// A verdict is due, and the runtime has told of bytes since the turn began.
    pub(super) const TOLD: u16 = 1 << 11;
    /// HTTP/1: a body was dropped before its end, and nothing has come since.
    pub(crate) const UNREAD: u16 = 1 << 12;
    /// HTTP/2: a tunnel has ended in the direction to the client, which may still send.
    pub(super) const HALF_TUNNEL: u16 = 1 << 13;
    /// The socket is being shut down: nothing more is written, so a flush is no progress.
    pub(super) const ENDS: u16 = 1 << 14;
    /// HTTP/2: hyper's sleep for pings is over, and hyper has not begun another one.
    pub(super) const SLEPT: u16 = 1 << 15;

    /// What the task of the connection must attend to.
    pub(crate) const NEWS: u16 = Self::TUNNEL_NEWS | Self::SHUTDOWN | Self::ROOM;

    /// What ends a tunnel, or may.
    pub(crate) const TUNNEL_NEWS: u16 = Self::DUE | Self::LOST;
}

/// What the connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Opening,
    Http1,
    Http2,
    Tunnel,
}

/// Whether the socket takes what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// The meter has no window.
    Free,
    /// A write has waited in this window of the meter.
    Measured,
    /// A write waits.
    Waits,
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) settings: Arc<Settings>,
    /// The place in the registry.
    pub(crate) place: AtomicU32,
    /// The parts of requests in flight: an answer, a body, a chunk, a tunnel.
    pub(crate) in_flight: AtomicU32,
    /// Those in flight that are tunnels within HTTP/2.
    pub(super) tunnels: AtomicU32,
    /// HTTP/2: the control frames by which the client may answer what was written.
    pub(super) allowed: AtomicU32,
    /// How often the task was polled. Anything that h2 has still not sent after a poll waits for the client.
    pub(crate) polls: AtomicU32,
    pub(crate) flags: AtomicU16,
    /// A `Writing`.
    writing: AtomicU8,
    /// Whether a route has changed the limits of the response that is sent.
    pub(crate) has_own_response: AtomicBool,
    pub(super) born: u64,
    /// The next check. Written under the lock.
    pub(super) armed: AtomicU64,
    /// The first byte of an incomplete header, or of another frame of HTTP/2.
    pub(crate) header_since: AtomicU64,
    /// The end of the last request; in a tunnel, or if only tunnels within HTTP/2 are left, the last byte.
    pub(crate) idle_since: AtomicU64,
    /// Since when the handler of the request without a record works.
    pub(crate) handler_since: AtomicU64,
    /// HTTP/2: the deadline of hyper's sleep for pings; if it has come, that of what hyper does then. 0 is none.
    pub(super) ping_at: AtomicU64,
    control: Mutex<Control>,
}

/// What is written less often.
#[derive(Debug)]
pub(crate) struct Control {
    pub(super) address: Address,
    pub(super) timeout: Option<Timeout>,
    /// Only the check of this epoch counts.
    pub(super) epoch: u32,
    pub(crate) stage: Stage,
    /// The reason of the soft close.
    pub(crate) closing: Option<Limit>,
    /// The waker of the task; in a tunnel that of the reader.
    pub(crate) waker: Option<Waker>,
    /// `None` as long as it would be empty, as for most idle connections.
    cold: Option<Box<Cold>>,
}

/// What most connections do not need most of the time.
#[derive(Debug)]
pub(super) struct Cold {
    pub(super) write: Meter,
    pub(super) flow: Flow,
    /// What the client had not taken at the last look, and what was written since. `None` if it is not known.
    pub(super) untaken: Option<u64>,
    /// The limits of the response that is sent, if a route has changed them.
    pub(super) response: Option<Box<RequestLimits>>,
    /// The requests with a record.
    pub(super) requests: Vec<Weak<Record>>,
    /// In a tunnel, the waker of the writer.
    pub(super) writer: Option<Waker>,
    /// The begin of the soft close, and the hard close after it.
    pub(super) closing_since: u64,
    pub(super) end: u64,
}

impl Default for Cold {
    fn default() -> Self {
        Self {
            write: Meter::default(),
            flow: Flow::default(),
            untaken: None,
            response: None,
            requests: Vec::new(),
            writer: None,
            closing_since: 0,
            end: NEVER,
        }
    }
}

impl Conn {
    /// The caller begins the check.
    pub(super) fn new(settings: Arc<Settings>, peer: Peer) -> Self {
        let born = settings.clock.now();
        let control = Control {
            address: Address::from(peer),
            timeout: None,
            epoch: 0,
            stage: Stage::Opening,
            closing: None,
            waker: None,
            cold: None,
        };
        Self {
            place: AtomicU32::new(u32::MAX),
            in_flight: AtomicU32::new(0),
            tunnels: AtomicU32::new(0),
            allowed: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            flags: AtomicU16::new(0),
            writing: AtomicU8::new(Writing::Free as u8),
            has_own_response: AtomicBool::new(false),
            born,
            armed: AtomicU64::new(NEVER),
            header_since: AtomicU64::new(0),
            idle_since: AtomicU64::new(born),
            handler_since: AtomicU64::new(0),
            ping_at: AtomicU64::new(0),
            control: Mutex::new(control),
            settings,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    pub(crate) fn now(&self) -> u64 {
        self.settings.clock.now()
    }

    pub(crate) fn peer(&self) -> Peer {
        self.control().address.peer()
    }

    pub(crate) fn open_for(&self) -> Duration {
        Duration::from_nanos(self.now().saturating_sub(self.born))
    }

    /// The number of requests in flight, however many parts they have. HTTP/1 has one at a time.
    pub(super) fn requests(&self) -> usize {
        if !self.has(Flags::HTTP2) {
            return usize::from(self.in_flight.load(Ordering::Relaxed) > 0);
        }
        let control = self.control();
        let requests = control.cold().map_or(&[][..], |cold| &cold.requests);
        requests.iter().filter(|record| record.strong_count() > 0).count()
    }

    pub(crate) fn flow(&self) -> Flow {
        self.control().flow()
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    pub(crate) fn set(&self, flags: u16) {
        self.flags.fetch_or(flags, Ordering::Relaxed);
    }

    /// Returns which of the flags were set.
    pub(crate) fn take(&self, flags: u16) -> u16 {
        self.flags.fetch_and(!flags, Ordering::Relaxed) & flags
    }

    #[inline]
    pub(super) fn writing(&self) -> Writing {
        match self.writing.load(Ordering::Relaxed) {
            0 => Writing::Free,
            1 => Writing::Measured,
            _ => Writing::Waits,
        }
    }

    pub(super) fn set_writing(&self, writing: Writing) {
        self.writing.store(writing as u8, Ordering::Relaxed);
    }

    /// Registers the waker of the task.
    pub(crate) fn register(&self, waker: &Waker) {
        let previous = self.control().waker.replace(waker.clone());
        drop(previous);
    }

    /// Sets flags and wakes the task. A task that polls at the same time registers its waker before it reads the
    /// flags, under the same lock.
    pub(crate) fn notify(&self, flags: u16) {
        self.set(flags);
        let wakers = {
            let control = self.control();
            [control.waker.clone(), control.cold().and_then(|cold| cold.writer.clone())]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// The limit that has aborted the connection.
    pub(crate) fn aborted_by(&self) -> Limit {
        self.control().closing.unwrap_or(Limit::Shutdown)
    }

    /// The last activity of a connection without requests. `None` if it has some.
    pub(crate) fn unused_since(&self) -> Option<u64> {
        let control = self.control();
        let is_used = self.in_flight.load(Ordering::Acquire) > 0
            || self.writing() == Writing::Waits
            || control.stage == Stage::Tunnel
            || control.closing.is_some();
        (!is_used).then(|| self.idle_since.load(Ordering::Relaxed))
    }

    /// Whether no byte of a request was received since the last one.
    pub(crate) fn is_idle(&self) -> bool {
        let is_open = matches!(self.control().stage, Stage::Http1 | Stage::Http2);
        is_open
            && self.in_flight.load(Ordering::Acquire) == 0
            && self.header_since.load(Ordering::Relaxed) == 0
    }

    /// The bounds of a waiting write.
    pub(super) fn write_bounds(&self, control: &Control) -> Bounds {
        let own = control.cold().and_then(|cold| cold.response.as_deref());
        response_bounds(own.unwrap_or(&self.limits().request))
    }

    /// The deadlines of the connection itself. `Age` is also the end of a soft close, `Response` a write that
    /// waits, and `Ping` the end of hyper's sleep.
    pub(super) fn deadlines(&self, control: &Control) -> [(u64, Limit); 6] {
        let limits = self.limits();
        let mut deadlines = [(NEVER, Limit::Age); 6];
        deadlines[0].0 = self.end(control);
        match control.stage {
            Stage::Opening => deadlines[1] = (after(self.born, limits.handshake), Limit::Handshake),
            Stage::Tunnel => {
                let idle_since = self.idle_since.load(Ordering::Relaxed);
                deadlines[1] = (after(idle_since, limits.tunnel), Limit::Tunnel);
                deadlines[0].0 = NEVER; // a tunnel has no age, and the end of a shutdown cuts all
            }
            Stage::Http1 | Stage::Http2 => {
                deadlines[1] = (after_begin(&self.header_since, limits.header), Limit::Header);
                deadlines[2] = self.idle_deadline(control);
                let handler = after_begin(&self.handler_since, limits.request.handler);
                deadlines[3] = (handler, Limit::Handler);
                deadlines[4] = (after_begin(&self.ping_at, Some(Duration::ZERO)), Limit::Ping);
                if let Some(cold) = control.cold() {
                    deadlines[5] =
                        (cold.write.deadline(&self.write_bounds(control)), Limit::Response);
                }
            }
        }
        deadlines
    }

    /// The soft close by age; after a soft close, the hard one.
    pub(super) fn end(&self, control: &Control) -> u64 {
        if control.closing.is_some() {
            return control.cold().map_or(NEVER, |cold| cold.end);
        }
        self.age_end(control)
    }

    /// The end of the age.
    pub(super) fn age_end(&self, control: &Control) -> u64 {
        // The jitter is a hash, so that it needs no memory.
        let limits = self.limits();
        let jitter = |age| {
            share_of(
                limits.age_jitter.unwrap_or(age / 10),
                self.settings.random.hash_one((self.born, &control.address)),
            )
        };
        after(self.born, limits.age.map(|age| age.saturating_add(jitter(age))))
    }

    /// The deadline of a connection without requests, or with tunnels alone.
    fn idle_deadline(&self, control: &Control) -> (u64, Limit) {
        // Acquire: pairs with the release in `end_part`.
        let in_flight = self.in_flight.load(Ordering::Acquire);
        let has_only_tunnels = in_flight > 0 && in_flight == self.tunnels.load(Ordering::Relaxed);
        let is_busy = in_flight > 0 && !has_only_tunnels
            || self.has_header(control.closing.is_some())
            || self.writing() == Writing::Waits;
        let since = self.idle_since.load(Ordering::Relaxed);
        match control.closing {
            _ if is_busy => (NEVER, Limit::Idle),
            _ if has_only_tunnels => (after(since, self.limits().tunnel), Limit::Tunnel),
            Some(_) => {
                let closing_since = control.cold().map_or(0, |cold| cold.closing_since);
                (after(since.max(closing_since), Some(LINGER)), Limit::Idle)
            }
            None => (after(since, self.limits().idle), Limit::Idle),
        }
    }

    /// How long a connection may be without requests. Over HTTP/1, hyper ends one that is closing after its request.
    pub(super) fn idle_limit(&self) -> Option<Duration> {
        let is_closing = self.has(Flags::HTTP2) && self.control().closing.is_some();
        if is_closing { Some(LINGER) } else { self.limits().idle }
    }

    /// Whether the header of a request has begun. Over HTTP/2, one that ends after a soft close may begin none.
    fn has_header(&self, is_closing: bool) -> bool {
        match self.has(Flags::HTTP2) {
            true => self.has(Flags::HEADER) && !is_closing,
            false => self.header_since.load(Ordering::Relaxed) > 0,
        }
    }

    /// The earliest deadline of the connection and of its requests.
    pub(super) fn earliest(&self, control: &mut Control, records: &[Arc<Record>]) -> u64 {
        if let Some(cold) = control.cold_if_any() {
            cold.flow.is_seen = cold.flow.is_closed;
        }
        let flow = control.flow();
        let own = self.deadlines(control).into_iter().map(|(at, _)| at);
        own.chain(records.iter().map(|record| record.deadline(&self.limits().request, flow)))
            .min()
            .unwrap_or(NEVER)
    }
}

impl Control {
    pub(super) fn cold(&self) -> Option<&Cold> {
        self.cold.as_deref()
    }

    fn flow(&self) -> Flow {
        self.cold().map(|cold| cold.flow).unwrap_or_default()
    }

    pub(super) fn cold_mut(&mut self) -> &mut Cold {
        self.cold.get_or_insert_default()
    }

    pub(super) fn cold_if_any(&mut self) -> Option<&mut Cold> {
        self.cold.as_deref_mut()
    }

    /// The limits of the response that is sent.
    pub(crate) fn set_response(&mut self, own: Option<RequestLimits>) {
        if own.is_some() || self.cold.is_some() {
            self.cold_mut().response = own.map(Box::new);
        }
    }

    /// The wakers of the task or of the tunnel.
    pub(super) fn take_wakers(&mut self) -> [Option<Waker>; 2] {
        [self.waker.take(), self.cold.as_mut().and_then(|cold| cold.writer.take())]
    }

    /// The requests that have a record. Drop them outside the lock: a record has wakers.
    pub(super) fn records(&mut self) -> Vec<Arc<Record>> {
        let Some(cold) = &mut self.cold else { return Vec::new() };
        cold.requests.retain(|record| record.strong_count() > 0);
        if cold.requests.is_empty() {
            cold.requests = Vec::new();
            cold.flow.streams = 0;
            if self.closing.is_none() && cold.is_empty() {
                self.cold = None;
                return Vec::new();
            }
        }
        cold.requests.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Cold {
    /// Without requests: whether nothing else is kept.
    fn is_empty(&self) -> bool {
        self.write == Meter::default()
            && self.response.is_none()
            && self.writer.is_none()
            && !self.flow.is_closed
    }
}

/// The end of a limit that begins with the time in `word`.
pub(super) fn after_begin(word: &AtomicU64, limit: Option<Duration>) -> u64 {
    match word.load(Ordering::Relaxed) {
        0 | UNSTAMPED => NEVER,
        since => after(since, limit),
    }
}

/// A part of `most`, by a random number.
fn share_of(most: Duration, random: u64) -> Duration {
    Duration::from_nanos(((u128::from(nanos(most)) * u128::from(random)) >> u64::BITS) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the counts of its `Arc`. The timer adds 42 bytes, the register 8.
    #[test]
    fn the_state_of_a_connection_is_small() {
        let bytes = size_of::<Conn>() + 2 * size_of::<usize>();
        assert!(bytes <= 168, "{bytes} bytes");
        let bytes = size_of::<Cold>();
        assert!(bytes <= 160, "{bytes} bytes, if needed");
    }
}
