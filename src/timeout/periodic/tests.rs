use super::*;

fn after(period: Period, due_ms: u64, now_ms: u64) -> u128 {
    let zero = Instant::now();
    let at = |ms| zero + Duration::from_millis(ms);
    (period.next(at(due_ms), at(now_ms), Duration::MAX).unwrap() - zero).as_millis()
}

/// A heartbeat of a second, after eight hours.
#[test]
fn a_night_is_not_made_up_for_and_a_stall_is() {
    let heartbeat = Period::from(Duration::from_secs(1));
    assert_eq!(after(heartbeat, 1000, 1000 + 8 * 3_600_000), 1000 + 8 * 3_600_000 + 1000);
    assert_eq!(after(heartbeat, 1000, 1000 + 60_000), 2000);
}

#[test]
fn the_next_run_follows_the_cadence() {
    let every = Duration::from_millis(10);
    let rate = |missed| Period::fixed_rate_with(every, missed);
    for behavior in [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip]
        .into_iter()
        .chain([MissedTickBehavior::default(), MissedTickBehavior::BurstUpTo(0)])
    {
        assert_eq!(after(rate(behavior), 100, 104), 110, "nothing missed: {behavior:?}");
    }
    assert_eq!(after(rate(MissedTickBehavior::Burst), 100, 134), 110);
    assert_eq!(after(rate(MissedTickBehavior::Delay), 100, 134), 144);
    assert_eq!(after(rate(MissedTickBehavior::Skip), 100, 134), 140);
    assert_eq!(after(rate(MissedTickBehavior::Skip), 100, 130), 140);
    assert_eq!(after(rate(MissedTickBehavior::BurstUpTo(3)), 100, 139), 110, "three are missed");
    assert_eq!(after(rate(MissedTickBehavior::BurstUpTo(3)), 100, 140), 150, "four are missed");
    assert_eq!(after(rate(MissedTickBehavior::BurstUpTo(0)), 100, 110), 120);
    assert_eq!(after(rate(MissedTickBehavior::BurstUpTo(u32::MAX)), 100, 5000), 110);
    assert_eq!(after(Period::fixed_delay(every), 100, 134), 144);
}
