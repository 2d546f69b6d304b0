//! Successors: jobs that a handler stores in the transaction that ends its own.

use crate::common::{self, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::Mutex;
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Postgres, Redb, Retry, State};

const LAST: u32 = 20;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The next one of the chain has its key and is due at once.
fn next(job: &Job<u32, impl wheelwork_jobs::Store>) -> NewJob {
    NewJob::new("n", &(job.payload + 1)).unwrap().key("chain")
}

/// Half of them fail at the first attempt, before the commit or after it.
fn fails(job: &Job<u32, impl wheelwork_jobs::Store>, committed: bool) -> Result<(), Failed> {
    let fails = job.attempt == 1 && job.payload % 4 == u32::from(committed);
    if fails { Err("on purpose".into()) } else { Ok(()) }
}

fn kind() -> Kind {
    Kind::new("n").retry(Retry::default().first(Duration::from_millis(1)))
}

/// Each of the chain was done once, so it has neither ended early nor split.
async fn chain_ends<S: wheelwork_jobs::Store>(jobs: &Jobs<S>) {
    jobs.schedule(NewJob::new("n", &1).unwrap().key("chain")).await.unwrap();
    // One that fails after its commit counts as lost: its job is not there any more.
    let failed_after = (1..=LAST).filter(|n| n % 4 == 1).count() as u64;
    let done = u64::from(LAST) - failed_after;
    until("the chain has ended", || {
        let metrics = jobs.metrics();
        metrics.done >= done && metrics.done + metrics.lost >= u64::from(LAST)
    })
    .await;
    let metrics = jobs.metrics();
    assert_eq!((metrics.done, metrics.lost), (done, failed_after));
    assert_eq!(metrics.retried, (1..=LAST).filter(|n| n % 4 == 0).count() as u64);
    assert_eq!(jobs.get_by_key("chain").await.unwrap(), None);
}

#[tokio::test]
async fn a_chain_of_successors_in_redb_neither_ends_nor_splits() {
    let (store, _folder) = common::redb();
    let shared = store.clone();
    let handle = move |job: Job<u32, Redb>| {
        let store = shared.clone();
        async move {
            let transaction = store.begin_write().await?;
            job.complete_in(&transaction).await?;
            if job.payload < LAST {
                job.schedule_in(&transaction, &next(&job)).await?;
            }
            fails(&job, false)?;
            transaction.commit().await?;
            fails(&job, true)
        }
    };
    let jobs = Jobs::builder(store).handle(kind(), handle).open().await.unwrap();
    chain_ends(&jobs).await;
}

#[tokio::test]
async fn a_chain_of_successors_in_postgres_neither_ends_nor_splits() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let client = Arc::new(Mutex::new(common::connect(&url).await));
    let handle = move |job: Job<u32, Postgres>| {
        let client = client.clone();
        async move {
            let mut client = client.lock().await;
            let transaction = client.transaction().await?;
            job.complete_in(&transaction).await?;
            if job.payload < LAST {
                job.schedule_in(&transaction, &next(&job)).await?;
            }
            fails(&job, false)?;
            transaction.commit().await?;
            fails(&job, true)
        }
    };
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle(kind(), handle).open().await.unwrap();
    chain_ends(&jobs).await;
}

/// It is a new job: the end of the run that has stored it is not its own.
#[tokio::test]
async fn a_successor_may_have_the_id_of_its_job() {
    let (store, _folder) = common::redb();
    let tick = NewJob::new("n", &0).unwrap();
    let (shared, next, runs) = (store.clone(), tick.clone(), AtomicU32::new(0));
    let handle = move |job: Job<u32, Redb>| {
        let (store, next, number) = (shared.clone(), next.clone(), runs.fetch_add(1, SeqCst) + 1);
        async move {
            let transaction = store.begin_write().await?;
            job.complete_in(&transaction).await?;
            if number < LAST {
                job.schedule_in(&transaction, &next).await?;
            }
            transaction.commit().await?;
            let again = store.begin_write().await?;
            assert!(job.complete_in(&again).await.is_err(), "it has ended its successor");
            drop(again);
            if number % 2 == 0 { Err::<(), Failed>("on purpose".into()) } else { Ok(()) }
        }
    };
    let kind = Kind::new("n").retry(Retry::never());
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    jobs.schedule(tick).await.unwrap();
    let half = u64::from(LAST / 2);
    until("the chain has ended", || {
        let metrics = jobs.metrics();
        metrics.done + metrics.lost + metrics.buried >= 2 * half
    })
    .await;
    let metrics = jobs.metrics();
    assert_eq!((metrics.done, metrics.lost, metrics.buried), (half, half, 0));
    assert_eq!(jobs.list(Default::default()).await.unwrap(), []);
}

/// A handler that is cancelled meanwhile leaves no successor.
#[tokio::test]
async fn a_cancelled_job_has_no_successor() {
    let (store, _folder) = common::redb();
    let shared = (store.clone(), Arc::new(tokio::sync::Notify::new()));
    let (_, go_on) = shared.clone();
    let handle = move |job: Job<u32, Redb>| {
        let (store, go_on) = shared.clone();
        async move {
            go_on.notified().await;
            let transaction = store.begin_write().await?;
            job.schedule_in(&transaction, &NewJob::new("n", &2).unwrap()).await?;
            job.complete_in(&transaction).await?;
            transaction.commit().await?;
            Ok::<(), Failed>(())
        }
    };
    let kind = Kind::new("n").retry(Retry::never());
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
    until("it runs", || jobs.metrics().running == 1).await;
    assert_eq!(jobs.get(id).await.unwrap().unwrap().state, State::Claimed);
    assert!(jobs.cancel(id).await.unwrap());
    go_on.notify_one();
    until("it has found out", || jobs.metrics().lost == 1).await;
    assert_eq!(jobs.list(Default::default()).await.unwrap(), []);
}
