//! What a `Jobs` has done.
//!
//! - `kinds`: the counts of each kind, which are bounded in number
//! - `histogram`: times in fixed ranges
//! - `text`: all of it as Prometheus reads it

mod histogram;
mod kinds;
mod text;

pub use self::histogram::Histogram;
pub use self::kinds::KindMetrics;
pub(crate) use self::text::escape;

use self::kinds::Kinds;
use crate::lock::lock;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What this `Jobs` has done since it was opened, and what it holds.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Jobs that it has stored, without those in transactions of yours.
    pub scheduled: u64,
    /// Jobs that it has claimed.
    pub claimed: u64,
    /// Jobs whose handler was called.
    pub fired: u64,
    /// Jobs that were done.
    pub done: u64,
    /// Runs that ended with an error or a panic, or were longer than their limit.
    pub failed: u64,
    /// Failures after which a job runs again.
    pub retried: u64,
    /// Runs whose handler has put the job off.
    pub snoozed: u64,
    /// Failures after which a job was dead.
    pub buried: u64,
    /// Jobs that it has cancelled: its calls that have returned true.
    pub cancelled: u64,
    /// Failures after which a periodic job gave up its occurrence.
    pub given_up: u64,
    /// Occurrences of periodic jobs that were too late to run.
    pub skipped: u64,
    /// Runs whose claim did not hold any more at their end: cancelled, rescheduled or taken over meanwhile. A run whose
    /// end was stored counts here too, and not as done, if the answer of the store was late or did not arrive: the node then
    /// tells the end again, when the claim is over.
    pub lost: u64,
    /// Jobs that it has freed because their node had died.
    pub taken_over: u64,
    /// Times at which the others had taken this node for dead.
    pub lapsed: u64,
    /// Times at which the database's clock jumped.
    pub clock_steps: u64,
    /// Calls of the store that failed.
    pub store_errors: u64,
    /// Whether it has died, as [`Jobs::health`](crate::Jobs::health) says.
    pub died: bool,
    /// Jobs that it holds now, in its wheel or running.
    pub held: u64,
    /// Handlers that run now.
    pub running: u64,
    /// How late handlers were called.
    pub late_by: LateBy,
    /// The same by kind, by name.
    pub kinds: Vec<KindMetrics>,
}

/// How late handlers were called: from the due time to the call, by the database's clock.
#[derive(Clone, Debug)]
pub struct LateBy(hdrhistogram::Histogram<u64>);

impl LateBy {
    /// An hour. Whatever is later counts as an hour.
    const LONGEST: u64 = 3_600_000_000;

    /// The lateness that a share of `q` (from 0 to 1) of the jobs did not exceed, to 1 %.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(q))
    }

    /// The greatest lateness, to 1 %.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }

    /// The number of jobs.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    fn record(&mut self, late_by: Duration) {
        let micros = u64::try_from(late_by.as_micros()).unwrap_or(Self::LONGEST);
        self.0.saturating_record(micros.min(Self::LONGEST));
    }
}

impl Default for LateBy {
    fn default() -> Self {
        match hdrhistogram::Histogram::new_with_bounds(1, Self::LONGEST, 2) {
            Ok(histogram) => Self(histogram),
            Err(error) => unreachable!("the bounds are constants: {error:?}"),
        }
    }
}

/// The counts behind [`Metrics`].
pub(crate) struct Counts {
    pub(crate) kinds: Kinds,
    pub(crate) taken_over: Count,
    pub(crate) lapsed: Count,
    pub(crate) clock_steps: Count,
    pub(crate) store_errors: Count,
    late_by: Mutex<LateBy>,
}

#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Counts {
    pub(crate) fn new(handled: &[Arc<str>]) -> Self {
        Self {
            kinds: Kinds::new(handled),
            taken_over: Count::default(),
            lapsed: Count::default(),
            clock_steps: Count::default(),
            store_errors: Count::default(),
            late_by: Mutex::default(),
        }
    }

    /// A handler is called.
    pub(crate) fn fired(&self, kind: usize, late_by: Duration) {
        lock(&self.late_by).record(late_by);
        let counts = self.kinds.of(kind);
        counts.fired.add(1);
        counts.late_by(late_by);
    }

    /// `holds` is what the node holds of each of its kinds: held and running.
    pub(crate) fn read(&self, holds: &[(usize, usize)], died: bool) -> Metrics {
        let kinds = self.kinds.read(holds);
        let sum = |count: fn(&KindMetrics) -> u64| kinds.iter().map(count).sum();
        Metrics {
            scheduled: sum(|kind| kind.scheduled),
            claimed: sum(|kind| kind.claimed),
            fired: sum(|kind| kind.fired),
            done: sum(|kind| kind.done),
            failed: sum(|kind| kind.failed),
            retried: sum(|kind| kind.retried),
            snoozed: sum(|kind| kind.snoozed),
            buried: sum(|kind| kind.buried),
            cancelled: sum(|kind| kind.cancelled),
            given_up: sum(|kind| kind.given_up),
            skipped: sum(|kind| kind.skipped),
            lost: sum(|kind| kind.lost),
            taken_over: self.taken_over.get(),
            lapsed: self.lapsed.get(),
            clock_steps: self.clock_steps.get(),
            store_errors: self.store_errors.get(),
            died,
            held: sum(|kind| kind.held),
            running: sum(|kind| kind.running),
            late_by: lock(&self.late_by).clone(),
            kinds,
        }
    }
}
