//! `Record`: what limits know of a request.
//!
//! It is told the time, and the limits of the server. A request of HTTP/1 without a body and without limits of its own
//! needs no record, unless the server tells limits: the connection has a word for its handler.

use super::flow::Flow;
use crate::limit::Limit;
use crate::limits::RequestLimits;
use crate::meter::{Bounds, Meter, Together, response_bounds};
use crate::time::{NEVER, after};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

#[derive(Debug)]
pub(crate) struct Record {
    /// The last limit that has passed: its number in `Limit::EVERY`, and 1. Or 0.
    passed: AtomicU8,
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    /// The limits, if a route has changed them.
    own: Option<Box<RequestLimits>>,
    /// Since when the handler works; 0 is not now. While it waits for the body, this clock stands still, and
    /// begins anew afterwards.
    handler_since: u64,
    /// The end of the call, by its caller; 0 is none, or the head of the response is there.
    call_end: u64,
    /// The first wait for the body, later by the time in which the window was closed since then; 0 is none.
    body_since: u64,
    body: Meter,
    /// The head of the response was sent, and no limits for the rest with it: the body has no least rate any more.
    is_free: bool,
    /// Runs while a chunk is not sent (HTTP/2). The window of the rate goes on with the next chunk.
    response: Meter,
    /// The polls of the connection when h2 had sent all and got a chunk.
    polls: u32,
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
    fn limits<'a>(&'a self, server: &'a RequestLimits) -> &'a RequestLimits {
        self.own.as_deref().unwrap_or(server)
    }

    /// The handler works again, if it has not answered. Returns its deadline.
    fn restart_handler(&mut self, server: &RequestLimits, now: u64) -> Option<u64> {
        if self.handler_since == 0 {
            return None;
        }
        self.handler_since = now;
        Some(after(now, self.limits(server).handler))
    }

    fn deadline(&self, server: &RequestLimits, flow: Flow) -> u64 {
        let deadlines = self.deadlines(self.limits(server), flow);
        deadlines.into_iter().map(|(at, _)| at).min().unwrap_or(NEVER)
    }

    /// `Body` and `Response` have meters, which name the limit that has passed.
    fn deadlines(&self, limits: &RequestLimits, flow: Flow) -> [(u64, Limit); 5] {
        let begun = |since, limit| if since == 0 { NEVER } else { after(since, limit) };
        let since_turn = |since: u64| if since == 0 { 0 } else { since.max(flow.turned) };
        let is_waiting = self.body.is_waiting();
        // The wait for a window that the server has closed is the server's.
        let is_shut_out = is_waiting && flow.is_closed;
        let is_limited = is_waiting && !is_shut_out;
        // Some limit always runs: without one for the body, the handler's goes on.
        let handler = if is_limited && limits.limit_the_body() { None } else { limits.handler };
        let handler_since =
            if is_shut_out { since_turn(self.handler_since) } else { self.handler_since };
        let total = if is_limited { limits.body_total } else { None };
        let body = match is_shut_out {
            true => NEVER,
            false => self.body.not_before(flow.turned).deadline(&self.body_bounds(limits)),
        };
        [
            (begun(handler_since, handler), Limit::Handler),
            (if self.call_end == 0 { NEVER } else { self.call_end }, Limit::Handler),
            (begun(self.body_since, total), Limit::BodyTotal),
            (body, Limit::Body),
            (self.response.deadline(&response_bounds(limits)), Limit::Response),
        ]
    }

    /// After a limit the next one begins: the task may just end, and leave the rest of the response to h2. If it has ended
    /// before, the connection has an end.
    fn judge_response(&mut self, limits: &RequestLimits, now: u64, all: Together) -> Option<Limit> {
        let passed = self.response.judge(&response_bounds(limits), now, all)?;
        self.response.clear();
        if !self.stream_ended {
            self.response.wait(now, all.moved);
        }
        Some(passed)
    }

    fn body_bounds(&self, limits: &RequestLimits) -> Bounds {
        let rate = if self.is_free { None } else { limits.body_rate };
        Bounds { pause: (limits.body, Limit::Body), rate: (rate, Limit::BodyRate) }
    }
}

impl Record {
    pub(crate) fn new(own: Option<RequestLimits>) -> Self {
        let live = Live { own: own.map(Box::new), ..Live::default() };
        Self { passed: AtomicU8::new(0), live: Mutex::new(live) }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limit that has passed.
    pub(crate) fn passed(&self) -> Option<Limit> {
        // Relaxed: who registers a waker does it under the lock before, and who sets it takes the lock before.
        let number = self.passed.load(Ordering::Relaxed).checked_sub(1)?;
        Limit::EVERY.get(usize::from(number)).copied()
    }

    pub(super) fn deadline(&self, server: &RequestLimits, flow: Flow) -> u64 {
        let live = self.live();
        self.first(&live, live.limits(server), flow).map_or(NEVER, |(at, _)| at)
    }

    /// The deadline that comes first. When another limit has passed, that of the response goes on: while a chunk waits for
    /// the client's window, hyper does not poll the body of the response, which would fail and end the stream.
    fn first(&self, live: &Live, limits: &RequestLimits, flow: Flow) -> Option<(u64, Limit)> {
        let passed = self.passed();
        let can_pass = |&(_, limit): &(u64, Limit)| passed.is_none() || limit == Limit::Response;
        live.deadlines(limits, flow).into_iter().filter(can_pass).min_by_key(|&(at, _)| at)
    }

    /// Marks the request if a limit has passed, and wakes those who must see it.
    pub(super) fn judge(&self, server: &RequestLimits, now: u64, flow: Flow) -> Option<Limit> {
        let mut live = self.live();
        let limits = *live.limits(server);
        let together = |moved| Together { moved, streams: flow.streams };
        let limit = loop {
            let first = self.first(&live, &limits, flow);
            let (_, limit) = first.filter(|&(at, _)| at <= now)?;
            let passed = match limit {
                Limit::Body => {
                    let bounds = live.body_bounds(&limits);
                    live.body = live.body.not_before(flow.turned);
                    live.body.judge(&bounds, now, together(flow.received))
                }
                Limit::Response => live.judge_response(&limits, now, together(flow.sent)),
                limit => Some(limit),
            };
            if let Some(limit) = passed {
                break limit;
            }
        };
        self.passed.store(limit as u8 + 1, Ordering::Relaxed);
        // The task of the stream keeps its waker: two limits may pass.
        let wakers = [live.body_waker.take(), live.task_waker.clone()];
        drop(live);
        wakers.into_iter().flatten().for_each(Waker::wake);
        Some(limit)
    }

    /// Whether only the connection can end the stream: hyper's task of it has ended.
    pub(super) fn is_beyond_its_stream(&self) -> bool {
        self.live().stream_ended
    }

    /// The handler works since now, unless it does already. Returns a deadline that begins now.
    pub(crate) fn handler_works(
        &self,
        server: &RequestLimits,
        now: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let mut live = self.live();
        if live.handler_since != 0 {
            return None;
        }
        let now = now();
        live.handler_since = now;
        Some(after(now, live.limits(server).handler))
    }

    /// The call ends then, unless the head of its answer is there.
    pub(crate) fn caller_waits_until(&self, deadline: u64) {
        self.live().call_end = deadline;
    }

    /// The head of the response is there. `set_own` follows if it has limits for the rest.
    pub(crate) fn head_sent(&self) {
        let mut live = self.live();
        live.handler_since = 0;
        live.call_end = 0;
        live.is_free = true;
    }

    /// The limits in force.
    pub(crate) fn limits(&self, server: &RequestLimits) -> RequestLimits {
        *self.live().limits(server)
    }

    /// Returns the next deadline by these limits.
    pub(crate) fn set_own(&self, own: RequestLimits, flow: Flow) -> u64 {
        let mut live = self.live();
        live.own = Some(Box::new(own));
        live.is_free = false;
        live.deadline(&own, flow)
    }

    pub(crate) fn own_limits(&self) -> Option<RequestLimits> {
        self.live().own.as_deref().copied()
    }

    /// The handler waits for the body. Returns the next deadline. Look at `passed` afterwards.
    pub(crate) fn body_waits(
        &self,
        server: &RequestLimits,
        now: u64,
        flow: Flow,
        waker: &Waker,
    ) -> u64 {
        let mut live = self.live();
        let is_known = live.body_waker.as_ref().is_some_and(|previous| previous.will_wake(waker));
        let previous = if is_known { None } else { live.body_waker.replace(waker.clone()) };
        live.body.wait(now, flow.received);
        if live.body_since == 0 {
            live.body_since = now;
        }
        let deadline = live.deadline(server, flow);
        drop(live);
        drop(previous); // its task may go with it, and a body of that task takes a lock
        deadline
    }

    /// A chunk of the body has come, or its end. Returns a deadline that begins now.
    pub(crate) fn body_came(
        &self,
        bytes: u64,
        server: &RequestLimits,
        now: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let mut live = self.live();
        let is_used = live.body.is_waiting() || live.handler_since != 0;
        let now = if is_used { now() } else { 0 };
        live.body.progress(bytes, now);
        live.body.pause(now);
        live.restart_handler(server, now)
    }

    /// Nobody reads the body any more. Returns a deadline that begins now.
    pub(crate) fn body_dropped(
        &self,
        server: &RequestLimits,
        now: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let mut live = self.live();
        if !live.body.is_waiting() || self.passed().is_some() {
            return None;
        }
        let now = now();
        live.body.pause(now);
        live.restart_handler(server, now)
    }

    /// h2 has got bytes to send. Returns a deadline, if it had none before.
    pub(crate) fn owe(
        &self,
        bytes: u64,
        server: &RequestLimits,
        flow: Flow,
        polls: u32,
        now: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let mut live = self.live();
        let was_even = live.unsent == 0;
        live.unsent += bytes;
        if !was_even {
            return None;
        }
        let now = now();
        live.polls = polls;
        live.response.wait(now, flow.sent);
        Some(live.response.deadline(&response_bounds(live.limits(server))))
    }

    /// h2 has sent bytes.
    pub(crate) fn pay(&self, bytes: u64, polls: u32, now: impl FnOnce() -> u64) {
        let mut live = self.live();
        live.unsent = live.unsent.saturating_sub(bytes);
        if live.unsent == 0 && live.polls == polls {
            live.response.pause(0); // it has waited for the server only
            return;
        }
        let now = now();
        live.response.progress(bytes, now);
        if live.unsent == 0 {
            live.response.pause(now);
        }
    }

    /// The client has taken bytes of its connection that h2 had sent before.
    pub(super) fn client_took(&self, now: u64) {
        self.live().response.progress(0, now);
    }

    /// The client may send again, which it could not since `closed`.
    pub(super) fn window_opened(&self, closed: u64, now: u64) {
        let mut live = self.live();
        if live.body_since != 0 {
            live.body_since += now.saturating_sub(live.body_since.max(closed));
        }
    }

    /// The stream's task waits. Look at `passed` afterwards.
    pub(crate) fn register_task(&self, waker: &Waker) {
        self.live().task_waker = Some(waker.clone());
    }

    /// h2 has no more to send.
    pub(crate) fn stream_was_reset(&self) {
        self.live().response.clear();
        self.stream_has_ended();
    }

    pub(crate) fn stream_has_ended(&self) {
        let mut live = self.live();
        live.stream_ended = true;
        live.task_waker = None;
    }
}
