//! Jobs: a new one, and a stored one.

use crate::json::{self, JsonError};
use crate::time::{Timestamp, micros_up};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// Identifies a job: a UUID. Those of new jobs are of version 7, so that they are neighbours in an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u128);

impl JobId {
    fn new() -> Self {
        Self(Uuid::now_v7().as_u128())
    }

    /// The id with this number.
    pub fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// The id of a job of a group, of version 8.
    pub(crate) fn of_group(self) -> Self {
        Self(self.0 & !(0xf << 76) | 0x8 << 76)
    }

    pub(crate) fn is_of_group(self) -> bool {
        Uuid::from_u128(self.0).get_version_num() == 8
    }

    /// Whether it is a hash of a periodic job. New jobs have ids of version 7.
    pub(crate) fn is_periodic(self) -> bool {
        Uuid::from_u128(self.0).get_version_num() == 5
    }

    /// The number of the id.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.0), f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a [`JobId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a job id: expected a UUID")]
pub struct NoJobId(String);

impl FromStr for JobId {
    type Err = NoJobId;

    fn from_str(text: &str) -> Result<Self, NoJobId> {
        let uuid = Uuid::try_parse(text).map_err(|_| NoJobId(text.to_owned()))?;
        Ok(Self(uuid.as_u128()))
    }
}

/// When a job is due, by the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// This many microseconds after the database has received the job.
    After(u64),
    /// At this time.
    At(Timestamp),
}

impl When {
    /// About 5,000 years. A longer delay means this one.
    pub(crate) const LONGEST: u64 = 157_788_000_000_000_000;
}

impl From<Duration> for When {
    fn from(delay: Duration) -> Self {
        Self::After(micros_up(delay).min(Self::LONGEST))
    }
}

impl From<SystemTime> for When {
    fn from(due: SystemTime) -> Self {
        Self::At(due.into())
    }
}

/// A job to schedule: due at once, unless [`due`](Self::due) says otherwise.
///
/// It has its id from the start. If [`schedule`](crate::Jobs::schedule) fails without knowing whether the
/// job was stored, schedule the same `NewJob` again. If it was stored and has not ended, the error is
/// [`ScheduleError::AlreadyStored`](crate::ScheduleError::AlreadyStored), and you are done.
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork_jobs::NewJob;
/// let reminder = NewJob::new("reminder", &("anna", 17))?.due(Duration::from_secs(3600)).key("anna-17");
/// assert_eq!(reminder.kind(), "reminder");
/// # Ok::<(), wheelwork_jobs::PayloadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    pub(crate) id: JobId,
    pub(crate) kind: Arc<str>,
    pub(crate) key: Option<String>,
    pub(crate) when: When,
    pub(crate) payload: String,
    pub(crate) priority: u8,
    pub(crate) unique_for: Option<Duration>,
    /// Whether it is the job of a [`Periodic`](crate::Periodic), which is stored with another id.
    pub(crate) is_periodic: bool,
}

/// A key as it is stored: PostgreSQL has no NUL characters.
pub(crate) fn stored_key(key: &str) -> String {
    key.replace('\0', "")
}

impl NewJob {
    /// The longest kind, in bytes.
    pub const LONGEST_KIND: usize = 256;
    /// The longest unique key, in bytes.
    pub const LONGEST_KEY: usize = 512;
    /// The longest payload as JSON, in bytes. Jobs share statements, so one that is too large would
    /// make all of them fail. Keep large data elsewhere, and its name in the payload.
    pub const LONGEST_PAYLOAD: usize = 256 * 1024;
    /// The highest priority.
    pub const HIGHEST_PRIORITY: u8 = 9;

    /// A job for the handler of `kind`. The payload is stored as JSON.
    ///
    /// # Errors
    ///
    /// If the payload cannot be written as JSON, or could not be read back: it has numbers that are not finite, or more
    /// than 127 nested arrays and objects. Also if the payload or the kind is too long, or the kind contains a NUL
    /// character, which PostgreSQL cannot store.
    pub fn new(kind: &str, payload: &impl Serialize) -> Result<Self, PayloadError> {
        let fault = |fault| PayloadError { kind: kind.to_owned(), fault };
        if kind.contains('\0') {
            return Err(fault(PayloadFault::Nul));
        }
        let payload = json::write(payload).map_err(|error| fault(PayloadFault::Json(error)))?;
        if kind.len() > Self::LONGEST_KIND {
            return Err(fault(PayloadFault::LongKind(kind.len())));
        }
        if payload.len() > Self::LONGEST_PAYLOAD {
            return Err(fault(PayloadFault::LongPayload(payload.len())));
        }
        let when = When::After(0);
        Ok(Self {
            id: JobId::new(),
            kind: kind.into(),
            key: None,
            when,
            payload,
            priority: 0,
            unique_for: None,
            is_periodic: false,
        })
    }

    /// When it is due: a [`Duration`] is a delay from the moment at which the database gets the job, a
    /// [`SystemTime`] a time of the database's clock. A time in the past means at once. A time after the
    /// year 9999 means the end of that year.
    pub fn due(mut self, when: impl Into<When>) -> Self {
        self.when = when.into();
        self
    }

    /// A key that no other stored job may have. It is free again when the job has ended; a dead job keeps
    /// its key. NUL characters are removed. A key of more than [`LONGEST_KEY`](Self::LONGEST_KEY) bytes is
    /// refused by [`schedule`](crate::Jobs::schedule).
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(stored_key(&key.into()));
        self
    }

    /// How urgent it is among the jobs of its kind that are due: 0 by default, at most
    /// [`HIGHEST_PRIORITY`](Self::HIGHEST_PRIORITY). A greater number counts as that.
    ///
    /// A node claims the most urgent due jobs first, and begins the most urgent of those that it holds. Among
    /// equals, the earliest comes first. A node does not give back a claimed job for a more urgent one: while it
    /// holds [`most_held`](crate::Kind::most_held) jobs that are due, more urgent ones wait in the store. Nothing
    /// keeps a job from waiting for as long as there are more urgent ones. Kinds do not compete.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority.min(Self::HIGHEST_PRIORITY);
        self
    }

    /// Stores the job, unless one of the same kind and payload was stored with
    /// [`unique_for`](Self::unique_for) and its period is not over. Then [`schedule`](crate::Jobs::schedule) returns
    /// the id of that job, whatever has become of it: it may be done, or cancelled. A job with a [`key`](Self::key) is
    /// compared by kind and key, whatever its payload. A period begins when a job is stored.
    ///
    /// The id that is returned belongs to a job that was stored.
    ///
    /// Payloads are the same if their JSON is, byte by byte. [`replace`](crate::Jobs::replace) ignores this setting.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork_jobs::{Jobs, NewJob, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let jobs = Jobs::open(Redb::open(folder.path().join("jobs.redb"))?).await?;
    /// let welcome = |to: &str| NewJob::new("welcome", &to).map(|job| job.unique_for(Duration::from_secs(3600)));
    /// let first = jobs.schedule(welcome("anna")?).await?;
    /// assert_eq!(jobs.schedule(welcome("anna")?).await?, first);
    /// assert_ne!(jobs.schedule(welcome("bert")?).await?, first);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unique_for(mut self, period: impl Into<Option<Duration>>) -> Self {
        self.unique_for = period.into();
        self
    }

    pub(crate) fn has_long_key(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.len() > Self::LONGEST_KEY)
    }

    /// The id that it will have in the store.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The kind of job, which selects the handler.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The unique key, if it has one.
    pub fn unique_key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The payload as JSON.
    pub fn payload(&self) -> &str {
        &self.payload
    }
}

/// A job cannot be made of this kind and payload.
#[derive(Debug, thiserror::Error)]
#[error("cannot create a {kind:?} job: {fault}")]
#[non_exhaustive]
pub struct PayloadError {
    /// The kind.
    pub kind: String,
    /// Why.
    pub fault: PayloadFault,
}

/// Why a job cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadFault {
    /// The payload cannot be stored as JSON.
    #[error("the payload cannot be stored: {0}")]
    Json(JsonError),
    /// The kind contains a NUL character.
    #[error("the kind contains a NUL character")]
    Nul,
    /// The kind is too long: it has this many bytes.
    #[error("the kind has {0} bytes: expected at most {max}", max = NewJob::LONGEST_KIND)]
    LongKind(usize),
    /// The payload is too long: it has this many bytes.
    #[error("the payload has {0} bytes: expected at most {max}", max = NewJob::LONGEST_PAYLOAD)]
    LongPayload(usize),
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredJob {
    /// Its name.
    pub id: JobId,
    /// The kind of job.
    pub kind: String,
    /// Its unique key.
    pub key: Option<String>,
    /// When it is due, by the database's clock.
    pub due: SystemTime,
    /// The payload as JSON. That of a periodic job, or of a group's last one, is in the field `payload` of an
    /// object that also has the rule, or the members.
    pub payload: String,
    /// How urgent it is: from 0 to [`NewJob::HIGHEST_PRIORITY`]. 0 if it is done.
    pub priority: u8,
    /// How many attempts have failed.
    pub attempts: u32,
    /// Where it stands.
    pub state: State,
    /// The error of the last attempt that failed. A job that is done has none.
    pub error: Option<String>,
    /// When it was done, by the database's clock.
    pub done: Option<SystemTime>,
    /// The result of its run as JSON, if it is done.
    pub result: Option<String>,
    /// What its run has reported last, if it runs. Only [`get`](crate::Jobs::get) returns this.
    pub progress: Option<Progress>,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of parts that are done.
    pub done: u64,
    /// The number of all parts. 0 if nobody knows.
    pub of: u64,
    /// What it does.
    pub text: String,
}

impl Progress {
    /// The most characters of the text. Further ones are cut off.
    pub const LONGEST_TEXT: usize = 200;

    pub(crate) fn new(done: u64, of: u64, text: &str) -> Self {
        // PostgreSQL cannot store NUL, and no number beyond this.
        let text = text.chars().filter(|&c| c != '\0').take(Self::LONGEST_TEXT).collect();
        let most = i64::MAX.unsigned_abs();
        Self { done: done.min(most), of: of.min(most), text }
    }
}

/// Where a stored job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// No node has claimed it.
    Waiting,
    /// A node has claimed it: it is in the node's wheel, or it runs.
    Claimed,
    /// It is done, and its kind [keeps](crate::Kind::keep_done) it for a while.
    Done,
    /// Its attempts are used up. [`revive`](crate::Jobs::revive) gives it new ones.
    Dead,
}
