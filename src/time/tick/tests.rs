use super::*;

fn scale(length: u64) -> TickScale {
    TickScale::new(NonZeroU64::new(length).unwrap())
}

/// Lengths and times: the beginning of time, around many starts of ticks, and shortly before `NEVER`.
fn each_time(mut check: impl FnMut(TickScale, u64)) {
    let odd = [50_000, 50_001, 777_777, 16_666_666, 333_333_333, u64::MAX / 3, u64::MAX];
    for length in (1..=40).chain(odd) {
        let last = u64::MAX / length;
        let ticks = (1..40).chain(10_000..10_040).chain(last.saturating_sub(3)..=last);
        let starts = ticks.map(|tick| tick.saturating_mul(length));
        let around = starts.flat_map(|at| at.saturating_sub(20)..=at.saturating_add(20));
        for time in (0..400).chain(around).chain(NEVER - 20..=NEVER) {
            check(scale(length), time);
        }
    }
}

#[test]
fn rule_02_a_deadline_never_maps_to_a_tick_that_begins_before_it() {
    each_time(|scale, deadline| {
        let tick = scale.tick_not_before(deadline);
        assert!(scale.start_of(tick) >= deadline, "{scale:?}, {deadline}");
        if tick > 0 {
            assert!(scale.start_of(tick - 1) < deadline, "{scale:?}, {deadline}: late");
        }
    });
}

/// Ticks shorter than a step share starts: then it is the last one of them.
#[test]
fn rule_02_the_current_tick_is_the_last_that_has_begun() {
    each_time(|scale, now| {
        let tick = scale.tick_at(now);
        assert!(scale.start_of(tick) <= now, "{scale:?}, {now}");
        let next = scale.start_of(tick + 1);
        assert!(next > now || next == NEVER, "{scale:?}, {now}");
    });
}

/// Also if the deadline was rounded up to a step.
#[test]
fn rule_02_a_deadline_at_the_start_of_a_tick_does_not_wait_for_the_next() {
    let long = [50_000, 50_001, 777_777, 16_666_666, 333_333_333];
    for length in (DEADLINE_STEP..=40).chain(long) {
        for tick in (0..2000).chain(1 << 32..(1 << 32) + 100) {
            let (scale, start) = (scale(length), scale(length).start_of(tick));
            assert!(start % DEADLINE_STEP == 0 && start - tick * length < DEADLINE_STEP);
            assert_eq!((scale.tick_not_before(start), scale.tick_at(start)), (tick, tick));
            assert_eq!(scale.tick_not_before(tick * length), tick);
        }
    }
    for length in 1..DEADLINE_STEP {
        for tick in 0..2000 {
            let (scale, start) = (scale(length), scale(length).start_of(tick));
            let sharing = scale.tick_not_before(start)..=scale.tick_at(start);
            assert!(sharing.contains(&tick), "{length} ns, tick {tick}: {sharing:?}");
            assert_eq!([sharing.start(), sharing.end()].map(|&n| scale.start_of(n)), [start; 2]);
        }
    }
}

#[test]
fn rule_10_the_longest_duration_saturates() {
    assert_eq!(nanos(Duration::MAX), NEVER);
    assert_eq!(nanos(Duration::from_nanos(1_000_000_001)), 1_000_000_001);
    for length in [1, 8, 50_000, 777_777, 100_000_000, u64::MAX] {
        let scale = scale(length);
        for deadline in [NEVER, NEVER - 1] {
            assert!(scale.start_of(scale.tick_not_before(deadline)) >= deadline);
        }
    }
}
