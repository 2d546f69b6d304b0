//! What can go wrong.

use crate::job::{JobId, NewJob};
use crate::json::JsonError;
use crate::store::{Insertion, StoreError};
use std::time::Duration;

/// A job was not scheduled. The job comes back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A stored job has its key.
    #[error(
        "a stored job already has the key {:?}",
        .job.unique_key().unwrap_or_default()
    )]
    KeyTaken {
        /// The refused job.
        job: Box<NewJob>,
    },
    /// This very job is stored: it was scheduled before, and has not ended. Nothing was changed.
    #[error("job {} is already stored", .job.id())]
    AlreadyStored {
        /// The job.
        job: Box<NewJob>,
    },
    /// The key has more than [`NewJob::LONGEST_KEY`] bytes.
    #[error(
        "a key of {} bytes: expected at most {}",
        .job.unique_key().map_or(0, str::len),
        NewJob::LONGEST_KEY
    )]
    LongKey {
        /// The refused job.
        job: Box<NewJob>,
    },
    /// The same call has refused a member of its group.
    #[error("job {} waits for {member}, which was refused", .job.id())]
    MemberRefused {
        /// The refused job.
        job: Box<NewJob>,
        /// The member.
        member: JobId,
    },
    /// This `Jobs` is stopped.
    #[error("the jobs are stopped")]
    Stopped {
        /// The refused job.
        job: Box<NewJob>,
    },
    /// This `Jobs` has died, as [`Jobs::health`](crate::Jobs::health) reports.
    #[error("the jobs have died: {reason}")]
    Died {
        /// The refused job.
        job: Box<NewJob>,
        /// What has happened.
        reason: String,
    },
    /// The store failed, or an open transaction holds the key for too long. If [`StoreError::is_undone`], the job is
    /// not stored, and can be scheduled again. Otherwise nobody knows: it may have run already, and then it runs once
    /// more if you schedule it again.
    #[error("{source}")]
    Store {
        /// The job.
        job: Box<NewJob>,
        /// Why.
        source: StoreError,
    },
}

impl ScheduleError {
    /// What the one who schedules a job is told.
    pub(crate) fn of(insertion: Insertion, job: NewJob) -> Result<JobId, Self> {
        let job = Box::new(job);
        Err(match insertion {
            Insertion::Stored(_) => return Ok(job.id),
            Insertion::Existing(id) => return Ok(id),
            Insertion::AlreadyStored => Self::AlreadyStored { job },
            Insertion::KeyTaken => Self::KeyTaken { job },
            Insertion::Busy => Self::Store { job, source: StoreError::busy() },
            Insertion::Refused(source) => Self::Store { job, source },
        })
    }

    /// The job that was not scheduled.
    pub fn into_job(self) -> NewJob {
        match self {
            Self::KeyTaken { job }
            | Self::AlreadyStored { job }
            | Self::LongKey { job }
            | Self::MemberRefused { job, .. }
            | Self::Stopped { job }
            | Self::Died { job, .. }
            | Self::Store { job, .. } => *job,
        }
    }
}

/// A job was not completed in a transaction. Roll the transaction back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompleteError {
    /// It was cancelled, rescheduled or taken over.
    #[error("job {id} is no longer claimed by this run")]
    Lost {
        /// The job.
        id: JobId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A result was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// It cannot be stored as JSON.
    #[error("the result cannot be stored: {0}")]
    Json(#[from] JsonError),
    /// It is too long.
    #[error("a result of {bytes} bytes: expected at most 16384")]
    Long {
        /// Its length.
        bytes: usize,
    },
}

/// `Jobs` did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Two handlers have the same kind.
    #[error("two handlers for the kind {kind:?}")]
    TwoHandlers {
        /// The kind.
        kind: String,
    },
    /// No job can have this kind.
    #[error("a handler for the kind {kind:?}, which contains a NUL character")]
    NulInKind {
        /// The kind.
        kind: String,
    },
    /// No job of the kind could run.
    #[error("the concurrency of the kind {kind:?} must be greater than zero")]
    NoConcurrency {
        /// The kind.
        kind: String,
    },
    /// A node looks for jobs every third of the liveness. Jobs that it does not claim then are late.
    #[error("a window of {window:?}: expected at least half of the liveness of {liveness:?}")]
    WindowTooShort {
        /// The window that was given.
        window: Duration,
        /// The liveness that was given.
        liveness: Duration,
    },
    /// A node could not keep such a promise.
    #[error("a liveness of {liveness:?}: expected at least 100 ms")]
    LivenessTooShort {
        /// The liveness that was given.
        liveness: Duration,
    },
    /// The tables are missing, and `create_tables` is off.
    #[error("the store has no tables for jobs")]
    NoTables,
    /// The tables have an older version, and were not to be changed.
    #[error(
        "tables of jobs of version {found}: expected version {known}, which a node or \
         `wheelwork-jobs migrate` makes of them"
    )]
    OlderTables {
        /// The version of the tables.
        found: u32,
        /// The version of this crate.
        known: u32,
    },
    /// A newer version of this crate has changed the tables.
    #[error(
        "tables of jobs of version {found}: expected at most version {known}, which this version of \
         wheelwork-jobs knows"
    )]
    NewerTables {
        /// The version of the tables.
        found: u32,
        /// The version of this crate.
        known: u32,
    },
    /// `open` was called outside a tokio runtime.
    #[error("no tokio runtime: call `open` in the one that is to run the handlers")]
    NoRuntime,
    /// The timer did not start.
    #[error(transparent)]
    Timer(#[from] wheelwork::BuildError),
    /// The node's thread did not start.
    #[error("the node's thread did not start: {0}")]
    Thread(std::io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The jobs did not stop cleanly. The other nodes take over what this one held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// They were stopped before.
    #[error("the jobs are already stopped")]
    Stopped,
    /// They have died, as [`Jobs::health`](crate::Jobs::health) reports.
    #[error("the jobs have died: {reason}")]
    Died {
        /// What has happened.
        reason: String,
    },
    /// The claims were not given back. Others take them over when this node's liveness lapses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A part of the jobs has panicked, or the runtime of their handlers has ended. They are stopped.
#[derive(Debug, thiserror::Error)]
#[error("the jobs have died: {reason}")]
pub struct DiedError {
    pub(crate) reason: String,
}
