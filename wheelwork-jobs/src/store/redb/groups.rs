//! The last jobs of groups that wait for members, in memory alone.
//!
//! Such a job is due and free, and no node may claim it. It waits for the first member that has not ended. The change
//! that ends this one looks for the next; with none left, the job becomes due now: so a node looks twice, and each
//! member is read three times, however long the group lasts. A member that has ended may be stored again, or revived.
//! So the node that claims the job reads all members once more, and the job may wait again. So does the last job of a
//! member that has ended in a transaction which is rolled back.
//!
//! A process that ends forgets what waits, and so does a commit that fails: a job would wait for a member that was
//! not stored after all. Then its node looks again.

use crate::group::Members;
use crate::job::JobId;
use ::redb::Error;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

#[derive(Default)]
pub(super) struct Groups {
    waiting: HashMap<JobId, Waiting>,
    /// Which of them wait for a job.
    by_member: HashMap<JobId, Vec<JobId>>,
}

struct Waiting {
    members: Members,
    /// The one that it waits for. Those before it have ended.
    at: usize,
}

impl Groups {
    /// Whether a job waits for members.
    pub(super) fn waits(&self, job: JobId) -> bool {
        self.waiting.contains_key(&job)
    }

    /// Lets a job wait, if there is a member from `at` on that has not ended. False if not. Asks whether jobs are dead,
    /// which is `None` if they are not stored.
    pub(super) fn wait(
        &mut self,
        job: JobId,
        members: Members,
        mut at: usize,
        is_dead: impl Fn(JobId) -> Result<Option<bool>, Error>,
    ) -> Result<bool, Error> {
        while let Some(&member) = members.ids.get(at) {
            if !members.has_ended(is_dead(member)?) {
                self.by_member.entry(member).or_default().push(job);
                self.waiting.insert(job, Waiting { members, at });
                return Ok(true);
            }
            at += 1;
        }
        Ok(false)
    }

    /// A job may have ended. Returns those that have waited for it, and wait no more.
    pub(super) fn ended(
        &mut self,
        member: JobId,
        is_dead: impl Fn(JobId) -> Result<Option<bool>, Error>,
    ) -> Result<Vec<JobId>, Error> {
        let mut free = Vec::new();
        for job in self.by_member.remove(&member).unwrap_or_default() {
            if let Some(Waiting { members, at }) = self.waiting.remove(&job)
                && !self.wait(job, members, at, &is_dead)?
            {
                free.push(job);
            }
        }
        Ok(free)
    }

    /// A job waits no more: it was moved or deleted.
    pub(super) fn forget(&mut self, job: JobId) {
        let Some(Waiting { members, at }) = self.waiting.remove(&job) else { return };
        if let Entry::Occupied(mut jobs) = self.by_member.entry(members.ids[at]) {
            jobs.get_mut().retain(|other| *other != job);
            if jobs.get().is_empty() {
                jobs.remove();
            }
        }
    }

    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }
}
