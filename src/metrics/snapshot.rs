//! Counters and the lateness histogram: cheap enough to be always on.
//!
//! The tallies count events of timeouts (see `tally`). The counters here count the worker's own actions.
//! Only the worker writes most of them, so it increments them with a load and a store. Two counters
//! have other writers too; their comments say so. All operations are relaxed: a count guards nothing.
//! The counters use the standard library's atomics in the loom models too. Otherwise loom would explore
//! every order of counting.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A snapshot of a timer's counters, from [`HashedWheelTimer::metrics`].
///
/// In every snapshot, `scheduled + rearmed == expired + cancelled + returned + pending`. Each thread
/// counts for itself, and reading the counts locks nothing. So a snapshot can miss calls of other
/// threads that run at the same time. It includes every call that returned before. The timeouts that the
/// [`idle`](crate::idle) manager has in the timer are not counted.
/// [Watching it](crate::guide::watching) says which figure tells what.
///
/// # Examples
///
/// ```
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// let before = timer.metrics();
/// // a second later
/// let now = timer.metrics();
/// println!("{} a second, {} pending", now.expired - before.expired, now.pending);
/// let begun = now.scheduled + now.rearmed;
/// assert_eq!(begun, now.expired + now.cancelled + now.returned + now.pending);
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
///
/// [`HashedWheelTimer::metrics`]: crate::HashedWheelTimer::metrics
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Timeouts accepted.
    pub scheduled: u64,
    /// Runs after which the timeout went on: runs of periodic timeouts, and runs that returned
    /// [`Next::after`](crate::Next::after) or [`Next::at`](crate::Next::at). A timeout that is cancelled as it
    /// would go on counts here and as cancelled.
    pub rearmed: u64,
    /// Successful calls of [`Timeout::reschedule`](crate::Timeout::reschedule).
    pub rescheduled: u64,
    /// Timeouts handed to the executor, including those that are cancelled during their run.
    pub expired: u64,
    /// Timeouts cancelled before a run, including those that were pending when the last handle was
    /// dropped.
    pub cancelled: u64,
    /// Timeouts returned by `stop`.
    pub returned: u64,
    /// Timeouts refused because the timer was stopped or a limit was reached.
    pub rejected: u64,
    /// Timeouts accepted, and not yet run, cancelled or returned.
    pub pending: u64,
    /// Tasks and callbacks that panicked.
    pub panicked: u64,
    /// Jobs that the executor gave back.
    pub refused: u64,
    /// Jobs that the executor dropped without running them; also counted as cancelled.
    pub abandoned: u64,
    /// Pending timeouts that are not in the wheel. They wait in their slots until shortly before they are due,
    /// so a large number is normal.
    pub queue_depth: u64,
    /// Passes that reached the drain cap: they had more timeouts to put into the wheel than one pass may.
    pub passes_with_backlog: u64,
    /// Ticks that the worker slept through because nothing was due.
    pub ticks_skipped: u64,
    /// The number of times the worker woke up.
    pub wakeups: u64,
    /// Completed sweeps of the wheel. A sweep drops the dead entries, which cancels and reschedules leave
    /// in the wheel. It begins once they outnumber the pending timeouts by more than 4,096, or by more than
    /// the number of buckets if that is greater.
    pub sweeps: u64,
    /// The time from a timeout's deadline until it was handed to the executor. The worker reads the
    /// clock before the first timeout of each pass, and then once in sixteen timeouts.
    pub lateness: Lateness,
}

/// Four buckets per power of two of nanoseconds, so a quantile is at most 25 % too high.
const BUCKETS: usize = 252;

/// A histogram of lateness with fixed logarithmic buckets.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// timer.new_timeout(|| (), Duration::from_millis(100))?;
/// clock.advance(Duration::from_millis(130));
/// let lateness = timer.metrics().lateness;
/// assert_eq!((lateness.count(), lateness.max()), (1, Duration::from_millis(30)));
/// for (at_most, count) in lateness.buckets() {
///     println!("{count} timeouts were late by up to {at_most:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Lateness {
    counts: Box<[u64]>,
    max: u64,
}

impl Lateness {
    /// The number of recorded values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
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
            seen += count;
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
    if nanos < 4 {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let quarter = (nanos >> (power - 2)) & 3;
    (power as usize - 1) * 4 + quarter as usize
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

/// The worker's counters.
pub(crate) struct WorkerMetrics {
    /// Written by every thread that runs a task.
    panicked: AtomicU64,
    /// Written by every thread that is refused at the limit.
    over_limit: AtomicU64,
    refused: AtomicU64,
    passes_with_backlog: AtomicU64,
    ticks_skipped: AtomicU64,
    wakeups: AtomicU64,
    sweeps: AtomicU64,
    max_lateness: AtomicU64,
    lateness: Box<[AtomicU64]>,
}

impl WorkerMetrics {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            panicked: zero(),
            over_limit: zero(),
            refused: zero(),
            passes_with_backlog: zero(),
            ticks_skipped: zero(),
            wakeups: zero(),
            sweeps: zero(),
            max_lateness: zero(),
            lateness: (0..BUCKETS).map(|_| zero()).collect(),
        }
    }

    pub(crate) fn task_panicked(&self) {
        self.panicked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn over_limit(&self) {
        self.over_limit.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn job_refused(&self) {
        add(&self.refused, 1);
    }

    pub(crate) fn backlog_left(&self) {
        add(&self.passes_with_backlog, 1);
    }

    pub(crate) fn skipped(&self, ticks: u64) {
        add(&self.ticks_skipped, ticks);
    }

    pub(crate) fn woken(&self) {
        add(&self.wakeups, 1);
    }

    pub(crate) fn swept(&self) {
        add(&self.sweeps, 1);
    }

    #[inline]
    pub(crate) fn late_by(&self, nanos: u64) {
        add(&self.lateness[bucket_of(nanos)], 1);
        if nanos > self.max_lateness.load(Ordering::Relaxed) {
            self.max_lateness.store(nanos, Ordering::Relaxed);
        }
    }

    /// The counts of refused jobs, of timeouts refused at the limit, and of passes with a backlog.
    pub(crate) fn trouble(&self) -> (u64, u64, u64) {
        let counters = [&self.refused, &self.over_limit, &self.passes_with_backlog];
        counters.map(|counter| counter.load(Ordering::Relaxed)).into()
    }

    pub(crate) fn fill(&self, metrics: &mut Metrics) {
        // Every field is named, so that the compiler reports a counter that is not copied.
        let Self {
            panicked,
            over_limit,
            refused,
            passes_with_backlog,
            ticks_skipped,
            wakeups,
            sweeps,
            max_lateness,
            lateness,
        } = self;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        metrics.panicked = read(panicked);
        metrics.rejected += read(over_limit);
        metrics.refused = read(refused);
        metrics.passes_with_backlog = read(passes_with_backlog);
        metrics.ticks_skipped = read(ticks_skipped);
        metrics.wakeups = read(wakeups);
        metrics.sweeps = read(sweeps);
        metrics.lateness =
            Lateness { counts: lateness.iter().map(read).collect(), max: read(max_lateness) };
    }
}

/// Adds to a counter that has only one writer.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
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
        let metrics = WorkerMetrics::new();
        let mut snapshot = Metrics::default();
        metrics.fill(&mut snapshot);
        assert_eq!(snapshot.lateness.buckets().count(), 0);
        assert_eq!(snapshot.lateness.quantile(0.5), Duration::ZERO);
        [0, 5, 5, 70_000].into_iter().for_each(|nanos| metrics.late_by(nanos));
        metrics.fill(&mut snapshot);
        let buckets: Vec<_> = snapshot.lateness.buckets().collect();
        let up_to = |nanos, n| (Duration::from_nanos(last_of(bucket_of(nanos))), n);
        assert_eq!(buckets, [up_to(0, 1), up_to(5, 2), up_to(70_000, 1)]);
    }

    #[test]
    fn lateness_since_a_snapshot_has_only_what_came_after_it() {
        let metrics = WorkerMetrics::new();
        let mut snapshot = Metrics::default();
        [5, 70_000].into_iter().for_each(|nanos| metrics.late_by(nanos));
        metrics.fill(&mut snapshot);
        let before = snapshot.lateness.clone();
        assert_eq!(
            (before.since(&before).count(), before.since(&before).max()),
            (0, Duration::ZERO)
        );
        [5, 5, 1000].into_iter().for_each(|nanos| metrics.late_by(nanos));
        metrics.fill(&mut snapshot);
        let since = snapshot.lateness.since(&before);
        let last_of = |nanos| Duration::from_nanos(last_of(bucket_of(nanos)));
        assert_eq!(since.buckets().collect::<Vec<_>>(), [(last_of(5), 2), (last_of(1000), 1)]);
        assert_eq!((since.count(), since.max()), (3, last_of(1000)));
    }

    #[test]
    fn quantiles_are_at_most_a_quarter_too_high() {
        let metrics = WorkerMetrics::new();
        (1..=1000).for_each(|n| metrics.late_by(n * 1000));
        let mut snapshot = Metrics::default();
        metrics.fill(&mut snapshot);
        let lateness = snapshot.lateness;
        assert_eq!((lateness.count(), lateness.max()), (1000, Duration::from_millis(1)));
        for (q, exact) in [(0.0, 1u64), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let got = lateness.quantile(q).as_nanos() as u64;
            assert!(got >= exact * 1000 && got <= exact * 1250, "{q}: {got}");
        }
    }
}
