//! Groups: a job that runs when others have ended. It is stored with the ids of those, and its node looks up which of
//! them are still stored. So the members cost nothing more than other jobs, no counter has to be kept right, and no
//! row is locked by all of them. When a node looks again, the store decides.

use crate::job::{JobId, NewJob};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// A set of jobs, for another one that runs when all of them have ended.
///
/// Store that one, which [`then`](Self::then) returns, in the same transaction as the members: by
/// [`schedule_in`](crate::Jobs::schedule_in). Or store all of them with [`schedule_all`](crate::Jobs::schedule_all),
/// which stores the last job after the members, and refuses it if one of them is refused. Or store the members before
/// it: if the process dies between, they run, and nothing follows.
///
/// A member has ended when it is not stored any more: it was done, or **cancelled**, or
/// [replaced](crate::Jobs::replace), or [pruned](crate::Jobs::prune). So a member that never was stored has ended, too.
/// A **dead** member has not ended. It keeps the group waiting until it is revived and done, or cancelled. With
/// [`despite_dead`](Self::despite_dead) it counts as ended.
///
/// With [`Redb`](crate::Redb), the job is due when the last member ends. With [`Postgres`](crate::Postgres), its node
/// looks from time to time. After the last member has ended, the job begins within an eighth of the time since it was
/// stored (at least 0.2 s, at most 30 s), plus the usual lateness. Each look costs as much as a retry, and counts
/// towards the [rate](crate::Kind::rate) of the kind. A look is no run: of the metrics, only
/// [`claimed`](crate::Metrics::claimed) counts it. The job's own due time counts, too: no look comes before it.
///
/// ```
/// # use wheelwork_jobs::{Group, Job, Jobs, NewJob, Redb};
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Redb::in_memory()?;
/// # let handle = |_: Job<u32, Redb>| async { Ok::<_, String>(()) };
/// # let builder = Jobs::builder(store.clone()).handle("part", handle).handle("sum", handle);
/// # let jobs = builder.open().await?;
/// let parts: Vec<NewJob> = (0..100).map(|n| NewJob::new("part", &n)).collect::<Result<_, _>>()?;
/// let sum = Group::of(&parts).then(NewJob::new("sum", &17)?)?;
///
/// let transaction = store.begin_write().await?;
/// for job in parts.iter().chain([&sum]) {
///     jobs.schedule_in(&transaction, job).await?;
/// }
/// transaction.commit().await?;
/// # while jobs.metrics().done < 101 { tokio::time::sleep(std::time::Duration::from_millis(5)).await }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    members: Vec<JobId>,
    despite_dead: bool,
    /// A member that is unique for a period.
    unique: Option<JobId>,
    /// A member that is periodic.
    periodic: Option<JobId>,
}

/// No job can wait for these members. The job comes back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A member is [unique for a period](NewJob::unique_for), so it may never be stored.
    #[error(
        "the member {member} is unique for a period, so another job may stand for it: expected `Group::of_ids` \
         with the id that was returned when it was stored"
    )]
    Unique {
        /// The member.
        member: JobId,
        /// The refused job.
        job: Box<NewJob>,
    },
    /// A member is periodic.
    #[error("the member {member} is periodic, so it never ends")]
    Periodic {
        /// The member.
        member: JobId,
        /// The refused job.
        job: Box<NewJob>,
    },
    /// The job is the last of another group already.
    #[error("the job {} is the last of another group: expected one group with all members, or a group of groups", .job.id)]
    Last {
        /// The refused job.
        job: Box<NewJob>,
    },
    /// The payload is too long with the ids of the members.
    #[error(
        "{members} members make a payload of {bytes} bytes: expected at most {}; make a group of groups",
        NewJob::LONGEST_PAYLOAD
    )]
    Long {
        /// How many there are.
        members: usize,
        /// The length.
        bytes: usize,
        /// The refused job.
        job: Box<NewJob>,
    },
}

impl Group {
    /// These jobs.
    pub fn of<'a>(members: impl IntoIterator<Item = &'a NewJob>) -> Self {
        let mut group = Self::of_ids([]);
        for job in members {
            group.members.push(job.id);
            group.unique = group.unique.or(job.unique_for.map(|_| job.id));
            group.periodic = group.periodic.or(job.is_periodic.then_some(job.id));
        }
        group
    }

    /// The stored jobs with these ids, which [`schedule`](crate::Jobs::schedule) or
    /// [`schedule_in`](crate::Jobs::schedule_in) has returned. So a job that is
    /// [unique for a period](NewJob::unique_for) can be a member: its id is that of the job that stands for it, and
    /// when that job has ended, the member has.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork_jobs::{Group, Jobs, NewJob, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let jobs = Jobs::open(Redb::in_memory()?).await?;
    /// let mut ids = Vec::new();
    /// for table in ["customers", "orders"] {
    ///     let export = NewJob::new("export", &table)?.unique_for(Duration::from_secs(3600));
    ///     ids.push(jobs.schedule(export).await?);
    /// }
    /// jobs.schedule(Group::of_ids(ids).then(NewJob::new("report", &())?)?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_ids(members: impl IntoIterator<Item = JobId>) -> Self {
        let members: Vec<_> = members.into_iter().collect();
        let periodic = members.iter().copied().find(|id| id.is_periodic());
        Self { members, despite_dead: false, unique: None, periodic }
    }

    /// Lets dead members count as ended.
    pub fn despite_dead(mut self) -> Self {
        self.despite_dead = true;
        self
    }

    /// The job that runs when all members have ended. Its id differs from that of `job`. It may be a member of
    /// another group. If it is [unique for a period](NewJob::unique_for), give it a key: without one, its members are
    /// compared too, so the last jobs of two groups are never the same.
    ///
    /// # Errors
    ///
    /// If a member is periodic. If a member is unique for a period, unless its [id is given](Self::of_ids). If the job
    /// is the last of another group already: make one group with all members, or a group of groups. Or if the payload
    /// is too long with the ids of the members. Each has 32 bytes, so about 8,000 members are possible. Make a group of
    /// groups for more.
    pub fn then(self, job: NewJob) -> Result<NewJob, GroupError> {
        let Self { members: ids, despite_dead, unique, periodic } = self;
        let job = Box::new(job);
        if let Some(member) = periodic {
            return Err(GroupError::Periodic { member, job });
        }
        if let Some(member) = unique {
            return Err(GroupError::Unique { member, job });
        }
        if job.id.is_of_group() {
            return Err(GroupError::Last { job });
        }
        let mut members = String::with_capacity(32 * ids.len());
        for id in &ids {
            let _ = write!(members, "{:032x}", id.as_u128()); // a string takes all that is written
        }
        let payload = &job.payload;
        let payload = format!(
            r#"{{"members":"{members}","despite_dead":{despite_dead},"payload":{payload}}}"#
        );
        if payload.len() > NewJob::LONGEST_PAYLOAD {
            let (members, bytes) = (ids.len(), payload.len());
            return Err(GroupError::Long { members, bytes, job });
        }
        Ok(NewJob { id: job.id.of_group(), payload, ..*job })
    }
}

/// The members of the group whose last job this is. None of another job.
pub(crate) fn members_of(job: &NewJob) -> Vec<JobId> {
    let read = job.id.is_of_group().then(|| Members::parse(&job.payload)).flatten();
    read.map_or_else(Vec::new, |(members, _)| members.ids.to_vec())
}

/// What the last job of a group waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Members {
    /// These jobs.
    pub ids: Arc<[JobId]>,
    /// Whether those that are dead have ended.
    pub despite_dead: bool,
}

impl Members {
    /// Whether a member has ended that is stored and dead or not, or is not stored.
    pub(crate) fn has_ended(&self, stored_dead: Option<bool>) -> bool {
        stored_dead.is_none_or(|dead| dead && self.despite_dead)
    }

    /// Reads what is stored. `None` and the payload if it is not the job of a group.
    pub(crate) fn read(id: JobId, payload: String) -> Result<(Option<Self>, String), String> {
        if !id.is_of_group() {
            return Ok((None, payload));
        }
        let unreadable = || "the members of a group: expected to be readable".to_owned();
        Self::parse(&payload).map(|(members, own)| (Some(members), own)).ok_or_else(unreadable)
    }

    fn parse(payload: &str) -> Option<(Self, String)> {
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(payload).ok()?;
        let hex: String = serde_json::from_str(fields.get("members")?.get()).ok()?;
        let member = |start| u128::from_str_radix(hex.get(start..start + 32)?, 16).ok();
        let ids: Option<_> =
            (0..hex.len()).step_by(32).map(|start| member(start).map(JobId::from_u128)).collect();
        let despite_dead = serde_json::from_str(fields.get("despite_dead")?.get()).ok()?;
        let own = fields.remove("payload")?;
        Some((Self { ids: ids?, despite_dead }, Box::<str>::from(own).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(n: u32) -> NewJob {
        NewJob::new("n", &n).unwrap()
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let members: Vec<_> = (0..3).map(new).collect();
        let then = Group::of(&members).then(new(7)).unwrap();
        let (read, payload) = Members::read(then.id, then.payload).unwrap();
        assert_eq!(payload, "7");
        let ids: Vec<_> = members.iter().map(NewJob::id).collect();
        assert_eq!(*read.unwrap().ids, *ids);
        let (none, payload) = Members::read(members[0].id, "7".to_owned()).unwrap();
        assert!(none.is_none() && payload == "7");
        for broken in ["7", "{}", r#"{"members":"12","despite_dead":false,"payload":1}"#] {
            assert!(Members::read(then.id, broken.to_owned()).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_group_waits_for_all_but_the_dead_if_it_may() {
        for despite_dead in [false, true] {
            let members = Members { ids: [].into(), despite_dead };
            let ended = [None, Some(false), Some(true)].map(|dead| members.has_ended(dead));
            assert_eq!(ended, [true, false, despite_dead]);
        }
    }

    #[test]
    fn too_many_members_are_refused() {
        let member = new(0);
        let group = |n: usize| Group::of(std::iter::repeat_n(&member, n)).then(new(1));
        assert!(group(8_000).is_ok());
        assert!(group(8_200).unwrap_err().to_string().contains("262144"));
    }
}
