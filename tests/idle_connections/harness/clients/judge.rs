//! Was it right to close this connection now? Judged by the client's own clock alone.
//!
//! A write reaches the server at some instant between *before* and *after* the call. The connect
//! counts as the first write. With `k` the last write, and the close seen at `o`:
//!
//! | | verdict |
//! |---|---|
//! | `o - before(k) >= idle`, and `k` was answered | right, and late by `o - (after(k) + idle)` |
//! | else `after(k) - before(k-1) >= idle` | excused: the client was held up between its two writes, so the server may have closed before it could see `k` |
//! | else `o - before(k) >= idle` | right, but the answer is missing |
//! | else | wrong: it was active within the idle time, and the server could know |

use std::time::{Duration, Instant};

/// The instants just before and just after a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) before: Instant,
    pub(crate) after: Instant,
}

/// All that has to be remembered of a client's writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastWrites {
    last: Span,
    before_previous: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Idle { late: Duration },
    Excused,
    Wrong,
}

impl LastWrites {
    pub(crate) fn connect(span: Span) -> Self {
        Self { last: span, before_previous: None }
    }

    pub(crate) fn add(&mut self, span: Span) {
        *self = Self { last: span, before_previous: Some(self.last.before) };
    }

    /// The last one has taken until `after`.
    pub(crate) fn extend(&mut self, after: Instant) {
        self.last.after = after;
    }

    /// The end of the last one.
    pub(crate) fn end(&self) -> Instant {
        self.last.after
    }

    /// Judges a close that was seen at `seen`. `answered` says whether all that was written came back.
    pub(crate) fn judge(&self, seen: Instant, idle: Duration, answered: bool) -> Verdict {
        let Span { before, after } = self.last;
        let is_idle = seen.saturating_duration_since(before) >= idle;
        let held_up = |previous| after.saturating_duration_since(previous) >= idle;
        match self.before_previous {
            Some(previous) if held_up(previous) && !(is_idle && answered) => Verdict::Excused,
            _ if is_idle => Verdict::Idle { late: seen.saturating_duration_since(after + idle) },
            _ => Verdict::Wrong,
        }
    }
}
