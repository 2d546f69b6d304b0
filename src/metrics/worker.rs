//! The counters of the worker's own actions. The tallies count events of timeouts (see `tally`).

use super::lateness::Recorder;
use super::snapshot::Metrics;
use super::tally::Count;

/// The worker's counters. Unless a comment says otherwise, only the worker writes them.
#[derive(Default)]
pub(crate) struct WorkerCounts {
    /// Written by every thread that runs a task.
    pub(crate) panicked: Count,
    /// Timeouts that were refused at the limit. Written by every thread that schedules.
    pub(crate) over_limit: Count,
    pub(crate) refused: Count,
    pub(crate) passes_with_backlog: Count,
    pub(crate) ticks_skipped: Count,
    pub(crate) wakeups: Count,
    pub(crate) sweeps: Count,
    pub(crate) lateness: Recorder,
}

impl WorkerCounts {
    pub(super) fn fill(&self, metrics: &mut Metrics) {
        metrics.panicked = self.panicked.get();
        metrics.rejected += self.over_limit.get();
        metrics.refused = self.refused.get();
        metrics.passes_with_backlog = self.passes_with_backlog.get();
        metrics.ticks_skipped = self.ticks_skipped.get();
        metrics.wakeups = self.wakeups.get();
        metrics.sweeps = self.sweeps.get();
        metrics.lateness = self.lateness.read();
    }
}
