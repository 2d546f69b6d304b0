use super::*;

fn after(policy: &IdlePolicy, jitter_share: u32, scale: f64) -> Option<u64> {
    policy.limits().after(IdleKind::Both, jitter_share, Scale(scale))
}

#[test]
fn jitter_only_lengthens_and_none_turns_off() {
    let policy = IdlePolicy::new().both(Duration::from_nanos(1000));
    assert_eq!(after(&policy, u32::MAX, 1.0), Some(1000));
    let policy = policy.jitter(Duration::from_nanos(500));
    assert_eq!(after(&policy, 0, 1.0), Some(1000));
    assert_eq!(after(&policy, u32::MAX / 2 + 1, 1.0), Some(1250));
    assert_eq!(after(&policy, u32::MAX, 1.0), Some(1499));
    let off = policy.both(None);
    assert_eq!(after(&off, u32::MAX, 1.0), None);
}

#[test]
fn rule_10_a_scale_rounds_up_saturates_and_never_turns_off() {
    let policy = IdlePolicy::new().both(Duration::from_nanos(1001));
    assert_eq!(after(&policy, 0, 0.5), Some(501));
    assert_eq!(after(&policy, 0, 0.0), Some(1));
    assert_eq!(after(&policy, 0, 1e300), Some(u64::MAX));
    let never = policy.both(Duration::MAX).jitter(Duration::MAX);
    assert_eq!(after(&never, u32::MAX, 0.5), Some(u64::MAX));
}

#[test]
fn rule_10_zero_means_now() {
    let now = IdlePolicy::new().both(Duration::ZERO).max_age(Duration::ZERO, Duration::ZERO);
    assert_eq!(after(&now, 0, 1.0), Some(1));
    assert!(now.limits().has(IdleKind::Age));
    assert_eq!(now.limits().grace(), Some(1));
}
