//! Warnings of refusals, of a backlog, and of timeouts that run late.
//!
//! Each pass compares the counters with those of the last warning. The worker warns at most once per
//! second of the timer's clock, so trouble that lasts does not flood the log. A warning has everything
//! since the last one, and the end of the timer warns of the rest. Without the features `log` and
//! `tracing`, no warning reaches anybody, and the compiler drops this file's code.
//!
//! A warning of a single event, such as a task that panicked, is where that happens.

use super::Worker;
use crate::base::logging::{WARNS, warning};
use crate::metrics::{Count, WorkerCounts};
use crate::timeout::Shared;
use std::time::Duration;

/// The shortest time between two rounds of warnings, of whatever kind, in nanoseconds.
const ALL_WARNINGS_EVERY: u64 = 1_000_000_000;

/// The worker warns of a timeout that is late by this number of ticks or more.
const LATE_TICKS: u64 = 10;

/// It does not warn of less lateness than this, however short the tick is.
const LATE_AT_LEAST: u64 = 100_000_000;

/// The counts at the last warning, and the greatest lateness since.
#[derive(Default)]
pub(super) struct Warnings {
    /// The refused jobs, the timeouts that were refused at the limit, and the passes with a backlog.
    last: [u64; 3],
    /// The greatest lateness since the last warning, in nanoseconds.
    latest: u64,
    /// The time before which there is no warning.
    not_before: u64,
}

impl Warnings {
    /// Notes the lateness of a timeout.
    #[inline]
    pub(super) fn late_by(&mut self, nanos: u64) {
        if WARNS {
            self.latest = self.latest.max(nanos);
        }
    }
}

impl<W> Worker<W> {
    /// Warns of what has happened since the last warning, at the end of a pass.
    #[inline]
    pub(super) fn warn(&mut self) {
        if WARNS && self.known >= self.warnings.not_before {
            self.warn_of_trouble();
        }
    }

    /// Warns of the rest, at the end of the timer.
    pub(super) fn warn_of_rest(&mut self) {
        if WARNS {
            self.warn_of_trouble();
        }
    }

    fn warn_of_trouble(&mut self) {
        let Self { control, warnings, known, .. } = self;
        let shared = &control.shared;
        let late_from = shared.gate.scale.start_of(LATE_TICKS).max(LATE_AT_LEAST);
        let late = Some(std::mem::take(&mut warnings.latest)).filter(|&nanos| nanos >= late_from);
        let WorkerCounts { refused, over_limit, passes_with_backlog, .. } = &shared.counts.worker;
        let now = [refused, over_limit, passes_with_backlog].map(Count::get);
        let last = std::mem::replace(&mut warnings.last, now);
        let [refused, over_limit, passes_with_backlog] = std::array::from_fn(|n| now[n] - last[n]);
        if late.is_none() && refused + over_limit + passes_with_backlog == 0 {
            return;
        }
        warnings.not_before = known.saturating_add(ALL_WARNINGS_EVERY);
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
