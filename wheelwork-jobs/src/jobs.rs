//! `Jobs`, the public entry point.

use crate::error::{DiedError, OpenError, ScheduleError, StopError};
use crate::group;
use crate::handler::{Handler, Job};
use crate::health::Health;
use crate::job::{JobId, NewJob, State, StoredJob, When, stored_key};
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::node::{Link, Settings, Stopped};
use crate::store::{
    Cancelled, Filter, Glance, InTransaction, Insertion, KindStats, Most, Peek, Replaced, Store,
    StoreError, Transaction,
};
use crate::time::Timestamp;
use crate::transaction;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// This many dead jobs are deleted in one step.
const PRUNED: usize = 1_000;

/// Delayed jobs in a store.
///
/// A `Jobs` with handlers is a *node*: it claims jobs and runs them. A `Jobs` without handlers schedules
/// jobs for other nodes. Clones are handles to the same one. Dropping the last handle stops it, without
/// waiting for the handlers that run; [`stop`](Self::stop) waits.
///
/// # Guarantees
///
/// - A job that was scheduled runs until a handler has returned `Ok`, its attempts are used up, or it is
///   cancelled: at least once, whatever crashes.
/// - Work done in the transaction of [`Job::complete_in`] is done exactly once. Without its commit, the job is not
///   done.
/// - No handler is called before the due time, by the database's clock.
pub struct Jobs<S: Store>(pub(crate) Arc<Link<S>>);

impl<S: Store> Clone for Jobs<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Store> Jobs<S> {
    /// Opens a store without handlers.
    ///
    /// # Errors
    ///
    /// As [`JobsBuilder::open`].
    pub async fn open(store: S) -> Result<Self, OpenError> {
        Self::builder(store).open().await
    }

    /// Opens a store with handlers and settings.
    pub fn builder(store: S) -> JobsBuilder<S> {
        JobsBuilder(Settings {
            store,
            handlers: Vec::new(),
            window: Duration::from_secs(30),
            liveness: Duration::from_secs(30),
            tick: Duration::from_millis(1),
            create_tables: true,
        })
    }

    /// Stores a job. When this returns, the job is durable: it runs even if this process ends now. Returns its id,
    /// or that of the job which was stored before if it is [unique for a period](NewJob::unique_for).
    ///
    /// Calls at the same time share one write of the store.
    ///
    /// # Errors
    ///
    /// If the key is taken or too long, the very job is stored already, the jobs are stopped, or the store
    /// fails, for example because an open transaction holds the key for ten seconds. The job comes back in the error.
    pub async fn schedule(&self, job: NewJob) -> Result<JobId, ScheduleError> {
        let spare = job.clone();
        match self.0.insert(job).await?.await {
            Ok(result) => result,
            Err(_) => Err(interrupted(spare)),
        }
    }

    /// Stores many jobs, with few writes. Returns one result for each, in their order.
    ///
    /// The last job of a [`Group`](crate::Group) is stored after those of its members that are among them, and not at
    /// all if one of these is refused.
    pub async fn schedule_all(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Vec<Result<JobId, ScheduleError>> {
        let mut left: Vec<(usize, NewJob)> = jobs.into_iter().enumerate().collect();
        let mut results = Vec::with_capacity(left.len());
        let mut refused = HashSet::new();
        while !left.is_empty() {
            let ids: HashSet<JobId> = left.iter().map(|(_, job)| job.id).collect();
            let is_last = |job: &NewJob| group::members_of(job).iter().any(|id| ids.contains(id));
            let (mut now, later) = left.into_iter().partition(|(_, job)| !is_last(job));
            left = later;
            if now.is_empty() {
                now = std::mem::take(&mut left); // they wait for each other
            }
            self.schedule_together(now, &mut refused, &mut results).await;
        }
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Stores jobs, none of which waits for another one of them.
    async fn schedule_together(
        &self,
        jobs: Vec<(usize, NewJob)>,
        refused: &mut HashSet<JobId>,
        results: &mut Vec<(usize, Result<JobId, ScheduleError>)>,
    ) {
        let mut waiting = Vec::with_capacity(jobs.len());
        for (number, job) in jobs {
            let member = group::members_of(&job).into_iter().find(|id| refused.contains(id));
            let spare = job.clone();
            let inserted = match member {
                Some(member) => Err(ScheduleError::MemberRefused { job: Box::new(job), member }),
                None => self.0.insert(job).await,
            };
            waiting.push((number, spare, inserted));
        }
        for (number, spare, inserted) in waiting {
            let id = spare.id;
            let result = match inserted {
                Ok(answer) => answer.await.unwrap_or_else(|_| Err(interrupted(spare))),
                Err(error) => Err(error),
            };
            if !matches!(result, Ok(_) | Err(ScheduleError::AlreadyStored { .. })) {
                refused.insert(id);
            }
            results.push((number, result));
        }
    }

    /// Stores a job in a transaction of yours: it exists if and only if the transaction commits. A handler has
    /// [`Job::schedule_in`], which needs no `Jobs`.
    ///
    /// The [transaction](Transaction) is on a connection of yours to the database of the store. The store lends none of
    /// its own.
    ///
    /// # Errors
    ///
    /// If the key is taken or too long, the very job is stored already, or the store fails. The job comes back in the
    /// error. After an error of the store that is not [`is_undone`](StoreError::is_undone), roll a transaction of
    /// PostgreSQL back.
    pub fn schedule_in<'a>(
        &'a self,
        transaction: impl Transaction<S> + 'a,
        job: &'a NewJob,
    ) -> InTransaction<'a, Result<JobId, ScheduleError>> {
        let node = &self.0.node;
        transaction::schedule(&*node.store, transaction, node.window, job)
    }

    /// Stores a job in place of the one that has its key, in one step: at no time are there none or
    /// two. Returns the job that it has replaced. A job without a key replaces nothing.
    ///
    /// The other job may be dead. If it runs already, its handler goes on, as after a [`cancel`](Self::cancel). This
    /// waits as `cancel` does.
    ///
    /// # Errors
    ///
    /// If the key is too long, the very job is stored already, or the store fails. The job comes back in the
    /// error.
    pub async fn replace(&self, job: NewJob) -> Result<Option<JobId>, ScheduleError> {
        if job.has_long_key() {
            return Err(ScheduleError::LongKey { job: Box::new(job) });
        }
        let (window, new, me) = (self.0.node.window, job.clone(), self.0.node.me());
        let replacing = move |store: Arc<S>| async move { store.replace(window, &new, me).await };
        let kind = job.kind.clone();
        let Replaced { insertion, before } = match self.0.node.call(replacing).await {
            Ok(replaced) => replaced,
            Err(source) => return Err(ScheduleError::Store { job: Box::new(job), source }),
        };
        let is_new = matches!(insertion, Insertion::Stored(_));
        let spare = job.clone();
        ScheduleError::of(insertion, job)?;
        if is_new {
            self.0.node.counts.count_of(&kind, |counts| counts.scheduled += 1);
        }
        let Some((id, removed)) = before else { return Ok(None) };
        match self.0.node.settle(id, removed).await {
            Ok(()) => Ok(Some(id)),
            Err(source) => Err(ScheduleError::Store { job: Box::new(spare), source }),
        }
    }

    /// Stores a periodic job in place of the one that has its key, unless it is the same already: then nothing is
    /// changed or locked, and what was missed meanwhile is made up for. So each node may call this when it starts, and
    /// there is one job. Returns its id. A changed rule, payload, kind or priority takes effect with the first
    /// occurrence from now. [`cancel_by_key`](Self::cancel_by_key) removes it, and
    /// [`reschedule_by_key`](Self::reschedule_by_key) with a delay of zero runs it once in between.
    ///
    /// If the rules of the zone have changed, the stored time may no longer be an occurrence of the job. A future time
    /// that differs from the next occurrence by whole quarters of an hour, three hours at most, is taken for such an
    /// old time, and is moved to that occurrence. A time to which you have moved the job stays, unless it looks the
    /// same. In a zone without rules, such as UTC, every time stays.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork_jobs::{Job, Jobs, NewJob, Periodic, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Redb::open(folder.path().join("jobs.redb"))?;
    /// let report = |job: Job<String, Redb>| async move { Ok::<_, String>(drop(job.payload)) };
    /// let jobs = Jobs::builder(store).handle("report", report).open().await?;
    /// let job = NewJob::new("report", &"daily")?.key("daily report");
    /// jobs.repeat(&Periodic::cron(job, "30 2 * * *", "Europe/Berlin")?).await?;
    ///
    /// jobs.reschedule_by_key("daily report", Duration::ZERO).await?; // now, and then at 02:30
    /// # while jobs.metrics().done == 0 { tokio::time::sleep(Duration::from_millis(1)).await }
    /// jobs.cancel_by_key("daily report").await?; // never again
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace), and if there is no occurrence any more.
    #[cfg(feature = "cron")]
    pub async fn repeat(&self, periodic: &crate::Periodic) -> Result<JobId, ScheduleError> {
        let failed =
            |source| ScheduleError::Store { job: Box::new(periodic.job().clone()), source };
        let clock = self.0.node.call(|store| async move { store.clock().await }).await;
        let now = clock.map_err(failed)?.shown;
        let job = periodic.to_job(now)?;
        let id = job.id;
        let stored = self.get(id).await.map_err(failed)?;
        if let Some(stored) = stored.filter(|stored| stored.state != State::Done) {
            if let Some(next) = periodic.corrected(&stored, now) {
                let (next, from) = (When::At(next), stored.due.into());
                self.move_job(id, next, false, Some(from)).await.map_err(failed)?;
            }
            return Ok(id);
        }
        match self.replace(job).await {
            Ok(_) | Err(ScheduleError::AlreadyStored { .. }) => Ok(id),
            Err(error) => Err(error),
        }
    }

    /// Deletes a job. False if there is none.
    ///
    /// After it has returned true, no handler is called for the job, on any node. A handler that runs already goes
    /// on, but its job cannot be completed in a transaction any more.
    ///
    /// If another node has claimed the job, this waits until that node has dropped it: a few milliseconds, or until
    /// its next beat (a third of the liveness) if it has not heard of the cancel. If that node is dead or cut off,
    /// it takes until its life has ended, the liveness at most. The job is deleted at once, even if you drop
    /// the call.
    ///
    /// # Errors
    ///
    /// If the store fails. Then the job may be deleted, and its node may be just about to run it.
    pub async fn cancel(&self, id: JobId) -> Result<bool, StoreError> {
        let me = self.0.node.me();
        let cancelling = move |store: Arc<S>| async move { store.cancel(id, me).await };
        let Some(Cancelled { kind, removed }) = self.0.node.call(cancelling).await? else {
            return Ok(false);
        };
        self.0.node.settle(id, removed).await?;
        self.0.node.counts.count_of(&kind, |counts| counts.cancelled += 1);
        Ok(true)
    }

    /// Moves a job. False if there is none, or it is dead.
    ///
    /// After it has returned true, no handler is called at the old due time; this waits as [`cancel`](Self::cancel)
    /// does. A handler that runs already goes on, and the job runs again at its new due time.
    ///
    /// # Errors
    ///
    /// If the store fails. Then the job may be moved, and its node may be just about to run it at the old time.
    pub async fn reschedule(&self, id: JobId, when: impl Into<When>) -> Result<bool, StoreError> {
        self.move_job(id, when.into(), false, None).await
    }

    /// The job that has a key, as it is stored. `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn get_by_key(&self, key: &str) -> Result<Option<StoredJob>, StoreError> {
        let key = stored_key(key);
        self.0.node.call(move |store| async move { store.find(&key).await }).await
    }

    /// Deletes the job that has a key, as [`cancel`](Self::cancel) does. False if there is none.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn cancel_by_key(&self, key: &str) -> Result<bool, StoreError> {
        // A job keeps its key as long as it is stored. If it ends between the two calls, another may have it.
        while let Some(job) = self.get_by_key(key).await? {
            if self.cancel(job.id).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves the job that has a key, as [`reschedule`](Self::reschedule) does. False if there is none, or it is
    /// dead.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn reschedule_by_key(
        &self,
        key: &str,
        when: impl Into<When>,
    ) -> Result<bool, StoreError> {
        let when = when.into();
        while let Some(job) = self.get_by_key(key).await? {
            if job.state == State::Dead {
                break;
            }
            if self.reschedule(job.id, when).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes the dead jobs that were due before a time, of one kind or of all. Returns how many there were.
    /// Goes on in small steps until there are none.
    ///
    /// # Errors
    ///
    /// If the store fails. Some may be deleted then.
    pub async fn prune(&self, kind: Option<&str>, before: SystemTime) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            let (kind, before) = (kind.map(str::to_owned), before.into());
            let pruning = move |store: Arc<S>| async move {
                store.prune(kind.as_deref(), before, PRUNED).await
            };
            let pruned = self.0.node.call(pruning).await?;
            all += pruned as u64;
            if pruned < PRUNED {
                return Ok(all);
            }
        }
    }

    /// Deletes the jobs that are [kept](crate::Kind::keep_done) and were done before a time, of all kinds. Returns how
    /// many there were. Goes on in small steps until there are none.
    ///
    /// # Errors
    ///
    /// If the store fails. Some may be deleted then.
    pub async fn prune_done(&self, before: SystemTime) -> Result<u64, StoreError> {
        let (mut all, before) = (0, before.into());
        loop {
            let pruning =
                move |store: Arc<S>| async move { store.prune_done(before, PRUNED).await };
            let pruned = self.0.node.call(pruning).await?;
            all += pruned as u64;
            if pruned < PRUNED {
                return Ok(all);
            }
        }
    }

    /// Pauses a kind on all nodes: none of its jobs begins until somebody [resumes](Self::resume) it. Handlers that
    /// run go on. False if it was paused already. The pause survives restarts, and a kind can be paused that has no
    /// jobs yet. Jobs can be scheduled meanwhile, and [`stats`](Self::stats) tells that the kind is paused.
    ///
    /// All nodes are told, this one too. Until they know, they can begin jobs that they hold already: for a few
    /// milliseconds, or until their next beat if the notice is lost. Then they let these jobs go.
    ///
    /// ```
    /// # use wheelwork_jobs::{Job, Jobs, NewJob, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Redb::open(folder.path().join("jobs.redb"))?;
    /// # let handle = |_: Job<(), Redb>| async { Ok::<_, String>(()) };
    /// # let jobs = Jobs::builder(store).handle("mail", handle).open().await?;
    /// jobs.pause("mail").await?;
    /// jobs.schedule(NewJob::new("mail", &())?).await?; // it waits
    /// assert!(jobs.stats().await?[0].paused);
    /// jobs.resume("mail").await?;
    /// # while jobs.metrics().done == 0 { tokio::time::sleep(std::time::Duration::from_millis(1)).await }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn pause(&self, kind: &str) -> Result<bool, StoreError> {
        self.set_paused(kind, true).await
    }

    /// Lets the jobs of a paused kind run again, on all nodes. Overdue jobs run at once. False if the kind is
    /// not paused.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn resume(&self, kind: &str) -> Result<bool, StoreError> {
        self.set_paused(kind, false).await
    }

    async fn set_paused(&self, kind: &str, paused: bool) -> Result<bool, StoreError> {
        let kind = kind.to_owned();
        self.0.node.call(move |store| async move { store.set_paused(&kind, paused).await }).await
    }

    /// Runs a dead job at once, with new attempts. False if there is no such job, or it is not dead.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn revive(&self, id: JobId) -> Result<bool, StoreError> {
        self.move_job(id, When::After(0), true, None).await
    }

    async fn move_job(
        &self,
        id: JobId,
        when: When,
        dead: bool,
        from: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let (window, me) = (self.0.node.window, self.0.node.me());
        let moving = move |store: Arc<S>| async move {
            store.reschedule(id, when, window, dead, from, me).await
        };
        let Some(removed) = self.0.node.call(moving).await? else { return Ok(false) };
        self.0.node.settle(id, removed).await?;
        Ok(true)
    }

    /// One job, as it is stored or kept. `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        self.0.node.call(move |store| async move { store.get(id).await }).await
    }

    /// The jobs that a filter selects, the earliest first.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn list(&self, filter: Filter) -> Result<Vec<StoredJob>, StoreError> {
        self.0.node.call(move |store| async move { store.list(&filter).await }).await
    }

    /// Counts the jobs of each kind. Reads all of them: for more than a few million, use [`glance`](Self::glance).
    ///
    /// # Errors
    ///
    /// If the store fails. PostgreSQL gives the count up after four fifths of the limit of a call: 8 s by default.
    pub async fn stats(&self) -> Result<Vec<KindStats>, StoreError> {
        let counted = self.0.node.call(|store| async move { store.glance(Most::ALL).await });
        Ok(counted.await?.kinds)
    }

    /// Counts the jobs of each kind, up to the limits of a [`Glance`]. Reads at most 40,000 rows,
    /// however many jobs there are.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn glance(&self) -> Result<Glance, StoreError> {
        self.0.node.call(|store| async move { store.glance(Most::GLANCE).await }).await
    }

    /// Some free, dead or done jobs, without their payloads. Reads at most [`Peek::MOST_READ`] rows, however many jobs
    /// there are, in [`Redb`](crate::Redb) beside those that are claimed. Jobs with the same due time have no order.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn peek(&self, peek: Peek) -> Result<Vec<StoredJob>, StoreError> {
        let peek = peek.bounded();
        self.0.node.call(move |store| async move { store.peek(&peek).await }).await
    }

    /// What this `Jobs` has done, and what it holds.
    pub fn metrics(&self) -> Metrics {
        self.0.node.metrics()
    }

    /// Its health: whether it works, when it had its last beat, and whether it hears the other nodes.
    ///
    /// ```
    /// # use wheelwork_jobs::{Condition, Job, Jobs, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Redb::open(folder.path().join("jobs.redb"))?;
    /// let handle = |_: Job<(), Redb>| async { Ok::<_, String>(()) };
    /// let jobs = Jobs::builder(store).handle("mail", handle).open().await?;
    /// assert!(jobs.health().is_well());
    /// jobs.stop(std::time::Duration::ZERO).await?;
    /// assert_eq!(jobs.health().condition, Condition::Stopped);
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> Health {
        self.0.node.health()
    }

    /// Waits until it has ended: because it was stopped, or because it has died. Await it beside the work
    /// of your program, so that a node that has died does not go unnoticed.
    ///
    /// # Errors
    ///
    /// If it has died.
    pub async fn ended(&self) -> Result<(), DiedError> {
        match self.0.node.ended().await {
            None => Ok(()),
            Some(reason) => Err(DiedError { reason }),
        }
    }

    /// Stops. Jobs that have not begun are given back, and other nodes can claim them at once. Waits for the
    /// handlers that run, at most for `limit`, and half a second more for the store.
    ///
    /// # Errors
    ///
    /// If it is stopped already or has died, or the store fails: then other nodes take over when the liveness of this
    /// one lapses.
    pub async fn stop(&self, limit: Duration) -> Result<Stopped, StopError> {
        self.0.stop(limit).await
    }
}

impl<S: Store> fmt::Debug for Jobs<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

fn interrupted(job: NewJob) -> ScheduleError {
    let source = StoreError::new("store a job", "the jobs were stopped meanwhile");
    ScheduleError::Store { job: Box::new(job), source }
}

/// Collects the handlers and settings of a [`Jobs`].
pub struct JobsBuilder<S: Store>(Settings<S>);

impl<S: Store> JobsBuilder<S> {
    /// Runs the jobs of a kind with an async function, on the tokio runtime in which
    /// [`open`](Self::open) is called.
    ///
    /// An error, a panic, or a payload that is no `P` is a failed attempt.
    pub fn handle<P, F, R, E>(mut self, kind: impl Into<Kind>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(Job<P, S>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.0.handlers.push(Handler::asynchronous(kind.into(), handler));
        self
    }

    /// Runs the jobs of a kind with a function that may block, on the runtime's threads for blocking calls.
    ///
    /// An error, a panic, or a payload that is no `P` is a failed attempt.
    pub fn handle_blocking<P, F, E>(mut self, kind: impl Into<Kind>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(Job<P, S>) -> Result<(), E> + Send + Sync + 'static,
        E: fmt::Display + 'static,
    {
        self.0.handlers.push(Handler::blocking(kind.into(), handler));
        self
    }

    /// How long before its due time a node claims a job: 30 s by default, and at least half of the
    /// liveness. The memory of a node is proportional to the jobs that are due within this window.
    ///
    /// Give all nodes of one database the same window and liveness.
    pub fn window(mut self, window: Duration) -> Self {
        self.0.window = window;
        self
    }

    /// How long a node that is silent counts as alive: 30 s by default, at least 100 ms. Then others take
    /// over its jobs. A node sends one query to the store every third of it.
    pub fn liveness(mut self, liveness: Duration) -> Self {
        self.0.liveness = liveness;
        self
    }

    /// The tick of the timer wheel: 1 ms by default. A job is late by up to two ticks.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.0.tick = tick;
        self
    }

    /// Whether to create the tables if they are missing, or to bring older ones to the version of this crate: yes
    /// by default. If not, [`open`](Self::open) fails with [`OpenError::NoTables`] or
    /// [`OpenError::OlderTables`] then.
    pub fn create_tables(mut self, create_tables: bool) -> Self {
        self.0.create_tables = create_tables;
        self
    }

    /// Opens the store, and begins to run jobs.
    ///
    /// # Errors
    ///
    /// If two handlers have the same kind, a setting is out of range, the store fails or has tables of a newer version,
    /// a thread cannot start, or this is called outside a tokio runtime.
    pub async fn open(self) -> Result<Jobs<S>, OpenError> {
        let Settings { ref handlers, window, liveness, .. } = self.0;
        if liveness < Duration::from_millis(100) {
            return Err(OpenError::LivenessTooShort { liveness });
        }
        if window < liveness / 2 {
            return Err(OpenError::WindowTooShort { window, liveness });
        }
        for (number, handler) in handlers.iter().enumerate() {
            let kind = &handler.kind;
            let named = || kind.name.to_string();
            if handlers[..number].iter().any(|other| other.kind.name == kind.name) {
                return Err(OpenError::TwoHandlers { kind: named() });
            }
            if kind.name.contains('\0') {
                return Err(OpenError::NulInKind { kind: named() });
            }
            if kind.concurrency == 0 {
                return Err(OpenError::NoConcurrency { kind: named() });
            }
        }
        Ok(Jobs(Arc::new(Link::open(self.0).await?)))
    }
}

impl<S: Store> fmt::Debug for JobsBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobsBuilder").finish_non_exhaustive()
    }
}
