//! The counters of the worker's own actions. The tallies count events of timeouts (see `tally`).
//!
//! Only the worker writes most of them, so it increments them with a load and a store. Two counters have
//! other writers too; their comments say so. All operations are relaxed: a count guards nothing. The counters
//! use the standard library's atomics in the loom models too. Otherwise loom would explore every order of
//! counting.

use super::lateness::Recorder;
use super::snapshot::Metrics;
use std::sync::atomic::{AtomicU64, Ordering};

/// The worker's counters.
pub(crate) struct WorkerCounts {
    /// Written by every thread that runs a task.
    panicked: AtomicU64,
    /// Written by every thread that is refused at the limit.
    over_limit: AtomicU64,
    refused: AtomicU64,
    passes_with_backlog: AtomicU64,
    ticks_skipped: AtomicU64,
    wakeups: AtomicU64,
    sweeps: AtomicU64,
    lateness: Recorder,
}

impl WorkerCounts {
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
            lateness: Recorder::new(),
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
        self.lateness.record(nanos);
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
        metrics.lateness = lateness.read();
    }
}

/// Adds to a counter that has only one writer.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}
