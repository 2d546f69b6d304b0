//! Lateness: a histogram of the time from a deadline until the hand-over to the executor.
//!
//! It is cheap enough to be always on. It uses the standard library's atomics in the loom models too.
//! Otherwise loom would explore every order of counting.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Four buckets per power of two of nanoseconds, so a quantile is at most 25 % too high.
const BUCKETS: usize = 252;

/// A histogram of lateness with fixed logarithmic buckets.
///
/// With the feature `serde`, it is serialized as its maximum and its buckets that are not empty, each with its count
/// and the greatest lateness that falls into it, in nanoseconds.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// timer.new_timeout(|| (), Duration::from_millis(100))?;
/// clock.advance_in_one_jump(Duration::from_millis(130));
/// let lateness = timer.metrics().lateness;
/// assert_eq!((lateness.count(), lateness.max()), (1, Duration::from_millis(30)));
/// for (at_most, count) in lateness.buckets() {
///     println!("{count} timeouts were late by up to {at_most:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "Serialized", from = "Serialized"))]
pub struct Lateness {
    counts: Box<[u64]>,
    max: u64,
}

impl Lateness {
    /// The number of recorded values.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// The greatest lateness; exact.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The lateness that a share of `q` (from 0 to 1) of the timeouts did not exceed, rounded up to
    /// the end of its bucket: at most 25 % too high. Zero if nothing was recorded.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen >= rank {
                return Duration::from_nanos(last_of(bucket).min(self.max));
            }
        }
        Duration::ZERO
    }

    /// The values recorded since `earlier`, a previous snapshot of the same timer. Their greatest lateness
    /// is rounded up to the end of its bucket, at most to [`max`](Self::max).
    ///
    /// # Examples
    ///
    /// ```
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let before = timer.metrics().lateness;
    /// // a minute later
    /// let last_minute = timer.metrics().lateness.since(&before);
    /// println!("99 %: {:?}", last_minute.quantile(0.99));
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn since(&self, earlier: &Self) -> Self {
        let both = self.counts.iter().zip(&earlier.counts);
        let counts: Box<[u64]> = both.map(|(now, then)| now.saturating_sub(*then)).collect();
        let last = counts.iter().rposition(|&n| n > 0);
        Self { max: last.map_or(0, |bucket| last_of(bucket).min(self.max)), counts }
    }

    /// The buckets that are not empty: the greatest lateness that falls into each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let all = self.counts.iter().enumerate();
        all.filter(|&(_, &n)| n > 0).map(|(b, &n)| (Duration::from_nanos(last_of(b)), n))
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), max: 0 }
    }
}

/// The serialized form, which does not depend on the number of buckets.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Serialized {
    max_nanos: u64,
    /// The greatest lateness that falls into a bucket, and its count.
    buckets: Vec<(u64, u64)>,
}

#[cfg(feature = "serde")]
impl From<Lateness> for Serialized {
    fn from(lateness: Lateness) -> Self {
        let filled = lateness.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        let buckets = filled.map(|(bucket, &n)| (last_of(bucket), n)).collect();
        Self { max_nanos: lateness.max, buckets }
    }
}

#[cfg(feature = "serde")]
impl From<Serialized> for Lateness {
    fn from(Serialized { max_nanos, buckets }: Serialized) -> Self {
        let mut lateness = Self { max: max_nanos, ..Self::default() };
        for (nanos, n) in buckets {
            let count = &mut lateness.counts[bucket_of(nanos)];
            *count = count.saturating_add(n);
        }
        lateness
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lateness")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

fn bucket_of(nanos: u64) -> usize {
    let shift = (nanos | 4).ilog2() - 2; // so that the two digits after the first one are left
    shift as usize * 4 + (nanos >> shift) as usize
}

/// The greatest value in a bucket.
fn last_of(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let power = bucket as u32 / 4 + 1;
    let quarter = bucket as u64 % 4;
    let width = 1u64 << (power - 2);
    (1u64 << power) + quarter * width + (width - 1)
}

/// The histogram that the worker fills. All operations are relaxed: a count guards nothing.
pub(crate) struct Recorder {
    counts: Box<[AtomicU64; BUCKETS]>,
    max: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { counts: Box::new(std::array::from_fn(|_| zero())), max: zero() }
    }
}

impl Recorder {
    /// Only the worker calls it, so it counts with a load and a store.
    #[inline]
    pub(crate) fn record(&self, nanos: u64) {
        let count = &self.counts[bucket_of(nanos)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if nanos > self.max.load(Ordering::Relaxed) {
            self.max.store(nanos, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> Lateness {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Lateness { counts: self.counts.iter().map(read).collect(), max: read(&self.max) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
