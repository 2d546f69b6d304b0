//! Transactions that end a job, if they are committed.

use crate::common::{self, until};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use wheelwork_jobs::{Filter, Job, Jobs, Kind, NewJob, Postgres, Redb, Retry, State};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

type Failed = Box<dyn std::error::Error + Send + Sync>;
type Running = Pin<Box<dyn Future<Output = Result<(), Failed>> + Send>>;

/// How a transaction ends in which a job was completed.
#[derive(Clone)]
enum Ends {
    Commits,
    RollsBack,
    /// After the handler has returned: when the test says so, it commits or not.
    Later(Arc<Notify>, bool),
}

impl Ends {
    async fn commits(&self) -> bool {
        match self {
            Self::Commits => true,
            Self::RollsBack => false,
            Self::Later(now, commits) => {
                now.notified().await;
                *commits
            }
        }
    }
}

/// Stores whose users have transactions.
trait Transacts: common::Shared {
    /// Where its transactions come from.
    type Source: Clone + Send + Sync + 'static;

    /// Completes a job, and tells when that is so.
    fn complete(
        source: Self::Source,
        job: Job<u32, Self>,
        ends: Ends,
        completed: oneshot::Sender<()>,
    ) -> impl Future<Output = Result<(), Failed>> + Send;
}

impl Transacts for Redb {
    type Source = Redb;

    async fn complete(
        store: Redb,
        job: Job<u32, Self>,
        ends: Ends,
        completed: oneshot::Sender<()>,
    ) -> Result<(), Failed> {
        let transaction = store.begin_write().await?;
        job.complete_in(&transaction).await?;
        completed.send(()).unwrap();
        if ends.commits().await {
            transaction.commit().await?;
        }
        Ok(())
    }
}

impl Transacts for Postgres {
    type Source = String;

    async fn complete(
        url: String,
        job: Job<u32, Self>,
        ends: Ends,
        completed: oneshot::Sender<()>,
    ) -> Result<(), Failed> {
        let mut client = common::connect(&url).await;
        let transaction = client.transaction().await?;
        job.complete_in(&transaction).await?;
        completed.send(()).unwrap();
        if ends.commits().await {
            transaction.commit().await?;
        }
        Ok(())
    }
}

/// A handler that always returns `Ok`. `ends` says of each attempt how its transaction ends.
fn completes<S: Transacts>(
    source: S::Source,
    ends: impl Fn(&Job<u32, S>) -> Ends + Send + Sync + 'static,
) -> impl Fn(Job<u32, S>) -> Running + Send + Sync {
    move |job| {
        let ends = ends(&job);
        let (completed, is_completed) = oneshot::channel();
        let is_later = matches!(ends, Ends::Later(..));
        let transaction = tokio::spawn(S::complete(source.clone(), job, ends, completed));
        Box::pin(async move {
            is_completed.await?;
            if is_later { Ok(()) } else { transaction.await? }
        })
    }
}

/// Each test gets a store and the source of its transactions.
macro_rules! on_both {
    ($($(#[$cfg:meta])? $name:ident)*) => {
        mod on_redb {
            $($(#[$cfg])? #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (store, _folder) = crate::common::redb();
                super::$name(store.clone(), store).await;
            })*
        }
        mod on_postgres {
            $($(#[$cfg])? #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(server) = crate::common::postgres::server() else { return };
                let url = server.database();
                super::$name(super::Postgres::new(&url).unwrap(), url).await;
            })*
        }
    };
}

on_both! {
    an_attempt_that_does_not_commit_has_failed
    an_attempt_that_does_not_commit_is_the_last_one_of_a_job_without_retries
    an_attempt_that_does_not_commit_can_be_put_off
    #[cfg(feature = "cron")] an_occurrence_that_was_not_committed_is_not_over
    a_transaction_that_ends_after_its_handler_decides
}

fn again_at_once(name: &str) -> Kind {
    Kind::new(name).retry(Retry::default().first(ms(1)))
}

async fn an_attempt_that_does_not_commit_has_failed<S: Transacts>(store: S, source: S::Source) {
    let ends = |job: &Job<u32, S>| if job.attempt < 3 { Ends::RollsBack } else { Ends::Commits };
    let kept = again_at_once("kept").keep_done(Duration::from_secs(3_600));
    let builder = Jobs::builder(store).handle(kept, completes::<S>(source.clone(), ends));
    let builder = builder.handle(again_at_once("n"), completes::<S>(source, ends));
    let jobs = builder.open().await.unwrap();
    for kind in ["n", "kept"] {
        jobs.schedule(NewJob::new(kind, &1).unwrap()).await.unwrap();
    }
    until("all are done", || jobs.metrics().done == 2).await;
    let metrics = jobs.metrics();
    assert_eq!((metrics.fired, metrics.failed, metrics.retried, metrics.lost), (6, 4, 4, 0));
    assert_eq!(jobs.list(Filter::default()).await.unwrap(), []);
}

async fn an_attempt_that_does_not_commit_is_the_last_one_of_a_job_without_retries<S: Transacts>(
    store: S,
    source: S::Source,
) {
    let kind = Kind::new("n").retry(Retry::never());
    let handle = completes::<S>(source, |_| Ends::RollsBack);
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
    until("it is dead", || jobs.metrics().buried == 1).await;
    let dead = jobs.get(id).await.unwrap().unwrap();
    let error = dead.error.unwrap();
    assert!(error.contains("complete_in") && error.contains("expected a commit"), "{error}");
    assert_eq!((dead.state, dead.attempts, jobs.metrics().done), (State::Dead, 1, 0));
}

async fn an_attempt_that_does_not_commit_can_be_put_off<S: Transacts>(store: S, source: S::Source) {
    let runs = AtomicUsize::new(0);
    let ends = move |job: &Job<u32, S>| {
        job.snooze(ms(1));
        if runs.fetch_add(1, SeqCst) == 0 { Ends::RollsBack } else { Ends::Commits }
    };
    let builder = Jobs::builder(store).handle("n", completes::<S>(source, ends));
    let jobs = builder.open().await.unwrap();
    let id = jobs.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!((jobs.metrics().snoozed, jobs.metrics().failed), (1, 0));
    assert_eq!(jobs.get(id).await.unwrap(), None);
}

#[cfg(feature = "cron")]
async fn an_occurrence_that_was_not_committed_is_not_over<S: Transacts>(
    store: S,
    source: S::Source,
) {
    let ends = |job: &Job<u32, S>| if job.attempt == 1 { Ends::RollsBack } else { Ends::Commits };
    let kind = again_at_once("n");
    let builder = Jobs::builder(store).handle(kind, completes::<S>(source, ends));
    let jobs = builder.open().await.unwrap();
    let job = NewJob::new("n", &1).unwrap().key("each second");
    jobs.repeat(&wheelwork_jobs::Periodic::cron(job, "* * * * * *", "UTC").unwrap()).await.unwrap();
    until("two are done", || jobs.metrics().done >= 2).await;
    let metrics = jobs.metrics();
    assert!(metrics.retried + metrics.given_up >= metrics.done);
    assert_eq!(metrics.lost, 0);
}

async fn a_transaction_that_ends_after_its_handler_decides<S: Transacts>(
    store: S,
    source: S::Source,
) {
    let now = Arc::new(Notify::new());
    let later = now.clone();
    let ends = move |job: &Job<u32, S>| match (job.payload, job.attempt) {
        (commits, 1) => Ends::Later(later.clone(), commits == 1),
        _ => Ends::Commits,
    };
    let kind = again_at_once("n");
    let builder = Jobs::builder(store).handle(kind, completes::<S>(source, ends));
    let jobs = builder.open().await.unwrap();
    for (round, commits) in [(1, 1), (2, 0)] {
        let id = jobs.schedule(NewJob::new("n", &commits).unwrap()).await.unwrap();
        let ran = || jobs.metrics().fired == round && jobs.metrics().running == 0;
        until("the handler has returned", ran).await;
        assert!(jobs.get(id).await.unwrap().is_some());
        now.notify_one();
        until("it is done", || jobs.metrics().done == round).await;
        assert_eq!(jobs.get(id).await.unwrap(), None);
        assert_eq!(jobs.metrics().retried, round - 1);
    }
    assert_eq!((jobs.metrics().fired, jobs.metrics().lost), (3, 0));
}

/// PostgreSQL rolls back a transaction in which a statement has failed, and its `COMMIT` is no error.
#[tokio::test]
async fn an_attempt_whose_commit_fails_in_silence_has_failed() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let database = url.clone();
    let handle = move |job: Job<u32, Postgres>| {
        let url = database.clone();
        async move {
            let mut client = common::connect(&url).await;
            let transaction = client.transaction().await?;
            match (job.payload, job.attempt) {
                (1, 1) => {
                    job.complete_in(&transaction).await?;
                    transaction.batch_execute("SELECT 1 / 0").await.unwrap_err();
                }
                // The same before it was completed, and nobody looks at the error.
                (2, 1) => {
                    transaction.batch_execute("SELECT 1 / 0").await.unwrap_err();
                    let _ = job.complete_in(&transaction).await;
                }
                _ => job.complete_in(&transaction).await?,
            }
            Ok::<_, Failed>(transaction.commit().await?)
        }
    };
    let store = Postgres::new(&url).unwrap();
    let builder = Jobs::builder(store).handle(again_at_once("n"), handle);
    let jobs = builder.open().await.unwrap();
    for n in [1, 2] {
        jobs.schedule(NewJob::new("n", &n).unwrap()).await.unwrap();
    }
    until("both are done", || jobs.metrics().done == 2).await;
    let metrics = jobs.metrics();
    assert_eq!((metrics.failed, metrics.retried, metrics.lost), (2, 2, 0));
}
