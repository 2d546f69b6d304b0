//! The verdict on a connection: whether it is idle now, and if not, when to check it again.
//!
//! These are pure functions. The caller gives them the policy, the last activity and the time.

use super::activity::Reading;
use super::event::IdleEvent;
use super::kind::IdleKind;
use super::policy::{Limits, Scale};
use crate::time::tick::NEVER;
use std::time::Duration;

/// The last report of each kind, in nanoseconds since the timer's origin; 0 is never.
pub(super) type Reported = [u64; IdleKind::LIMITED.len()];

/// What has become of a connection so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    /// Since when its age counts. Without a maximum age it has no meaning.
    pub(super) born: u64,
    pub(super) reported: Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The connection is idle: the event, and the last activity before it.
    Idle(IdleEvent, u64),
    /// The connection cannot be idle before this time. Check it then.
    CheckAt(u64),
}

/// The time of a check, and the scale that is in force then.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckTime {
    pub(super) now: u64,
    pub(super) scale: Scale,
}

/// The verdict on one connection. If several kinds are due, it names the one that was due first. A
/// kind that was reported is due again when its duration has passed once more.
pub(super) fn verdict(
    limits: &Limits,
    reading: Reading,
    past: Past,
    jitter_share: u32,
    time: CheckTime,
) -> Verdict {
    let CheckTime { now, scale } = time;
    let reported = |kind: IdleKind| past.reported[kind as usize];
    let since = |kind: IdleKind| match kind {
        IdleKind::Age => Some(past.born),
        kind => reading.silent_since(kind),
    };
    let due = |kind: IdleKind| {
        let after = match kind {
            IdleKind::Age if reported(kind) > 0 => limits.grace()?,
            kind => limits.after(kind, jitter_share, scale)?,
        };
        // A paused connection may be resumed at any time, and a write may begin to wait. It is due `after` later.
        let from = since(kind).map_or(now, |since| since.max(reported(kind)));
        Some((from.saturating_add(after), kind))
    };
    let first_due = IdleKind::LIMITED.into_iter().filter_map(due).min_by_key(|&(at, _)| at);
    match first_due {
        Some((at, kind)) if at <= now => {
            let since = since(kind).unwrap_or(now);
            let silent_for = Duration::from_nanos(now.saturating_sub(since));
            let first = since >= reported(kind);
            Verdict::Idle(IdleEvent { kind, first, silent_for }, since)
        }
        Some((at, _)) => Verdict::CheckAt(at),
        None => Verdict::CheckAt(NEVER),
    }
}

/// The part of the jitter that a seat gets, in units of 2^-32. It is a hash of the seat's number
/// (Sebastiano Vigna's splitmix64).
pub(super) fn jitter_share(seat: u32) -> u32 {
    let z = (u64::from(seat) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as u32
}

#[cfg(test)]
mod tests;
