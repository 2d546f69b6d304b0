//! Report: warns of refusals, of a backlog, and of timeouts that run late.
//!
//! Each pass compares the counters with those of the last report. There is at most one report in a
//! second of the timer's clock, so trouble that lasts does not flood the log. A report has everything
//! since the last one, and the end of the timer reports the rest. Without the features `log` and
//! `tracing`, no warning reaches anybody, and the compiler drops this file's code.

use super::Worker;
use crate::base::logging::{WARNS, warning};
use crate::metrics::{Count, WorkerCounts};
use crate::timeout::Shared;
use std::time::Duration;

/// The shortest time between two reports, in nanoseconds.
const REPORT_EVERY: u64 = 1_000_000_000;

/// A timeout is reported as late from this number of ticks.
const LATE_TICKS: u64 = 10;

/// Less lateness than this is not reported, however short the tick is.
const LATE_AT_LEAST: u64 = 100_000_000;

/// The counts at the last report, and the greatest lateness since.
#[derive(Default)]
pub(super) struct Reports {
    /// The refused jobs, the timeouts that were refused at the limit, and the passes with a backlog.
    last: [u64; 3],
    /// The greatest lateness since the last report, in nanoseconds.
    latest: u64,
    /// The time before which there is no report.
    not_before: u64,
}

impl Reports {
    /// Notes the lateness of a timeout.
    #[inline]
    pub(super) fn late_by(&mut self, nanos: u64) {
        if WARNS {
            self.latest = self.latest.max(nanos);
        }
    }
}

impl<W> Worker<W> {
    /// Reports what has happened since the last report, at the end of a pass.
    #[inline]
    pub(super) fn report(&mut self) {
        if WARNS && self.known >= self.reports.not_before {
            self.report_trouble();
        }
    }

    /// Reports the rest, at the end of the timer.
    pub(super) fn report_rest(&mut self) {
        if WARNS {
            self.report_trouble();
        }
    }

    fn report_trouble(&mut self) {
        let Self { control, reports, known, .. } = self;
        let shared = &control.shared;
        let late_from = shared.gate.scale.start_of(LATE_TICKS).max(LATE_AT_LEAST);
        let late = Some(std::mem::take(&mut reports.latest)).filter(|&nanos| nanos >= late_from);
        let WorkerCounts { refused, over_limit, passes_with_backlog, .. } = &shared.counts.worker;
        let now = [refused, over_limit, passes_with_backlog].map(Count::get);
        let last = std::mem::replace(&mut reports.last, now);
        let [refused, over_limit, passes_with_backlog] = std::array::from_fn(|n| now[n] - last[n]);
        if late.is_none() && refused + over_limit + passes_with_backlog == 0 {
            return;
        }
        reports.not_before = known.saturating_add(REPORT_EVERY);
        if let Some(nanos) = late {
            warn_of_lateness(shared, nanos);
        }
        warn_of_refusals(shared, refused, over_limit);
        if passes_with_backlog > 0 {
            warn_of_backlog(shared, passes_with_backlog);
        }
    }
}

#[cold]
fn warn_of_lateness(shared: &Shared, nanos: u64) {
    let (timer, late) = (shared.name(), Duration::from_nanos(nanos));
    let tick = Duration::from_nanos(shared.gate.scale.tick_nanos());
    warning!(
        [timer = timer, late_ms = late.as_millis() as u64],
        "{timer}: a timeout ran {late:?} after its deadline: expected at most a tick of {tick:?}"
    );
}

#[cold]
fn warn_of_refusals(shared: &Shared, jobs: u64, timeouts: u64) {
    let timer = shared.name();
    if jobs > 0 {
        warning!([timer = timer, jobs = jobs], "{timer}: the executor refused {jobs} jobs");
    }
    if timeouts > 0 {
        warning!(
            [timer = timer, timeouts = timeouts],
            "{timer}: {timeouts} timeouts were refused at the limit of pending timeouts"
        );
    }
}

#[cold]
fn warn_of_backlog(shared: &Shared, passes: u64) {
    let timer = shared.name();
    warning!(
        [timer = timer, passes = passes],
        "{timer}: {passes} passes left timeouts in the queue: more arrive than one pass files"
    );
}
