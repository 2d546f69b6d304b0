//! `Ticket`: what keeps a request in flight; `Link`: its record, for those who tell it what happens.

use crate::conn::{Conn, Flags, Record};
use crate::limit::Limit;
use crate::limits::RequestLimits;
use crate::time::after;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

/// A request with a record, and its connection, whose check must come in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    conn: &'a Arc<Conn>,
    pub(super) record: &'a Arc<Record>,
}

impl Link<'_> {
    fn server(&self) -> &RequestLimits {
        &self.conn.limits().request
    }

    /// The caller of gRPC waits for this `timeout`.
    pub(super) fn caller_waits(&self, timeout: Duration) {
        let deadline = after(self.conn.now(), Some(timeout));
        self.record.caller_waits_until(deadline);
        self.conn.arm(deadline);
    }

    /// The handler waits for the body. Returns the limit that has passed.
    pub(super) fn body_waits(&self, waker: &Waker) -> Option<Limit> {
        let now = self.conn.now();
        let flow = self.conn.flow();
        let deadline = self.record.body_waits(self.server(), now, flow, waker);
        self.conn.arm(deadline);
        self.conn.watch_window(flow, now);
        self.record.passed()
    }

    pub(super) fn body_came(&self, bytes: usize) {
        let deadline = self.record.body_came(bytes as u64, self.server(), || self.conn.now());
        self.arm(deadline);
    }

    /// Nobody reads the body any more.
    pub(super) fn body_dropped(&self) {
        self.conn.set(Flags::UNREAD);
        let deadline = self.record.body_dropped(self.server(), || self.conn.now());
        self.arm(deadline);
    }

    /// h2 has got bytes to send.
    pub(super) fn owe(&self, bytes: u64) {
        let flow = self.conn.flow();
        let polls = self.conn.polls.load(Ordering::Relaxed);
        let deadline = self.record.owe(bytes, self.server(), flow, polls, || self.conn.now());
        self.arm(deadline);
    }

    /// h2 has sent bytes, or will never send them.
    pub(super) fn pay(&self, bytes: u64) {
        let polls = self.conn.polls.load(Ordering::Relaxed);
        self.record.pay(bytes, polls, || self.conn.now());
    }

    fn handler_works(&self) {
        let deadline = self.record.handler_works(self.server(), || self.conn.now());
        self.arm(deadline);
    }

    fn arm(&self, deadline: Option<u64>) {
        deadline.into_iter().for_each(|deadline| self.conn.arm(deadline));
    }
}

/// Keeps a request in flight.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) conn: Arc<Conn>,
    record: Option<Arc<Record>>,
}

impl Ticket {
    /// A request whose header is complete.
    pub(super) fn new(conn: &Arc<Conn>, record: Option<Arc<Record>>) -> Self {
        conn.begin_request();
        Self { conn: conn.clone(), record }
    }

    /// The request, if it has a record.
    pub(super) fn link(&self) -> Option<Link<'_>> {
        Some(Link { conn: &self.conn, record: self.record.as_ref()? })
    }

    /// A ticket of a part of the same request, which has a record.
    pub(super) fn another(&self) -> Self {
        self.conn.begin_part();
        Self { conn: self.conn.clone(), record: self.record.clone() }
    }

    /// The limit that ends the request.
    #[inline]
    pub(super) fn passed(&self) -> Option<Limit> {
        match &self.record {
            Some(record) => record.passed(),
            None if self.conn.has(Flags::PASSED) => Some(Limit::Handler),
            None => None,
        }
    }

    /// The handler has not answered at once.
    #[inline]
    pub(super) fn handler_works(&self) {
        match &self.record {
            Some(_) => self.link().iter().for_each(|link| link.handler_works()),
            None if self.conn.handler_since.load(Ordering::Relaxed) == 0 => {
                let now = self.conn.now();
                self.conn.handler_since.store(now, Ordering::Relaxed);
                self.conn.arm(after(now, self.conn.limits().request.handler));
            }
            None => {}
        }
    }

    /// The head of the response is there, perhaps with limits for the rest.
    #[inline]
    pub(super) fn head_sent(&self, own: Option<&RequestLimits>) {
        match &self.record {
            Some(record) => {
                record.head_sent();
                // The body may be awaited already, by limits that are longer.
                let arm = |own| self.conn.arm(record.set_own(own, self.conn.flow()));
                own.copied().into_iter().for_each(arm);
            }
            None => self.conn.handler_since.store(0, Ordering::Relaxed),
        }
        if self.conn.has(Flags::HTTP2) {
            return;
        }
        let own = own.copied().or_else(|| self.record.as_ref()?.own_limits());
        if own.is_some() || self.conn.has_own_response.load(Ordering::Relaxed) {
            self.conn.has_own_response.store(own.is_some(), Ordering::Relaxed);
            self.conn.control().set_response(own);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.record.is_none() {
            self.conn.handler_since.store(0, Ordering::Relaxed);
            if self.conn.has(Flags::PASSED) {
                self.conn.take(Flags::PASSED);
            }
        }
        self.conn.end_part();
    }
}
