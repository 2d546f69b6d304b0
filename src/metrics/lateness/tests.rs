use super::*;

#[test]
fn every_value_lies_in_its_bucket() {
    for value in (0..4096).chain((2..64).flat_map(|p| [(1u64 << p) - 1, 1 << p])) {
        let bucket = bucket_of(value);
        assert!(value <= last_of(bucket), "{value}");
        assert!(bucket == 0 || value > last_of(bucket - 1), "{value}");
    }
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    assert_eq!(last_of(BUCKETS - 1), u64::MAX);
}

#[test]
fn every_recorded_value_is_in_a_bucket() {
    let recorder = Recorder::default();
    assert_eq!(recorder.read().buckets().count(), 0);
    assert_eq!(recorder.read().quantile(0.5), Duration::ZERO);
    [0, 5, 5, 70_000].into_iter().for_each(|nanos| recorder.record(nanos));
    let lateness = recorder.read();
    let buckets: Vec<_> = lateness.buckets().collect();
    let up_to = |nanos, n| (Duration::from_nanos(last_of(bucket_of(nanos))), n);
    assert_eq!(buckets, [up_to(0, 1), up_to(5, 2), up_to(70_000, 1)]);
}

#[test]
fn lateness_since_a_snapshot_has_only_what_came_after_it() {
    let recorder = Recorder::default();
    [5, 70_000].into_iter().for_each(|nanos| recorder.record(nanos));
    let before = recorder.read();
    assert_eq!((before.since(&before).count(), before.since(&before).max()), (0, Duration::ZERO));
    [5, 5, 1000].into_iter().for_each(|nanos| recorder.record(nanos));
    let since = recorder.read().since(&before);
    let last_of = |nanos| Duration::from_nanos(last_of(bucket_of(nanos)));
    assert_eq!(since.buckets().collect::<Vec<_>>(), [(last_of(5), 2), (last_of(1000), 1)]);
    assert_eq!((since.count(), since.max()), (3, last_of(1000)));
}

#[test]
fn quantiles_are_at_most_a_quarter_too_high() {
    let recorder = Recorder::default();
    (1..=1000).for_each(|n| recorder.record(n * 1000));
    let lateness = recorder.read();
    assert_eq!((lateness.count(), lateness.max()), (1000, Duration::from_millis(1)));
    for (q, exact) in [(0.0, 1u64), (0.5, 500), (0.99, 990), (1.0, 1000)] {
        let got = lateness.quantile(q).as_nanos() as u64;
        assert!(got >= exact * 1000 && got <= exact * 1250, "{q}: {got}");
    }
}
