//! What is due on a connection, and what follows.

use super::check::{Check, Refused};
use super::flow::Flow;
use super::state::{Conn, Flags, LINGER, Stage};
use crate::cut::Effect;
use crate::limit::Limit;
use crate::meter::Together;
use crate::time::after;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the task of a connection must do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Take no more requests.
    pub(crate) close_softly: bool,
    /// Close the connection, because of this limit.
    pub(crate) close: Option<Limit>,
}

impl Conn {
    /// Reads the flags, and acts on everything that is due.
    #[cold]
    pub(crate) fn attend(self: &Arc<Self>) -> Verdict {
        let news = self.take(Flags::NEWS);
        let mut verdict = Verdict::default();
        if news & Flags::SHUTDOWN != 0 {
            self.close_softly(Limit::Shutdown, &mut verdict);
        }
        if news & Flags::ROOM != 0 {
            self.make_room(&mut verdict);
        }
        while verdict.close.is_none() && self.act_on_next(&mut verdict) {}
        self.judge_requests(&mut verdict);
        if verdict.close.is_none() && self.arm_for_all().is_err() {
            self.close(Limit::Timer, &mut verdict);
        }
        verdict
    }

    /// Acts on one due deadline of the connection. Returns false if there is none.
    fn act_on_next(self: &Arc<Self>, verdict: &mut Verdict) -> bool {
        let now = self.now();
        let mut control = self.control();
        let first = self.deadlines(&control).into_iter().min_by_key(|&(at, _)| at);
        let Some((_, limit)) = first.filter(|&(at, _)| at <= now) else { return false };
        let closing = control.closing;
        match limit {
            Limit::Handler => {
                self.handler_since.store(0, Ordering::Relaxed);
                self.set(Flags::PASSED);
                drop(control);
                self.report(limit, Effect::Request);
            }
            Limit::Ping if !self.has(Flags::SLEPT) => {
                // hyper is polled next. It pings, or ends the connection by GOAWAY, for which there may be no room.
                self.set(Flags::SLEPT);
                self.ping_at.store(after(now, Some(LINGER)), Ordering::Relaxed);
            }
            Limit::Response => {
                let bounds = self.write_bounds(&control);
                let passed = control.cold_mut().write.judge(&bounds, now, Together::default());
                drop(control);
                if let Some(limit) = passed {
                    self.close(limit, verdict);
                }
            }
            Limit::Idle | Limit::Age => {
                drop(control);
                match closing {
                    Some(limit) => self.close(limit, verdict),
                    None => self.close_softly(limit, verdict),
                }
            }
            limit => {
                drop(control);
                self.close(limit, verdict);
            }
        }
        verdict.close.is_none()
    }

    fn close(&self, limit: Limit, verdict: &mut Verdict) {
        self.cut_off(limit);
        verdict.close = Some(limit);
    }

    /// Lets the socket fail, and reports that once. Its wakers are still to be called.
    pub(crate) fn cut_off(&self, limit: Limit) {
        let mut control = self.control();
        if self.has(Flags::ABORT) {
            return;
        }
        control.closing = Some(limit);
        self.set(Flags::ABORT);
        if limit == Limit::Shutdown {
            if self.in_flight.load(Ordering::Relaxed) == 0 && !self.has(Flags::TUNNEL) {
                return; // nothing was cut
            }
            // Under the lock: the report of the server follows when it has passed all connections.
            self.settings.counts.end(control.address.peer());
        }
        drop(control);
        self.report(limit, Effect::Close);
    }

    fn close_softly(&self, limit: Limit, verdict: &mut Verdict) {
        let now = self.now();
        let mut control = self.control();
        let end = match limit {
            Limit::Age => after(now, self.limits().grace),
            Limit::Shutdown => self.settings.shutdown_deadline(),
            _ => after(self.age_end(&control), self.limits().grace),
        };
        let was_closing = control.closing.replace(limit).is_some();
        let cold = control.cold_mut();
        cold.end = if was_closing { cold.end.min(end) } else { end };
        if was_closing {
            return;
        }
        cold.closing_since = now;
        let is_opening = control.stage == Stage::Opening;
        let is_tunnel = control.stage == Stage::Tunnel;
        drop(control);
        if is_opening {
            // There is nothing to end softly.
            return self.close(limit, verdict);
        }
        verdict.close_softly = !is_tunnel;
        if limit != Limit::Shutdown {
            self.report(limit, Effect::SoftClose);
        }
    }

    /// Ends a connection without requests, because another one needs its place.
    fn make_room(&self, verdict: &mut Verdict) {
        if self.unused_since().is_none() {
            return; // a request has come meanwhile
        }
        if self.is_idle() {
            self.close_softly(Limit::Connections, verdict);
        } else {
            self.close(Limit::Connections, verdict);
        }
    }

    fn judge_requests(self: &Arc<Self>, verdict: &mut Verdict) {
        let records = self.control().records();
        let (now, flow) =
            if records.is_empty() { (0, Flow::default()) } else { (self.now(), self.flow()) };
        for record in &records {
            let judged = record.judge(&self.limits().request, now, flow);
            let Some(limit) = judged else { continue };
            self.report(limit, Effect::Request);
            let is_response = matches!(limit, Limit::Response | Limit::ResponseRate);
            if is_response && record.is_beyond_its_stream() {
                // No task can reset the stream any more: end it with its connection.
                self.close_softly(limit, verdict);
                let own = record.limits(&self.limits().request);
                let end = after(now, own.response.or(own.response_rate.map(|rate| rate.window)));
                let mut control = self.control();
                let cold = control.cold_mut();
                cold.end = cold.end.min(end);
            }
        }
    }

    /// Ensures that the next check is not too late.
    fn arm_for_all(self: &Arc<Self>) -> Result<(), Refused> {
        let mut control = self.control();
        let records = control.records();
        let earliest = self.earliest(&mut control, &records);
        let result = match earliest < self.armed.load(Ordering::Relaxed) {
            true => Check::schedule(self, &mut control, earliest),
            false => Ok(()),
        };
        drop(control);
        drop(records);
        result
    }

    /// Counts and reports a cut.
    pub(crate) fn report(&self, limit: Limit, effect: Effect) {
        self.settings.report(limit, effect, &self.peer(), self.open_for(), self.requests());
    }

    /// The connection has ended.
    pub(super) fn leave(&self) {
        let mut control = self.control();
        control.epoch = control.epoch.wrapping_add(1);
        let timeout = control.timeout.take();
        let wakers = control.take_wakers();
        // Requests that end after their connection schedule no check.
        self.armed.store(0, Ordering::Relaxed);
        drop(control);
        if let Some(timeout) = timeout {
            timeout.cancel();
        }
        drop(wakers);
    }
}
