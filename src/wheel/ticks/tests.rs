use super::*;

const MS: Duration = Duration::from_millis(1);

/// Lengths of ticks, speeds and times of a plain sequence without a pattern.
fn each_case(mut check: impl FnMut(Ticks, Instant, u64)) {
    let start = Instant::now();
    let mut x = 1u64;
    let mut next = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        x >> 24
    };
    for tick in [1, 3, 1_000, 777_777, 1_000_000_000] {
        for speed in [1.0, 0.001, 0.3, 2.0, 1000.0 / 3.0] {
            let mut ticks = Ticks::new(Duration::from_nanos(tick), start).unwrap();
            ticks.set_speed(start + 7 * MS, speed).unwrap();
            for _ in 0..200 {
                check(ticks, start + Duration::from_nanos(next()), next() >> 20);
            }
        }
    }
}

#[test]
fn rule_02_a_tick_has_begun_at_its_start_and_not_before() {
    each_case(|ticks, _, tick| {
        let Some(start) = ticks.start_of(tick) else { panic!("{ticks:?}: {tick}") };
        assert!(ticks.at(start) >= tick, "{ticks:?}: {tick}");
        if start > ticks.real {
            let just_before = start - Duration::from_nanos(1);
            assert!(ticks.at(just_before) < tick, "{ticks:?}: {tick}");
        }
    });
}

#[test]
fn rule_02_a_deadline_never_maps_to_a_tick_that_begins_before_it() {
    each_case(|ticks, deadline, delay| {
        let tick = ticks.not_before(deadline);
        assert!(ticks.start_of(tick).is_some_and(|start| start >= deadline), "{ticks:?}");
        let (now, delay) = (deadline, Duration::from_nanos(delay));
        let start = ticks.start_of(ticks.after(now, delay)).unwrap();
        assert!(ticks.elapsed(start) >= ticks.elapsed(now) + delay, "{ticks:?}");
        // Not by a part of a nanosecond either: where time is slow, that is long.
        let passed = start.duration_since(now).as_nanos() * u128::from(ticks.speed);
        assert!(passed >= delay.as_nanos() << SPEED_BITS, "{ticks:?}");
    });
}

#[test]
fn a_pause_moves_everything_by_its_length() {
    let start = Instant::now();
    let mut ticks = Ticks::new(MS, start).unwrap();
    ticks.pause(start + 5 * MS);
    assert!(ticks.is_paused());
    assert_eq!((ticks.at(start + 100 * MS), ticks.start_of(8)), (5, None));
    ticks.pause(start + 50 * MS);
    ticks.resume(start + 100 * MS);
    assert_eq!(ticks.at(start + 102 * MS), 7);
    assert_eq!(ticks.start_of(8), Some(start + 103 * MS));
    assert_eq!(ticks.start_of(2), Some(start + 100 * MS), "it began before");
}

#[test]
fn time_does_not_go_back() {
    let start = Instant::now() + 100 * MS;
    let mut ticks = Ticks::new(MS, start).unwrap();
    assert_eq!(ticks.at(start - 50 * MS), 0);
    ticks.set_speed(start + 10 * MS, 0.5).unwrap();
    ticks.set_speed(start + 5 * MS, 1.0).unwrap();
    assert_eq!((ticks.at(start), ticks.at(start + 12 * MS)), (10, 12));
}

#[test]
fn rule_10_extreme_speeds_and_durations_saturate() {
    let start = Instant::now();
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 3e9, 1e-10] {
        let mut ticks = Ticks::new(MS, start).unwrap();
        assert!(ticks.set_speed(start, speed).is_err(), "{speed}");
        assert_eq!(ticks.speed(), 1.0);
    }
    for speed in [2f64.powi(-32), 2f64.powi(31)] {
        let mut ticks = Ticks::new(Duration::MAX, start).unwrap();
        ticks.set_speed(start, speed).unwrap();
        assert_eq!(ticks.after(start, Duration::MAX), u64::MAX);
        assert_eq!(ticks.start_of(u64::MAX), None);
        assert!(ticks.at(start + Duration::from_secs(1 << 32)) <= 1);
    }
}
