//! Times in fixed ranges, as Prometheus has them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// In microseconds: each time of at most the first is in the first range, and so on. What is longer than the
/// last is in one more range.
const BOUNDS: [u64; 18] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    1_800_000_000,
    3_600_000_000,
];

/// How many times were within which bound, from 1 ms to an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    ranges: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// The number of times.
    pub fn count(&self) -> u64 {
        self.ranges.iter().sum()
    }

    /// The sum of the times, without parts of a microsecond.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The bounds, and how many times were no longer than each. What is longer than the last bound is in
    /// [`count`](Self::count) alone.
    pub fn within(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut all = 0;
        BOUNDS.iter().zip(&self.ranges).map(move |(&bound, range)| {
            all += range;
            (Duration::from_micros(bound), all)
        })
    }
}

/// The counts behind a [`Histogram`].
#[derive(Default)]
pub(super) struct Ranges {
    ranges: [AtomicU64; BOUNDS.len() + 1],
    /// Microseconds.
    sum: AtomicU64,
}

impl Ranges {
    pub(super) fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let range = BOUNDS.partition_point(|&bound| bound < micros);
        self.ranges[range].fetch_add(1, Relaxed);
        self.sum.fetch_add(micros, Relaxed);
    }

    pub(super) fn read(&self) -> Histogram {
        Histogram {
            ranges: std::array::from_fn(|range| self.ranges[range].load(Relaxed)),
            sum: Duration::from_micros(self.sum.load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_its_bound_and_all_longer_ones() {
        let ranges = Ranges::default();
        [1_000, 1_001, 30_000_000, 4_000_000_000]
            .into_iter()
            .for_each(|micros| ranges.record(Duration::from_micros(micros)));
        let histogram = ranges.read();
        let within: Vec<_> = histogram.within().map(|(_, within)| within).collect();
        assert_eq!(within, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3]);
        assert_eq!((histogram.count(), histogram.sum()), (4, Duration::from_micros(4_030_002_001)));
        ranges.record(Duration::MAX); // wraps the sum, and no more
        assert_eq!(ranges.read().count(), 5);
    }
}
