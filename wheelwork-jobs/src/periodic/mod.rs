//! Periodic jobs. A periodic job is one row, and its payload says when it recurs. The step of the store that
//! ends a run moves the row to the next occurrence. So no occurrence is lost between two steps, and none is
//! there twice.
//!
//! - `cron`: the rule, an expression in a time zone
//!
//! The next occurrence follows from the rule and the start of the run, or its end after a failure or where late ones
//! are skipped, whatever node asks.

#[cfg(feature = "cron")]
mod cron;

#[cfg(feature = "cron")]
pub use self::cron::{Periodic, PeriodicError};

#[cfg(feature = "cron")]
use self::cron::Rule;
use crate::host;
use crate::job::JobId;
use crate::time::Timestamp;
use std::time::{Duration, Instant};

/// Without the feature, there is none.
#[cfg(not(feature = "cron"))]
enum Rule {}

#[cfg(not(feature = "cron"))]
impl Rule {
    fn read(_: &str) -> Result<(Self, String), String> {
        Err("a periodic job: expected a node with the feature `cron`".to_owned())
    }

    fn next_after(&self, _: Timestamp) -> Option<Timestamp> {
        match *self {}
    }

    fn skip_later_than(&self) -> Option<Duration> {
        match *self {}
    }
}

/// How a job that runs recurs.
pub(crate) struct Repetition {
    rule: Rule,
    /// When the run began, by the database's clock, and not before it was due.
    began: Timestamp,
    at: Instant,
}

impl Repetition {
    /// Reads what is stored of a job that begins. `None` and the payload if it is not periodic. Somebody may have
    /// set the clock back since the job was due: its occurrence must not come again.
    pub(crate) fn read(
        id: JobId,
        payload: String,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<(Option<Self>, String), String> {
        if !id.is_periodic() {
            return Ok((None, payload));
        }
        let (rule, payload) = Rule::read(&payload)?;
        Ok((Some(Self { rule, began: now.max(due), at: host::now() }), payload))
    }

    /// Whether this occurrence is too late to run.
    pub(crate) fn is_missed(&self, due: Timestamp) -> bool {
        self.rule.skip_later_than().is_some_and(|late| self.began.since(due) > late)
    }

    /// The next occurrence after a run that was done. The run stands for all that were missed before it
    /// began. `None` if there is no further one.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        match self.rule.skip_later_than() {
            Some(_) => self.next_in_future(),
            None => self.rule.next_after(self.began),
        }
    }

    /// The next occurrence from now. After a failure nothing is made up for, or it would fail without a pause.
    pub(crate) fn next_in_future(&self) -> Option<Timestamp> {
        self.rule.next_after(self.now())
    }

    /// The next occurrence, if it comes before a retry after this delay.
    pub(crate) fn next_before(&self, retry: Option<Duration>) -> Option<Timestamp> {
        let retry = retry.map(|delay| self.now().after(delay));
        self.next_in_future().filter(|next| retry.is_none_or(|retry| *next <= retry))
    }

    fn now(&self) -> Timestamp {
        self.began.after(host::elapsed(self.at))
    }
}

#[cfg(all(test, feature = "cron"))]
mod tests {
    use super::*;
    use crate::job::NewJob;

    const fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn an_occurrence_does_not_come_again_when_the_clock_is_set_back() {
        let job = NewJob::new("n", &7).unwrap().key("n");
        let each_minute = Periodic::cron(job, "* * * * *", "UTC").unwrap();
        let start = Timestamp::from_micros(1_800_000_000_000_000);
        let stored = each_minute.to_job(start).unwrap();
        let due = start.after(s(60));
        for (now, next) in [(due, 120), (due.before(s(30)), 120), (due.after(s(90)), 180)] {
            let read = Repetition::read(stored.id, stored.payload.clone(), due, now).unwrap();
            let repetition = read.0.unwrap();
            assert_eq!(repetition.next(), Some(start.after(s(next))));
            assert_eq!(repetition.next_in_future(), Some(start.after(s(next))));
        }
    }
}
