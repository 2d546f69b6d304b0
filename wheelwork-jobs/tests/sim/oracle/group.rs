//! Rules for groups.

use super::{Job, Oracle, Row, Rule};
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two looks: an eighth of the age of the group, within this.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

impl Oracle {
    /// A job runs when these have ended.
    pub(crate) fn follows(&mut self, job: u32, members: Vec<u32>) {
        self.job(job).members = members;
    }

    /// The handler of a job begins. All members must be gone from the store.
    pub(crate) fn judge_group(&mut self, number: u32, rows: &BTreeMap<u32, Row>, now: Duration) {
        let members = &self.job(number).members;
        if let Some(member) = members.iter().find(|member| rows.contains_key(member)) {
            let what = format!("job {number} ran at {now:?}, and its member {member} is stored");
            self.violated(Rule::TooSoon, what);
        }
    }

    /// Since when all members of its group have been gone, and the next look must have been. `None` if they are
    /// not all gone.
    pub(super) fn group_since(&self, job: &Job) -> Option<Duration> {
        let mut since = Duration::ZERO;
        for member in &job.members {
            let Some(member) = self.jobs.get(member).filter(|member| member.stored.is_some())
            else {
                continue;
            };
            since = since.max(member.gone?);
        }
        let age = since.saturating_sub(job.stored.unwrap_or_default());
        Some(if job.members.is_empty() { since } else { since + (age / 8).clamp(PAUSE.0, PAUSE.1) })
    }
}
