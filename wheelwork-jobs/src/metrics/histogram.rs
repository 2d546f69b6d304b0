//! Times in fixed ranges, as Prometheus has them.

use std::time::Duration;

/// In microseconds: each time of at most the first is in the first range, and so on. Longer times
/// are in one more range.
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
    pub(super) fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.ranges[BOUNDS.partition_point(|&bound| bound < micros)] += 1;
        self.sum = self.sum.saturating_add(Duration::from_micros(micros));
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.ranges.iter().sum()
    }

    /// The sum of the times, without parts of a microsecond.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The bounds, and how many times were no longer than each. Longer ones are in
    /// [`count`](Self::count) alone.
    pub fn within(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut all = 0;
        BOUNDS.iter().zip(&self.ranges).map(move |(&bound, range)| {
            all += range;
            (Duration::from_micros(bound), all)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_its_bound_and_all_longer_ones() {
        let mut histogram = Histogram::default();
        [1_000, 1_001, 30_000_000, 4_000_000_000]
            .into_iter()
            .for_each(|micros| histogram.record(Duration::from_micros(micros)));
        let within: Vec<_> = histogram.within().map(|(_, within)| within).collect();
        assert_eq!(within, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3]);
        assert_eq!((histogram.count(), histogram.sum()), (4, Duration::from_micros(4_030_002_001)));
        histogram.record(Duration::MAX);
        assert_eq!(histogram.count(), 5);
    }
}
