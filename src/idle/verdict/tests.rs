use super::super::policy::IdlePolicy;
use super::*;

const NS: fn(u64) -> Duration = Duration::from_nanos;

/// `since`: the last read and the last write.
fn verdict_at(policy: &IdlePolicy, since: [u64; 2], reported: [u64; 3], now: u64) -> Verdict {
    let [reader, writer, both] = reported;
    let past = Past { born: 0, reported: [reader, writer, both, 0, 0] };
    let time = CheckTime { now, scale: Scale::ONE };
    verdict(policy.limits(), Reading::of(since, None), past, 0, time)
}

fn idle(kind: IdleKind, first: bool, silent_for: u64, since: u64) -> Verdict {
    Verdict::Idle(IdleEvent { kind, first, silent_for: NS(silent_for) }, since)
}

#[test]
fn the_kind_that_was_due_first_is_reported() {
    let policy = IdlePolicy::new().reader(NS(50)).writer(NS(30)).both(NS(10));
    assert_eq!(verdict_at(&policy, [40, 60], [0; 3], 69), Verdict::CheckAt(70));
    assert_eq!(verdict_at(&policy, [40, 60], [0; 3], 70), idle(IdleKind::Both, true, 10, 60));
    let both = verdict_at(&policy, [40, 60], [0, 0, 85], 91);
    assert_eq!(both, idle(IdleKind::Reader, true, 51, 40), "due at 90, the writer too");
    let then = verdict_at(&policy, [40, 60], [91, 0, 91], 91);
    assert_eq!(then, idle(IdleKind::Writer, true, 31, 60));
    assert_eq!(verdict_at(&policy, [40, 60], [91; 3], 91), Verdict::CheckAt(101));
}

#[test]
fn a_report_is_first_again_after_activity() {
    let policy = IdlePolicy::new().reader(NS(10));
    assert_eq!(verdict_at(&policy, [5; 2], [15, 0, 0], 25), idle(IdleKind::Reader, false, 20, 5));
    assert_eq!(verdict_at(&policy, [15; 2], [15, 0, 0], 25), idle(IdleKind::Reader, true, 10, 15));
}

#[test]
fn a_paused_connection_is_checked_again_after_its_duration() {
    let policy = IdlePolicy::new().reader(NS(10)).both(NS(20));
    let reading = Reading::of([5; 2], None).in_a_pause();
    let time = CheckTime { now: 1000, scale: Scale::ONE };
    let past = Past::default();
    assert_eq!(verdict(policy.limits(), reading, past, 0, time), Verdict::CheckAt(1010));
}

#[test]
fn a_write_that_does_not_wait_is_checked_again_after_its_duration() {
    let policy = IdlePolicy::new().waiting_write(NS(10));
    let at = |waits, now| {
        let reading = Reading::of([5; 2], waits);
        let time = CheckTime { now, scale: Scale::ONE };
        verdict(policy.limits(), reading, Past::default(), 0, time)
    };
    assert_eq!(at(None, 1000), Verdict::CheckAt(1010));
    assert_eq!(at(Some(995), 1004), Verdict::CheckAt(1005));
    assert_eq!(at(Some(995), 1005), idle(IdleKind::WaitingWrite, true, 10, 995));
}

#[test]
fn an_age_is_due_in_a_pause_and_again_after_the_grace() {
    let at = |grace, reported, now| {
        let policy = IdlePolicy::new().max_age(NS(100), grace);
        let reading = Reading::of([80; 2], None).in_a_pause();
        let past = Past { born: 20, reported: [0, 0, 0, 0, reported] };
        verdict(policy.limits(), reading, past, 0, CheckTime { now, scale: Scale(0.5) })
    };
    assert_eq!(at(Some(NS(30)), 0, 119), Verdict::CheckAt(120), "no scale shortens it");
    assert_eq!(at(Some(NS(30)), 0, 121), idle(IdleKind::Age, true, 101, 20));
    assert_eq!(at(Some(NS(30)), 121, 150), Verdict::CheckAt(151));
    assert_eq!(at(Some(NS(30)), 121, 151), idle(IdleKind::Age, false, 131, 20));
    assert_eq!(at(None, 121, 1000), Verdict::CheckAt(NEVER));
    assert_eq!(at(Some(Duration::ZERO), 121, 121), Verdict::CheckAt(122));
}

#[test]
fn rule_10_zero_and_the_longest_duration_are_never_due() {
    for policy in [IdlePolicy::new(), IdlePolicy::new().both(Duration::MAX)] {
        assert_eq!(verdict_at(&policy, [5; 2], [0; 3], NEVER - 1), Verdict::CheckAt(NEVER));
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
    assert_eq!(verdict_at(&policy, [500; 2], [0; 3], 20), Verdict::CheckAt(510));
}
