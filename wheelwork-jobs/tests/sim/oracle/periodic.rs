//! Rules for periodic jobs. Their occurrences are the multiples of a period, by the database's clock.

use super::{Answer, Begin, Change, Job, Oracle, Row, Rule, Run, RunEnd};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a job recurs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recurs {
    /// In microseconds.
    period: u64,
    /// Occurrences that are later than this are skipped.
    skips: Option<Duration>,
    /// What the database's clock showed when it was seen first that it is stored.
    since: u64,
}

impl Recurs {
    fn next_after(self, clock: u64) -> u64 {
        (clock / self.period + 1) * self.period
    }
}

impl Oracle {
    /// Somebody stores a job that recurs.
    pub(crate) fn recurs(
        &mut self,
        job: u32,
        period: Duration,
        skips: Option<Duration>,
        clock: u64,
    ) {
        let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        self.job(job).recurs.get_or_insert(Recurs { period, skips, since: clock });
    }

    /// It is stored by now.
    pub(crate) fn recurs_since(&mut self, number: u32, now: Duration, clock: u64) {
        let job = self.job(number);
        if let (Some(recurs), None) = (&mut job.recurs, job.stored) {
            (recurs.since, job.stored) = (clock, Some(now));
        }
    }

    /// The number of the occurrence for which a run with this due time stands.
    pub(crate) fn occurrence(&self, job: u32, due: u64) -> Option<u64> {
        Some(due / self.jobs.get(&job)?.recurs?.period)
    }

    /// Handlers have completed the occurrence of a job in `times` transactions. Each move gives it one more.
    pub(crate) fn completed_occurrence(&mut self, job: u32, occurrence: u64, times: usize) {
        self.job(job).completed.insert(occurrence);
        let moves = self.job(job).changes.iter().filter(|c| may_be_true(c)).count();
        if times > 1 + moves {
            let what = format!("occurrence {occurrence} of job {job} was completed {times} times");
            self.violated(Rule::Doubled, what);
        }
    }

    /// A run is of the next occurrence, and the last one is over: its handler may go on after its commit.
    pub(super) fn is_next_occurrence(job: &Job, last: &Run, due: u64) -> bool {
        job.recurs.is_some_and(|recurs| {
            let is_over =
                last.ended.is_some() || job.completed.contains(&(last.due / recurs.period));
            due > last.due && is_over
        })
    }

    /// No occurrence is left out. After a run that was done, the next one is that which follows its begin. After a
    /// failure, or if the job skips what is late, that which follows the end of the run.
    pub(super) fn judge_skipped(&mut self, begin: &Begin, now: Duration) {
        let Begin { job: number, due, .. } = *begin;
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(latest) = self.latest_due(job).filter(|_| job.stored.is_some()) else { return };
        let from = job.runs.last().map_or(Duration::ZERO, |run| run.begun);
        let from = from.saturating_sub(2 * self.limits.liveness);
        let skips = job.recurs.is_some_and(|recurs| recurs.skips.is_some());
        let failed =
            job.runs.last().and_then(|run| run.ended).is_some_and(|(_, end)| end != RunEnd::Done);
        // Nobody had time for what was skipped, or the end of the run was stored late: also if a node's connections were
        // forgotten, each of which is tried for half a second.
        let forgotten = self.hearing.values().any(|hearing| hearing.since(from));
        let slow = self.fault.since(from) || forgotten || job.locked.since(from);
        let busy = (skips || failed) && slow;
        if due > latest && !busy && !self.clock.since(from) {
            let by = Duration::from_micros(due - latest);
            self.violated(Rule::Skipped, format!("job {number} at {now:?}: {by:?} too far"));
        }
    }

    /// What is too late does not begin, as far as its node knows the time.
    pub(super) fn judge_belated(&mut self, begin: &Begin, now: Duration) {
        let Begin { job: number, due, clock, decided, .. } = *begin;
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(skips) = job.recurs.and_then(|recurs| recurs.skips) else { return };
        // A move keeps the attempts of a run whose end was not stored yet: then this is a retry.
        let begun = job.runs.last().map_or(Duration::ZERO, |run| run.begun);
        let since = |c: &Change| c.returned.is_none_or(|(at, _)| at >= begun);
        if job.changes.iter().any(|change| may_be_true(change) && since(change)) {
            return;
        }
        let late = Duration::from_micros(clock.saturating_sub(due)).saturating_sub(now - decided);
        // The same attempt may run again, if its end was not stored.
        let is_done = |run: &&Run| matches!(run.ended, Some((_, RunEnd::Done)));
        let mut before = job.runs.iter().rev().skip_while(|run| run.due == due && is_done(run));
        let is_retry = before.next().is_some_and(|run| !is_done(&run));
        let unsure = self.limits.call + self.limits.slack;
        let clock_set = self.clock.since(now.saturating_sub(self.limits.liveness + unsure));
        if late > skips + unsure && !is_retry && !clock_set {
            self.violated(Rule::Belated, format!("job {number} ran {late:?} late at {now:?}"));
        }
    }

    /// The latest due time that the next run of a periodic job can have. `None` while it runs.
    fn latest_due(&self, job: &Job) -> Option<u64> {
        let recurs = job.recurs?;
        // A retry is counted from when the store has the end of the run.
        let retry = self.limits.retry + self.limits.call + self.limits.slack;
        let retry = u64::try_from(retry.as_micros()).unwrap_or(u64::MAX);
        let after_last = match job.runs.last() {
            None => recurs.next_after(recurs.since),
            Some(run) => {
                let (_, end) = run.ended?;
                let ended = run.clock.1.max(run.due);
                match end {
                    RunEnd::Done if recurs.skips.is_some() => recurs.next_after(ended),
                    RunEnd::Done => recurs.next_after(run.clock.0.max(run.due)),
                    RunEnd::Failed | RunEnd::Killed => recurs.next_after(ended).max(ended + retry),
                }
            }
        };
        let moved = job.changes.iter().filter(|c| may_be_true(c)).filter_map(|c| c.due);
        Some(moved.fold(after_last, u64::max))
    }

    /// The next run of a periodic job is late.
    pub(super) fn late_occurrence(
        &self,
        job: &Job,
        now: Duration,
        clock: u64,
    ) -> Option<(Rule, String)> {
        let recurs = job.recurs?;
        if self.pause.under_way || job.changes.iter().any(|c| c.returned.is_none()) {
            return None;
        }
        let due = self.latest_due(job)?;
        let due = now.checked_sub(Duration::from_micros(clock.checked_sub(due)?))?;
        // What was set back or moved is counted from then.
        let begin = [job.locked.0, self.clock.0].into_iter().flatten();
        let begin = begin.fold(due.max(job.stored?), Duration::max);
        let skipped = if recurs.skips.is_some() {
            2 * Duration::from_micros(recurs.period)
        } else {
            Duration::ZERO
        };
        let (begin, most) = if self.fault.since(begin.saturating_sub(self.limits.late())) {
            (begin.max(self.fault.0.unwrap_or_default()), self.limits.late())
        } else {
            (begin, self.limits.late_when_well())
        };
        let by = now.checked_sub(begin)?;
        (by > most + skipped).then(|| (Rule::Late, format!("its occurrence is late by {by:?}")))
    }

    /// A periodic job stays.
    pub(super) fn judge_periodic_end(&mut self, rows: &BTreeMap<u32, Row>) {
        let lost = |(number, job): &(&u32, &Job)| {
            job.recurs.is_some() && job.stored.is_some() && !rows.contains_key(number)
        };
        if let Some(number) = self.jobs.iter().find(lost).map(|(number, _)| *number) {
            self.violated(Rule::Lost, format!("the periodic job {number} is gone"));
        }
    }
}

fn may_be_true(change: &Change) -> bool {
    change.returned.is_none_or(|(_, answer)| answer != Answer::False)
}
