//! `Record`: what limits know of a request; `Ticket`: what keeps it in flight.
//!
//! A request of HTTP/1 without a body and without limits of its own needs no record: the connection has a word for
//! its handler.

use crate::conn::{Conn, Flags};
use crate::limit::Limit;
use crate::limits::RequestLimits;
use crate::meter::{Bounds, Meter};
use crate::time::{NEVER, after};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Of so few requests, those that have ended are forgotten at the next one. Of more, when the list is full.
const FEW: usize = 8;

#[derive(Debug)]
pub(crate) struct Record {
    conn: Arc<Conn>,
    /// The limit that has passed: its number in `Limit::EVERY`, and 1. Or 0.
    passed: AtomicU8,
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    /// The limits, if a route has changed them.
    own: Option<Box<RequestLimits>>,
    /// Since when the handler works; 0 is not now.
    handler_since: u64,
    /// The first wait for the body; 0 is none.
    body_since: u64,
    body: Meter,
    /// Runs while a chunk is not sent (HTTP/2).
    response: Meter,
    /// The bytes that h2 has and has not sent.
    unsent: u64,
    /// hyper's task of the stream has ended (HTTP/2).
    stream_ended: bool,
    /// The task that reads the body.
    body_waker: Option<Waker>,
    /// The stream's task (HTTP/2). On HTTP/1, the connection's task is polled after each verdict.
    task_waker: Option<Waker>,
}

impl Live {
    fn limits<'a>(&'a self, conn: &'a Conn) -> &'a RequestLimits {
        self.own.as_deref().unwrap_or(&conn.limits().request)
    }

    /// The deadlines of the body and the response, which have meters, and of the others.
    fn deadlines(&self, limits: &RequestLimits) -> [(u64, Due); 4] {
        let begun = |since, limit| if since == 0 { NEVER } else { after(since, limit) };
        let total = if self.body.is_waiting() { limits.body_total } else { None };
        [
            (begun(self.handler_since, limits.handler), Due::Handler),
            (begun(self.body_since, total), Due::BodyTotal),
            (self.body.deadline(&body_bounds(limits)), Due::Body),
            (self.response.deadline(&crate::conn::response_bounds(limits)), Due::Response),
        ]
    }
}

#[derive(Clone, Copy)]
enum Due {
    Handler,
    BodyTotal,
    Body,
    Response,
}

fn body_bounds(limits: &RequestLimits) -> Bounds {
    Bounds { pause: (limits.body, Limit::Body), rate: (limits.body_rate, Limit::BodyRate) }
}

impl Record {
    /// Makes a record, and makes it known to the connection's check.
    pub(super) fn new(conn: &Arc<Conn>, own: Option<RequestLimits>) -> Arc<Self> {
        let live = Live { own: own.map(Box::new), ..Live::default() };
        let (conn, live) = (conn.clone(), Mutex::new(live));
        let record = Arc::new(Self { conn, passed: AtomicU8::new(0), live });
        let mut control = record.conn.control();
        let requests = &mut control.requests;
        if requests.len() < FEW || requests.len() == requests.capacity() {
            requests.retain(|former| former.strong_count() > 0);
        }
        requests.push(Arc::downgrade(&record));
        drop(control);
        record
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn conn(&self) -> &Arc<Conn> {
        &self.conn
    }

    /// The limit that has passed.
    pub(super) fn passed(&self) -> Option<Limit> {
        // Relaxed: who registers a waker does it under the lock before, and who sets it takes the lock before.
        let number = self.passed.load(Ordering::Relaxed).checked_sub(1)?;
        Limit::EVERY.get(usize::from(number)).copied()
    }

    pub(crate) fn deadline(&self) -> u64 {
        if self.passed().is_some() {
            return NEVER;
        }
        let live = self.live();
        let deadlines = live.deadlines(live.limits(&self.conn));
        deadlines.into_iter().map(|(at, _)| at).min().unwrap_or(NEVER)
    }

    /// Marks the request if a limit has passed, and wakes those who must see it.
    pub(crate) fn judge(&self, now: u64) -> Option<Limit> {
        if self.passed().is_some() {
            return None;
        }
        let mut live = self.live();
        let limits = *live.limits(&self.conn);
        let limit = loop {
            let first = live.deadlines(&limits).into_iter().min_by_key(|&(at, _)| at);
            let (_, due) = first.filter(|&(at, _)| at <= now)?;
            let passed = match due {
                Due::Handler => Some(Limit::Handler),
                Due::BodyTotal => Some(Limit::BodyTotal),
                Due::Body => live.body.judge(&body_bounds(&limits), now),
                Due::Response => live.response.judge(&crate::conn::response_bounds(&limits), now),
            };
            if let Some(limit) = passed {
                break limit;
            }
        };
        let number = Limit::EVERY.iter().position(|&every| every == limit).unwrap_or(0);
        self.passed.store(number as u8 + 1, Ordering::Relaxed);
        let wakers = [live.body_waker.take(), live.task_waker.take()];
        drop(live);
        wakers.into_iter().flatten().for_each(Waker::wake);
        Some(limit)
    }

    /// Whether only the connection can end the stream: hyper's task of it has ended.
    pub(crate) fn is_beyond_its_stream(&self) -> bool {
        self.live().stream_ended
    }

    /// The handler works since now, unless it does already.
    fn handler_works(&self) {
        let mut live = self.live();
        if live.handler_since == 0 {
            let now = self.conn.now();
            live.handler_since = now;
            let deadline = after(now, live.limits(&self.conn).handler);
            drop(live);
            self.conn.arm(deadline, now);
        }
    }

    /// The head of the answer is there, perhaps with limits for the rest.
    fn head_sent(&self, own: Option<RequestLimits>) {
        let mut live = self.live();
        live.handler_since = 0;
        if let Some(own) = own {
            live.own = Some(Box::new(own));
        }
    }

    fn own_limits(&self) -> Option<RequestLimits> {
        self.live().own.as_deref().copied()
    }

    /// The handler waits for the body.
    pub(super) fn body_waits(&self, waker: &Waker) {
        let now = self.conn.now();
        let mut live = self.live();
        if !live.body_waker.as_ref().is_some_and(|former| former.will_wake(waker)) {
            live.body_waker = Some(waker.clone());
        }
        live.body.wait(now);
        if live.body_since == 0 {
            live.body_since = now;
        }
        let limits = live.limits(&self.conn);
        let deadlines = live.deadlines(limits);
        let deadline = deadlines.into_iter().map(|(at, _)| at).min().unwrap_or(NEVER);
        drop(live);
        self.conn.arm(deadline, now);
    }

    /// A chunk of the body has come, or its end.
    pub(super) fn body_came(&self, bytes: u64) {
        let mut live = self.live();
        let is_used = live.body.is_waiting() || live.handler_since != 0;
        let now = if is_used { self.conn.now() } else { 0 };
        live.body.progress(bytes, now);
        live.body.pause(now);
        if live.handler_since != 0 {
            live.handler_since = now;
        }
    }

    /// h2 has got bytes to send.
    pub(super) fn owe(&self, bytes: u64) {
        let mut live = self.live();
        let was_even = live.unsent == 0;
        live.unsent += bytes;
        if was_even {
            let now = self.conn.now();
            live.response.wait(now);
            let bounds = crate::conn::response_bounds(live.limits(&self.conn));
            let deadline = live.response.deadline(&bounds);
            drop(live);
            self.conn.arm(deadline, now);
        }
    }

    /// h2 has sent bytes.
    pub(super) fn pay(&self, bytes: u64) {
        let mut live = self.live();
        live.unsent = live.unsent.saturating_sub(bytes);
        if live.unsent == 0 {
            live.response.clear();
        } else {
            live.response.progress(bytes, self.conn.now());
        }
    }

    /// The stream's task waits. Look at `passed` afterwards.
    pub(super) fn register_task(&self, waker: &Waker) {
        self.live().task_waker = Some(waker.clone());
    }

    pub(super) fn stream_has_ended(&self) {
        let mut live = self.live();
        live.stream_ended = true;
        live.task_waker = None;
    }
}

/// Keeps a request in flight.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(super) conn: Arc<Conn>,
    pub(super) record: Option<Arc<Record>>,
}

impl Ticket {
    /// A request whose header is complete.
    pub(super) fn new(conn: &Arc<Conn>, record: Option<Arc<Record>>, is_http1: bool) -> Self {
        conn.begin_request(is_http1);
        Self { conn: conn.clone(), record }
    }

    /// The limit that ends the request.
    #[inline]
    pub(super) fn passed(&self) -> Option<Limit> {
        match &self.record {
            Some(record) => record.passed(),
            None if self.conn.has(Flags::CUT) => Some(Limit::Handler),
            None => None,
        }
    }

    /// The handler has not answered at once.
    #[inline]
    pub(super) fn handler_works(&self) {
        match &self.record {
            Some(record) => record.handler_works(),
            None if self.conn.handler_since.load(Ordering::Relaxed) == 0 => {
                let now = self.conn.now();
                self.conn.handler_since.store(now, Ordering::Relaxed);
                self.conn.arm(after(now, self.conn.limits().request.handler), now);
            }
            None => {}
        }
    }

    /// The head of the answer is there, perhaps with limits for the rest.
    #[inline]
    pub(super) fn head_sent(&self, own: Option<&RequestLimits>, is_http1: bool) {
        match &self.record {
            Some(record) => record.head_sent(own.copied()),
            None => self.conn.handler_since.store(0, Ordering::Relaxed),
        }
        if !is_http1 {
            return;
        }
        let own = own.copied().or_else(|| self.record.as_ref()?.own_limits());
        if own.is_some() || self.conn.has_own_response.load(Ordering::Relaxed) {
            self.conn.has_own_response.store(own.is_some(), Ordering::Relaxed);
            self.conn.control().response = own.map(Box::new);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.record.is_none() {
            self.conn.handler_since.store(0, Ordering::Relaxed);
            if self.conn.has(Flags::CUT) {
                self.conn.take(Flags::CUT);
            }
        }
        self.conn.end_request();
    }
}
