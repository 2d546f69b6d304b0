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
pub(super) type Reported = [u64; 3];

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
    reported: Reported,
    jitter_share: u32,
    time: CheckTime,
) -> Verdict {
    let CheckTime { now, scale } = time;
    let due = |kind: IdleKind| {
        let after = limits.after(kind, jitter_share, scale)?;
        let [since, reported] = [reading.since, reported].map(|by_kind| by_kind[kind as usize]);
        // A paused connection may be resumed at any time, and may be idle `after` later.
        let from = if reading.paused { now } else { since.max(reported) };
        Some((from.saturating_add(after), kind))
    };
    let first_due = IdleKind::SILENCES.into_iter().filter_map(due).min_by_key(|&(at, _)| at);
    match first_due {
        Some((at, kind)) if at <= now => {
            let since = reading.since[kind as usize];
            Verdict::Idle(event(kind, since, reported[kind as usize], now), since)
        }
        Some((at, _)) => Verdict::CheckAt(at),
        None => Verdict::CheckAt(NEVER),
    }
}

fn event(kind: IdleKind, since: u64, reported: u64, now: u64) -> IdleEvent {
    let silent_for = Duration::from_nanos(now.saturating_sub(since));
    IdleEvent { kind, first: since >= reported, silent_for }
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
mod tests {
    use super::super::policy::IdlePolicy;
    use super::*;

    const NS: fn(u64) -> Duration = Duration::from_nanos;

    fn verdict_at(policy: &IdlePolicy, since: [u64; 3], reported: Reported, now: u64) -> Verdict {
        let reading = Reading { paused: false, since };
        verdict(policy.limits(), reading, reported, 0, CheckTime { now, scale: Scale::ONE })
    }

    fn idle(kind: IdleKind, first: bool, silent_for: u64, since: u64) -> Verdict {
        Verdict::Idle(IdleEvent { kind, first, silent_for: NS(silent_for) }, since)
    }

    #[test]
    fn the_kind_that_was_due_first_is_reported() {
        let policy = IdlePolicy::new().reader(NS(50)).writer(NS(30)).both(NS(10));
        assert_eq!(verdict_at(&policy, [40, 60, 60], [0; 3], 69), Verdict::CheckAt(70));
        assert_eq!(
            verdict_at(&policy, [40, 60, 60], [0; 3], 70),
            idle(IdleKind::Both, true, 10, 60)
        );
        let both = verdict_at(&policy, [40, 60, 60], [0, 0, 85], 91);
        assert_eq!(both, idle(IdleKind::Reader, true, 51, 40), "due at 90, the writer too");
        let then = verdict_at(&policy, [40, 60, 60], [91, 0, 91], 91);
        assert_eq!(then, idle(IdleKind::Writer, true, 31, 60));
        assert_eq!(verdict_at(&policy, [40, 60, 60], [91; 3], 91), Verdict::CheckAt(101));
    }

    #[test]
    fn a_report_is_first_again_after_activity() {
        let policy = IdlePolicy::new().reader(NS(10));
        assert_eq!(
            verdict_at(&policy, [5; 3], [15, 0, 0], 25),
            idle(IdleKind::Reader, false, 20, 5)
        );
        assert_eq!(
            verdict_at(&policy, [15; 3], [15, 0, 0], 25),
            idle(IdleKind::Reader, true, 10, 15)
        );
    }

    #[test]
    fn a_paused_connection_is_checked_again_after_its_duration() {
        let policy = IdlePolicy::new().reader(NS(10)).both(NS(20));
        let reading = Reading { paused: true, since: [5; 3] };
        let time = CheckTime { now: 1000, scale: Scale::ONE };
        assert_eq!(verdict(policy.limits(), reading, [0; 3], 0, time), Verdict::CheckAt(1010));
    }

    #[test]
    fn rule_10_zero_and_the_longest_duration_are_never_due() {
        for policy in [IdlePolicy::new(), IdlePolicy::new().both(Duration::MAX)] {
            assert_eq!(verdict_at(&policy, [5; 3], [0; 3], NEVER - 1), Verdict::CheckAt(NEVER));
        }
    }

    /// The published values for the seed 0. Our last step differs and flips at most the lowest bit.
    #[test]
    fn jitter_shares_follow_splitmix64() {
        let published = [0xe220_a839, 0x6e78_9e6a, 0x06c4_5d18];
        assert_eq!(
            [0, 1, 2].map(|seat| jitter_share(seat) >> 1),
            published.map(|jitter_share| jitter_share >> 1)
        );
    }

    #[test]
    fn a_touch_with_a_later_time_than_the_check_suppresses_the_event() {
        let policy = IdlePolicy::new().both(NS(10));
        assert_eq!(verdict_at(&policy, [500; 3], [0; 3], 20), Verdict::CheckAt(510));
    }
}
