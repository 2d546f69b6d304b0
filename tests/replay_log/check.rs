//! The oracle: what the log itself says about its sessions. No timer, no wheel, no clock.

use crate::log::Request;
use std::cmp::Ordering;

/// A host's session. Sessions are ordered by their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Session {
    /// The last request plus the idle time, in Unix seconds.
    pub(crate) end: i64,
    pub(crate) host: u32,
    /// The first request, in Unix seconds.
    pub(crate) start: i64,
    /// The last request, in Unix seconds.
    pub(crate) last: i64,
    pub(crate) requests: u32,
}

impl Session {
    /// The session that a request begins.
    pub(crate) fn begin(request: Request, idle: i64) -> Self {
        let Request { host, time } = request;
        Self { end: time + idle, host, start: time, last: time, requests: 1 }
    }
}

/// A session that only one side knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The log has it, the timer did not end it so.
    Missing(Session),
    /// The timer ended it, the log has no such session.
    Extra(Session),
}

/// Every session in `requests`, which may stand in any order. Each host's times are walked once: a
/// gap of at least `idle` seconds ends a session, and so does the end of the log.
pub(crate) fn sessions(requests: &[Request], hosts: usize, idle: i64) -> Vec<Session> {
    let mut times = vec![Vec::new(); hosts];
    for request in requests {
        times[request.host as usize].push(request.time);
    }
    let mut sessions = Vec::new();
    for (host, mut times) in (0..).zip(times) {
        times.sort_unstable();
        for run in times.chunk_by(|earlier, later| later - earlier < idle) {
            let (start, last) = (run[0], run[run.len() - 1]);
            let requests = run.len() as u32;
            sessions.push(Session { end: last + idle, host, start, last, requests });
        }
    }
    sessions
}

/// Compares two lists of sessions, whatever their order: what is in one and not in the other, as
/// often as it is. None means that they are the same.
pub(crate) fn differences(
    mut replayed: Vec<Session>,
    mut expected: Vec<Session>,
) -> Vec<Difference> {
    replayed.sort_unstable();
    expected.sort_unstable();
    let (mut replayed, mut expected) = (replayed.iter().peekable(), expected.iter().peekable());
    let mut differences = Vec::new();
    loop {
        let order = match (replayed.peek(), expected.peek()) {
            (Some(replayed), Some(expected)) => replayed.cmp(expected),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return differences,
        };
        if order.is_le() {
            let extra = replayed.next().filter(|_| order.is_lt());
            differences.extend(extra.copied().map(Difference::Extra));
        }
        if order.is_ge() {
            let missing = expected.next().filter(|_| order.is_gt());
            differences.extend(missing.copied().map(Difference::Missing));
        }
    }
}
