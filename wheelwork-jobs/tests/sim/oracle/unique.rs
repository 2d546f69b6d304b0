//! Rules for jobs that are unique for a period.

use super::{Oracle, Rule};
use std::time::Duration;

/// A call that stores a job unless the same was stored in the period.
#[derive(Clone, Debug)]
pub(super) struct UniqueCall {
    mark: u8,
    job: u32,
    /// In microseconds.
    period: u64,
    called: (Duration, u64),
    returned: Option<(u64, UniqueAnswer)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UniqueAnswer {
    Stored,
    /// This one has the mark.
    Existing(u32),
    /// Its transaction was rolled back.
    Undone,
    /// Nobody knows whether it is stored.
    Failed,
}

impl Oracle {
    /// Somebody stores a unique job. `clock` is what the database's clock shows. Returns the number of the call.
    pub(crate) fn calls_unique(
        &mut self,
        mark: u8,
        job: u32,
        period: Duration,
        now: Duration,
        clock: u64,
    ) -> usize {
        let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        self.unique.push(UniqueCall { mark, job, period, called: (now, clock), returned: None });
        self.unique.len() - 1
    }

    /// The answer, and what the clock showed when the statement had its answer.
    pub(crate) fn unique_returned(&mut self, call: usize, answer: UniqueAnswer, clock: u64) {
        self.unique[call].returned = Some((clock, answer));
        let call = self.unique[call].clone();
        match answer {
            UniqueAnswer::Stored => self.judge_unique(&call, clock),
            UniqueAnswer::Existing(other) => self.judge_existing(&call, other),
            UniqueAnswer::Undone | UniqueAnswer::Failed => {}
        }
    }

    /// Two that are stored with one mark are a period apart.
    fn judge_unique(&mut self, call: &UniqueCall, returned: u64) {
        let others: Vec<_> = self
            .unique
            .iter()
            .filter(|c| c.mark == call.mark && c.job != call.job)
            .cloned()
            .collect();
        for other in others {
            let Some((other_returned, UniqueAnswer::Stored)) = other.returned else { continue };
            let first = call.called.0.min(other.called.0);
            let apart = returned >= other.called.1 + other.period
                || other_returned >= call.called.1 + call.period;
            if !apart && !self.clock.since(first) {
                let what =
                    format!("the jobs {} and {} were stored in one period", other.job, call.job);
                self.violated(Rule::NotUnique, what);
            }
        }
    }

    /// What keeps another one out was stored, and its period was not over.
    fn judge_existing(&mut self, call: &UniqueCall, other: u32) {
        let known = self.unique.iter().find(|c| c.job == other && c.mark == call.mark);
        let wrong = match known.map(|known| (known, known.returned)) {
            None => Some("which nobody has stored"),
            Some((_, Some((_, UniqueAnswer::Existing(_) | UniqueAnswer::Undone)))) => {
                Some("which was not stored")
            }
            Some((known, Some((returned, UniqueAnswer::Stored))))
                if returned + known.period < call.called.1 && !self.clock.since(known.called.0) =>
            {
                Some("whose period was over")
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            let what = format!("job {} was kept out by job {other}, {wrong}", call.job);
            self.violated(Rule::KeptOut, what);
        }
    }
}
