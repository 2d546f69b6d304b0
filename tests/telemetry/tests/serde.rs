//! Snapshots of the metrics as JSON.

use std::time::Duration;
use wheelwork::metrics::Metrics;
use wheelwork::{HashedWheelTimer, ManualClock};

/// Snapshots can be compared, stored and read again.
#[test]
fn a_snapshot_survives_being_serialized() {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let ms = Duration::from_millis;
    timer.new_timeout(|| (), ms(10)).unwrap();
    timer.new_timeout(|| (), ms(70_000)).unwrap();
    clock.advance_in_one_jump(ms(500));
    let metrics = timer.metrics();
    let text = serde_json::to_string(&metrics).unwrap();
    let read: Metrics = serde_json::from_str(&text).unwrap();
    assert_eq!(read, metrics);
    assert_ne!(read, Metrics::default());
    assert_eq!(read.lateness.max(), metrics.lateness.max());

    // An earlier version knew fewer counts; a strange program has sums that overflow.
    let strange = r#"{"expired": 3, "lateness": {"max_nanos": 9, "buckets": [[5, 18446744073709551615], [6, 1]]}}"#;
    let read: Metrics = serde_json::from_str(strange).unwrap();
    assert_eq!((read.expired, read.scheduled, read.lateness.count()), (3, 0, u64::MAX));
    assert!(read.lateness.quantile(0.99) <= read.lateness.max());
}
