//! Handlers, whatever their payload, and the job that they get.

use crate::error::{CompleteError, ResultError, ScheduleError};
use crate::job::{JobId, NewJob, Progress};
use crate::json;
use crate::kind::Kind;
use crate::lock::lock;
use crate::periodic::Repetition;
use crate::reports::Reports;
use crate::store::{Claim, InTransaction, Kept, Store, Transaction};
use crate::time::Timestamp;
use crate::trace::RunSpan;
use crate::transaction;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// What a handler gets.
pub struct Job<P, S: Store> {
    /// Its name.
    pub id: JobId,
    /// The kind of job.
    pub kind: Arc<str>,
    /// Its unique key.
    pub key: Option<String>,
    /// The payload that was scheduled.
    pub payload: P,
    /// When it was due, by the database's clock.
    pub due: SystemTime,
    /// The number of this attempt, from 1. An attempt that ended with its node does not count.
    pub attempt: u32,
    /// How often a node has claimed this attempt, from 1. If it is more than 1, the attempt may have begun
    /// before, and its node died or was stopped. Always 1 with the embedded store.
    pub claims: u32,
    pub(crate) epoch: u64,
    pub(crate) store: Arc<S>,
    pub(crate) window: Duration,
    pub(crate) repetition: Option<Arc<Repetition>>,
    pub(crate) told: Arc<Told>,
    pub(crate) cancellation: CancellationToken,
}

/// How far the handler has come with `complete_in`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Completion {
    /// There was none.
    #[default]
    None,
    /// None has succeeded.
    Tried,
    /// One has. Nobody knows whether its transaction was committed.
    Succeeded,
}

/// What a handler tells beside its result.
#[derive(Default)]
pub(crate) struct Told {
    completion: Mutex<Completion>,
    snooze: Mutex<Option<Duration>>,
    /// For how long the job is kept when it is done.
    keep_done: Option<Duration>,
    /// JSON in ASCII.
    result: Mutex<Option<String>>,
    reports: Arc<Reports>,
}

impl Told {
    pub(crate) fn new(keep_done: Option<Duration>, reports: &Arc<Reports>) -> Self {
        Self { keep_done, reports: reports.clone(), ..Self::default() }
    }

    pub(crate) fn reached(&self, completion: Completion) {
        let mut reached = lock(&self.completion);
        *reached = completion.max(*reached);
    }

    pub(crate) fn completion(&self) -> Completion {
        *lock(&self.completion)
    }

    pub(crate) fn snooze(&self) -> Option<Duration> {
        *lock(&self.snooze)
    }

    /// How the job is kept if it is done now. `None` if it is not kept.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let lasts = self.keep_done?;
        let result = lock(&self.result).clone();
        Some(Kept { lasts, result })
    }
}

impl<P, S: Store> Job<P, S> {
    pub(crate) fn claim(&self) -> Claim {
        Claim { id: self.id, epoch: self.epoch }
    }

    /// If it is periodic and this run is done.
    pub(crate) fn next_occurrence(&self) -> Option<Timestamp> {
        self.repetition.as_ref().and_then(|repetition| repetition.next())
    }

    /// Puts the job off: if the handler returns `Ok` after this, the job is not done, but runs again after
    /// the delay, with the same attempt number. If a transaction of [`complete_in`](Self::complete_in) is
    /// committed, that takes precedence, and the job is done.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork_jobs::{Job, Redb};
    /// async fn deliver(job: Job<String, Redb>) -> Result<(), String> {
    ///     # let is_open = |_: &str| false;
    ///     if !is_open(&job.payload) {
    ///         job.snooze(Duration::from_secs(3600));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn snooze(&self, delay: Duration) {
        *lock(&self.told.snooze) = Some(delay);
    }

    /// Reports how far the run is: how many parts are `done`, `of` how many (0 if nobody knows), and what it does.
    /// [`Jobs::get`](crate::Jobs::get), the program and its page show the last report while the job runs.
    ///
    /// This neither waits nor fails. The store has the report up to a few seconds later, because a node writes only the
    /// last one of each run, at most once per second. The first
    /// [200 characters](crate::Progress::LONGEST_TEXT) of the text are kept.
    ///
    /// ```
    /// # use wheelwork_jobs::{Job, Redb};
    /// async fn send_all(job: Job<Vec<String>, Redb>) -> Result<(), String> {
    ///     let all = &job.payload;
    ///     for (done, letter) in all.iter().enumerate() {
    ///         job.set_progress(done as u64, all.len() as u64, letter);
    ///         // send it
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn set_progress(&self, done: u64, of: u64, text: &str) {
        self.told.reports.add(self.claim(), Progress::new(done, of, text));
    }

    /// The longest result as JSON, in bytes. Characters that are not ASCII count with their escapes.
    pub const LONGEST_RESULT: usize = 16 * 1024;

    /// Sets the result of the run, in place of a previous one. If the job is done then, it is kept with the result
    /// for the time that its kind sets with [`Kind::keep_done`](crate::Kind::keep_done), and
    /// [`Jobs::get`](crate::Jobs::get) returns it. If the kind keeps nothing, the result is lost. Call it before
    /// [`complete_in`](Self::complete_in).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Redb, ResultError};
    /// async fn add(job: Job<(u32, u32), Redb>) -> Result<(), ResultError> {
    ///     job.set_result(&(job.payload.0 + job.payload.1))
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Redb::open(folder.path().join("jobs.redb"))?;
    /// let kind = Kind::new("add").keep_done(Duration::from_secs(3600));
    /// let jobs = Jobs::builder(store).handle(kind, add).open().await?;
    /// let id = jobs.schedule(NewJob::new("add", &(3, 4))?).await?;
    /// # while jobs.metrics().done < 1 { tokio::time::sleep(Duration::from_millis(1)).await }
    /// // once it has run:
    /// let done = jobs.get(id).await?.ok_or("it is kept for an hour")?;
    /// assert_eq!(done.result.as_deref(), Some("7"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the result could not be read back as JSON, as with a [payload](NewJob::new), or is longer than
    /// [`LONGEST_RESULT`](Self::LONGEST_RESULT). The previous result stays.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), ResultError> {
        let json = in_ascii(json::write(result)?);
        if json.len() > Self::LONGEST_RESULT {
            return Err(ResultError::Long { bytes: json.len() });
        }
        *lock(&self.told.result) = Some(json);
        Ok(())
    }

    /// Is cancelled when the run should end: at the [time limit](crate::Kind::time_limit) of the kind, and when
    /// the node hears that the job was cancelled, moved or taken over.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

impl<P: Sync, S: Store> Job<P, S> {
    /// Ends the job in your transaction. If the transaction commits, the job is done, and its work in the
    /// transaction is done exactly once. Commit before the handler returns.
    ///
    /// After this call, only a commit ends the job, even if the handler returns `Ok`. If no transaction in which the
    /// job was completed is committed, because the commit was forgotten or failed, the attempt has failed, and is made
    /// again. If the transaction is still open when the handler returns, its end decides.
    ///
    /// The [transaction](Transaction) is on a connection of yours, from any pool, to the database of the store. So keep
    /// a clone of the pool in the handler's closure: the store lends none of its connections. With `Redb` it comes
    /// from [`Redb::begin_write`](crate::Redb::begin_write), on a clone of the store.
    ///
    /// A periodic job goes on: the transaction moves it to its next occurrence.
    ///
    /// # Errors
    ///
    /// If the job does not belong to this node any more: it was cancelled or rescheduled, or another node has taken
    /// it over. Roll back then. Also if the store fails.
    pub fn complete_in<'a>(
        &'a self,
        transaction: impl Transaction<S> + 'a,
    ) -> InTransaction<'a, Result<(), CompleteError>> {
        let kept = self.told.kept();
        Box::pin(async move {
            // First: if this future is dropped half-way, the job may be completed all the same.
            self.told.reached(Completion::Tried);
            let (claim, next) = (self.claim(), self.next_occurrence());
            if !transaction.complete(&*self.store, self.window, claim, next, kept).await? {
                return Err(CompleteError::Lost { id: self.id });
            }
            self.told.reached(Completion::Succeeded);
            Ok(())
        })
    }

    /// Stores a job in your transaction, as [`Jobs::schedule_in`](crate::Jobs::schedule_in) does: it exists if and
    /// only if the transaction commits. After [`complete_in`](Self::complete_in) in the same transaction, the
    /// new job is the successor of this one, and may have its key: at no time do both exist, or neither.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork_jobs::{Job, Jobs, NewJob, Redb};
    /// /// Reminds three times, once a day.
    /// async fn remind(
    ///     job: Job<u32, Redb>,
    ///     store: Redb,
    /// ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     let transaction = store.begin_write().await?;
    ///     job.complete_in(&transaction).await?;
    ///     if job.payload < 3 {
    ///         let next = NewJob::new("remind", &(job.payload + 1))?.key("anna");
    ///         # let next = next.due(Duration::from_millis(1));
    ///         # #[cfg(any())]
    ///         let next = next.due(Duration::from_secs(86_400));
    ///         job.schedule_in(&transaction, &next).await?;
    ///     }
    ///     Ok(transaction.commit().await?)
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Redb::open(folder.path().join("jobs.redb"))?;
    /// let shared = store.clone();
    /// let handle = move |job| remind(job, shared.clone());
    /// let jobs = Jobs::builder(store).handle("remind", handle).open().await?;
    /// jobs.schedule(NewJob::new("remind", &1)?.key("anna")).await?;
    /// # while jobs.metrics().done < 3 { tokio::time::sleep(Duration::from_millis(1)).await }
    /// # assert_eq!(jobs.get_by_key("anna").await?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the key is taken or too long, the very job is stored already, or the store fails. The job comes
    /// back in the error.
    pub fn schedule_in<'a>(
        &'a self,
        transaction: impl Transaction<S> + 'a,
        job: &'a NewJob,
    ) -> InTransaction<'a, Result<JobId, ScheduleError>> {
        transaction::schedule(&*self.store, transaction, self.window, job)
    }
}

impl<S: Store> Job<String, S> {
    /// Reads the payload.
    pub(crate) fn parse<P: DeserializeOwned>(self) -> Result<Job<P, S>, serde_json::Error> {
        let payload = serde_json::from_str(&self.payload)?;
        Ok(Job {
            payload,
            id: self.id,
            kind: self.kind,
            key: self.key,
            due: self.due,
            attempt: self.attempt,
            claims: self.claims,
            epoch: self.epoch,
            store: self.store,
            window: self.window,
            repetition: self.repetition,
            told: self.told,
            cancellation: self.cancellation,
        })
    }
}

impl<P: fmt::Debug, S: Store> fmt::Debug for Job<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("key", &self.key)
            .field("payload", &self.payload)
            .field("due", &self.due)
            .field("attempt", &self.attempt)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}

/// Why an attempt failed, as it is stored.
pub(crate) type Failure = String;

/// Returns whether the handler was called.
type Running = Pin<Box<dyn Future<Output = Result<bool, Failure>> + Send>>;

/// Asked at the last moment, when nothing comes between the answer and the call.
type MayCall = Box<dyn FnOnce() -> bool + Send>;

/// A handler and how its jobs are run.
pub(crate) struct Handler<S: Store> {
    pub(crate) kind: Kind,
    /// Whether its runs cannot be dropped.
    pub(crate) is_blocking: bool,
    run: Box<dyn Fn(Job<String, S>, MayCall) -> Running + Send + Sync>,
}

impl<S: Store> Handler<S> {
    pub(crate) fn asynchronous<P, F, R, E>(kind: Kind, handle: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(Job<P, S>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let handle = Arc::new(handle);
        let run = move |job: Job<String, S>, may_call: MayCall| -> Running {
            let handle = handle.clone();
            Box::pin(async move {
                let job = job.parse().map_err(unreadable)?;
                if !may_call() {
                    return Ok(false);
                }
                handle(job).await.map_err(|error| error.to_string())?;
                Ok(true)
            })
        };
        Self { kind, is_blocking: false, run: Box::new(run) }
    }

    pub(crate) fn blocking<P, F, E>(kind: Kind, handle: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(Job<P, S>) -> Result<(), E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        let handle = Arc::new(handle);
        let run = move |job: Job<String, S>, may_call: MayCall| -> Running {
            let handle = handle.clone();
            let run = move || {
                let job = job.parse().map_err(unreadable)?;
                if !may_call() {
                    return Ok(false);
                }
                handle(job).map_err(|error| error.to_string())?;
                Ok(true)
            };
            Box::pin(async move {
                let span = RunSpan::current();
                match tokio::task::spawn_blocking(move || span.in_scope(run)).await {
                    Ok(result) => result,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => Err(panicked(&*panic)),
                        Err(_) => Ok(false), // the runtime has ended before
                    },
                }
            })
        };
        Self { kind, is_blocking: true, run: Box::new(run) }
    }

    /// Runs a job, if it may be called. Returns whether it was. A panic is a failure.
    pub(crate) async fn run(
        &self,
        job: Job<String, S>,
        may_call: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<bool, Failure> {
        let mut running = (self.run)(job, Box::new(may_call));
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            polled.unwrap_or_else(|panic| std::task::Poll::Ready(Err(panicked(&*panic))))
        })
        .await
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    format!("the payload does not fit the handler: {error}")
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    format!("the handler panicked: {}", text_of(panic))
}

pub(crate) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// JSON in characters that every encoding of a database has.
fn in_ascii(json: String) -> String {
    if json.is_ascii() {
        return json;
    }
    let escape = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    json.chars().map(escape).collect()
}
