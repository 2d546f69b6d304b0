//! The bucket in which each wheel puts a timeout: worked examples from the literature, followed tick by
//! tick through every bucket that the timeout is moved down to.

use wheelwork::wheel::{DelayError, Key, Placement, Structure, Unlimited, Wheel};

fn at(level: usize, bucket: usize) -> Option<(usize, usize)> {
    Some((level, bucket))
}

/// The level and the bucket of a value.
fn place<T, S: Structure>(wheel: &Wheel<T, S>, key: Key) -> Option<(usize, usize)> {
    wheel.placement(key).map(|Placement { level, bucket, .. }| (level, bucket))
}

/// Follows one timeout tick by tick. Returns each of its placements with the time at which it was
/// first found there, and the tick in which it fired.
fn follow<S: Unlimited>(
    mut wheel: Wheel<u64, S>,
    deadline: u64,
) -> (Vec<(u64, usize, usize)>, u64) {
    let key = wheel.insert(deadline, deadline);
    let mut way: Vec<(u64, usize, usize)> = Vec::new();
    let mut now = 0;
    loop {
        if let Some((level, bucket)) = place(&wheel, key) {
            if way.last().is_none_or(|&(_, l, b)| (l, b) != (level, bucket)) {
                way.push((now, level, bucket));
            }
        }
        now += 1;
        if wheel.expire(now, |_, expired| {
            assert_eq!((expired.deadline, expired.value), (deadline, deadline))
        }) == 1
        {
            assert_eq!((wheel.len(), place(&wheel, key)), (0, None));
            return (way, now);
        }
    }
}

fn set_to<S: Structure>(wheel: &mut Wheel<u64, S>, now: u64) {
    assert_eq!(wheel.expire(now, |_, _| ()), 0, "nothing was due");
}

/// The example has 60 buckets, and so bucket 40 and 166 rounds. Here 60 becomes 64, so the bucket
/// is 16 and there are 156 rounds.
#[test]
fn rule_08_hashed_computes_bucket_and_rounds_as_netty_does() {
    let mut wheel = Wheel::hashed(60).unwrap();
    let key = wheel.insert(10_000, 0);
    assert_eq!((place(&wheel, key), wheel.remaining_rounds(key)), (at(1, 16), Some(156)));
}

#[test]
fn simple_takes_only_delays_shorter_than_a_turn() {
    let mut wheel = Wheel::simple(60).unwrap();
    for start in [0, 1000] {
        set_to(&mut wheel, start);
        let key = wheel.insert(start + 59, 'x'.into()).unwrap();
        assert_eq!(place(&wheel, key), at(1, ((start + 59) % 60) as usize));
        let refused = wheel.insert(start + 60, 7).unwrap_err();
        assert!(matches!(refused, DelayError { delay: 60, ticks_per_wheel: 60, .. }));
        assert_eq!(refused.into_value(), 7);
        assert!(wheel.insert(u64::MAX, 7).is_err());
        set_to(&mut wheel, start + 58);
        assert_eq!(wheel.next_expiry(), Some(start + 59));
        assert_eq!(wheel.expire(start + 59, |_, _| ()), 1);
    }
    let refused = Wheel::simple(60).unwrap().insert(61, ()).unwrap_err().to_string();
    assert_eq!(refused, "a delay of 61 ticks: expected less than 60, one turn of the wheel");
}

/// Levels of 20 buckets, from tick 0.
#[test]
fn hierarchical_moves_timeouts_down_as_kafka_does() {
    let follow = |deadline| follow(Wheel::hierarchical(20).unwrap(), deadline);
    assert_eq!(follow(2), (vec![(0, 1, 2)], 2));
    assert_eq!(follow(19), (vec![(0, 1, 19)], 19));
    assert_eq!(follow(350), (vec![(0, 2, 17), (340, 1, 10)], 350));
    assert_eq!(follow(450), (vec![(0, 3, 1), (400, 2, 2), (440, 1, 10)], 450));

    let mut wheel = Wheel::hierarchical(20).unwrap();
    assert_eq!(wheel.levels(), 1, "made on demand");
    let keys = [446, 455, 473].map(|deadline| wheel.insert(deadline, deadline));
    assert_eq!(keys.map(|key| place(&wheel, key)), [at(3, 1); 3]);
    assert_eq!(wheel.levels(), 3);
    set_to(&mut wheel, 399);
    assert_eq!(keys.map(|key| place(&wheel, key)), [at(3, 1); 3]);
    set_to(&mut wheel, 400);
    assert_eq!(keys.map(|key| place(&wheel, key)), [at(2, 2), at(2, 2), at(2, 3)]);
    set_to(&mut wheel, 440);
    assert_eq!(keys.map(|key| place(&wheel, key)), [at(1, 6), at(1, 15), at(2, 3)]);
}

/// Levels of 3 buckets, started at `c`: Kafka's table of the spans of all buckets, at `c` to `c +
/// 3`.
#[test]
fn hierarchical_windows_slide_as_in_kafka() {
    let c = 54; // a multiple of all units
    // For each time, the first deadlines beyond level 1, 2 and 3.
    for (time, ends) in
        [(c, [3, 9, 27]), (c + 1, [4, 9, 27]), (c + 2, [5, 9, 27]), (c + 3, [6, 12, 27])]
    {
        let mut wheel = Wheel::hierarchical(3).unwrap();
        set_to(&mut wheel, time);
        for deadline in time + 1..c + 27 {
            let level = ends.iter().position(|&end| deadline < c + end).unwrap();
            let bucket = deadline / [1, 3, 9][level] % 3;
            let key = wheel.insert(deadline, deadline);
            assert_eq!(place(&wheel, key), at(level + 1, bucket as usize), "{deadline} at {time}");
        }
    }
}

#[test]
fn hierarchical_refuses_levels_of_too_few_or_too_many_buckets() {
    for buckets in [0, 1, 65_537] {
        let refused = Wheel::<(), _>::hierarchical(buckets).unwrap_err();
        assert_eq!(refused.buckets, buckets);
        assert_eq!(
            refused.to_string(),
            format!("levels of {buckets} buckets: expected 2 to 65536")
        );
    }
}

/// The range is unlimited: 64 levels of two buckets reach the end of time.
#[test]
fn rule_10_hierarchical_reaches_the_end_of_time() {
    for buckets in [2, 3, 20, 512, 65_536] {
        let mut wheel = Wheel::hierarchical(buckets).unwrap();
        wheel.insert(u64::MAX, 0);
        wheel.insert(u64::MAX - 1, 1);
        wheel.insert(1 << 63, 2);
        set_to(&mut wheel, (1 << 63) - 1);
        assert_eq!(wheel.next_expiry(), Some(1 << 63));
        assert_eq!(wheel.expire(u64::MAX - 2, |_, expired| assert_eq!(expired.value, 2)), 1);
        assert_eq!(wheel.expire(u64::MAX, |_, expired| assert_eq!(expired.value, 1)), 1);
        assert_eq!(wheel.drain(), [(u64::MAX, 0)]);
    }
}

#[test]
fn linux_classic_moves_timeouts_down_from_vector_to_vector() {
    let follow = |deadline| follow(Wheel::linux_classic(), deadline);
    assert_eq!(follow(255), (vec![(0, 1, 255)], 255));
    assert_eq!(follow(256), (vec![(0, 2, 1)], 256));
    assert_eq!(follow(1000), (vec![(0, 2, 3), (768, 1, 232)], 1000));
    assert_eq!(follow(100_000), (vec![(0, 3, 6), (98_304, 2, 6), (99_840, 1, 160)], 100_000));
}

#[test]
fn linux_classic_picks_the_level_by_the_delay() {
    let mut wheel = Wheel::linux_classic();
    for (deadline, level, bucket) in [
        ((1 << 8) - 1, 1, 255),
        (1 << 8, 2, 1),
        ((1 << 14) - 1, 2, 63),
        (1 << 14, 3, 1),
        ((1 << 20) - 1, 3, 63),
        (1 << 20, 4, 1),
        ((1 << 26) - 1, 4, 63),
        (1 << 26, 5, 1),
        ((1 << 32) - 1, 5, 63),
    ] {
        let key = wheel.insert(deadline, deadline);
        assert_eq!(place(&wheel, key), at(level, bucket), "{deadline}");
    }
}

/// The levels reach 2^32 - 1 ticks. Linux files a longer timeout there, and files it again when it
/// comes up. Here it waits.
#[test]
fn rule_08_linux_classic_files_a_far_timeout_when_the_levels_reach_it() {
    const REACH: u64 = (1 << 32) - 1;
    let mut wheel = Wheel::linux_classic();
    let last = wheel.insert(REACH, REACH);
    assert_eq!(place(&wheel, last), at(5, 63));
    let deadline = (1 << 33) + 5;
    let beyond = wheel.insert(deadline, deadline);
    assert_eq!(place(&wheel, beyond), None, "in no bucket yet");
    assert_eq!(wheel.expire(REACH, |_, expired| assert_eq!(expired.deadline, REACH)), 1);
    assert_eq!(wheel.next_expiry(), Some(deadline), "no look before that");
    set_to(&mut wheel, deadline - REACH - 1);
    assert_eq!(place(&wheel, beyond), None);
    set_to(&mut wheel, deadline - REACH);
    assert_eq!(place(&wheel, beyond), at(5, (deadline >> 26) as usize % 64));
    set_to(&mut wheel, deadline - 1);
    assert_eq!(wheel.expire(deadline, |_, _| ()), 1);
}

/// Linux would file the first timeout twice at the end of its range, and the second one only once.
/// So it would expire the second one first.
#[test]
fn rule_07_linux_classic_keeps_the_order_beyond_its_range() {
    let deadline = 128 << 26;
    let mut wheel = Wheel::linux_classic();
    wheel.insert(deadline, 1);
    set_to(&mut wheel, 10 << 26);
    wheel.insert(deadline, 2);
    let mut order = Vec::new();
    wheel.expire(deadline, |_, expired| order.push(expired.value));
    assert_eq!(order, [1, 2]);
}

/// If each 2^32 ticks cost a step, this would take years.
#[test]
fn rule_07_linux_classic_jumps_over_its_range_at_once() {
    for deadline in [(1 << 32) - 1, 1 << 32, (63 << 26) + 1, 3 << 40, u64::MAX - 1] {
        let mut wheel = Wheel::linux_classic();
        wheel.insert(deadline, deadline);
        set_to(&mut wheel, deadline - 1);
        assert_eq!(wheel.expire(deadline, |_, expired| assert_eq!(expired.deadline, deadline)), 1);
        (0..100).for_each(|n| _ = wheel.insert(deadline.saturating_add(n << 50), n));
        // The last tick of all never comes.
        let expired = if deadline == u64::MAX - 1 { 0 } else { 100 };
        assert_eq!(wheel.expire(u64::MAX, |_, _| ()), expired);
        assert_eq!(wheel.len(), 100 - expired);
    }
}

#[test]
fn rule_02_linux_since_4_8_fires_late_and_never_early() {
    for (deadline, fires) in
        [(10, 11), (63, 64), (100, 104), (504, 512), (1000, 1024), (60_000, 61_440)]
    {
        let (way, fired) = follow(Wheel::linux(), deadline);
        assert_eq!((way.len(), fired), (1, fires), "{deadline}: never moved");
    }
}

#[test]
fn linux_since_4_8_picks_the_level_by_the_delay() {
    let starts = [63, 504, 4032, 32_256, 258_048, 2_064_384, 16_515_072, 132_120_576u64];
    let mut wheel = Wheel::linux();
    for (below, start) in starts.into_iter().enumerate() {
        let shift = 3 * below as u32;
        let last = wheel.insert(start - 1, 0);
        assert_eq!(place(&wheel, last), at(below + 1, 63), "up to {start}");
        let first = wheel.insert(start, 0);
        let bucket = (start >> (shift + 3)) + 1;
        assert_eq!(place(&wheel, first), at(below + 2, bucket as usize), "from {start}");
    }
}

/// Linux expires a timeout beyond its last level early, after 1,040,187,392 ticks. Here it waits.
#[test]
fn rule_08_linux_since_4_8_files_a_far_timeout_when_the_levels_reach_it() {
    const END: u64 = 63 << 24;
    let mut wheel = Wheel::linux();
    let last = wheel.insert(END - 1, 1);
    assert_eq!(place(&wheel, last), at(9, 63));
    let deadline = 1 << 32;
    let beyond = wheel.insert(deadline, 2);
    assert_eq!(place(&wheel, beyond), None, "in no bucket yet");
    assert_eq!(wheel.expire(END, |_, expired| assert_eq!(expired.value, 1)), 1);
    set_to(&mut wheel, deadline - END);
    assert_eq!(place(&wheel, beyond), None);
    set_to(&mut wheel, deadline - END + 1);
    assert_eq!(place(&wheel, beyond).unwrap().0, 9);
    set_to(&mut wheel, deadline);
    let fires = wheel.next_expiry().unwrap();
    assert!(fires > deadline && fires <= deadline + END / 63, "late by {}", fires - deadline);
    set_to(&mut wheel, fires - 1);
    assert_eq!(wheel.expire(fires, |_, expired| assert_eq!(expired.deadline, deadline)), 1);
}

/// A timeout may be inserted at any time, also at the end of a bucket.
#[test]
fn rule_02_delays_around_every_threshold_are_on_time_whenever_they_begin() {
    fn check<S: Unlimited>(new: fn() -> Wheel<u64, S>, late: fn(u64) -> u64) {
        for clock in
            [0, 1, 7, 62, 63, 64, 255, 256, 257, 504, 16_383, 16_384, (1 << 32) - 1, 1 << 32]
        {
            for delay in (0..12).flat_map(|k| [(1u64 << (3 * k)) - 1, 1 << (3 * k), 63 << (3 * k)])
            {
                let mut wheel = new();
                set_to(&mut wheel, clock);
                let deadline = clock + delay;
                wheel.insert(deadline, 0);
                set_to(&mut wheel, deadline.max(clock + 1) - 1);
                let fires = wheel.next_expiry().unwrap();
                assert!(fires >= deadline && fires <= deadline.max(clock + 1) + late(delay));
                set_to(&mut wheel, fires - 1);
                assert_eq!(wheel.expire(fires, |_, _| ()), 1, "{delay} from {clock}");
            }
        }
    }
    check(|| Wheel::hashed(64).unwrap(), |_| 0);
    check(|| Wheel::hierarchical(20).unwrap(), |_| 0);
    check(|| Wheel::hierarchical(64).unwrap(), |_| 0);
    check(Wheel::linux_classic, |_| 0);
    check(Wheel::linux, |delay| (delay * 8 / 63).max(1));
}
