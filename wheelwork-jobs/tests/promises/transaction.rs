//! Jobs in transactions of the user's.

use crate::common::{self, until};
use redb::{ReadableTable, ReadableTableMetadata, TableDefinition};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use wheelwork_jobs::{
    CompleteError, Job, Jobs, Kind, NewJob, Postgres, Redb, Retry, ScheduleError,
};

const EFFECTS: TableDefinition<u32, u32> = TableDefinition::new("effects");

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn idle(_: Job<u32, impl wheelwork_jobs::Store>) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn a_job_in_a_transaction_of_redb_exists_if_it_commits() {
    let (store, _folder) = common::redb();
    let jobs = Jobs::builder(store.clone()).handle("n", idle).open().await.unwrap();
    let job = || NewJob::new("n", &1).unwrap().key("k");
    let aborted = store.begin_write().await.unwrap();
    jobs.schedule_in(&aborted, &job()).await.unwrap();
    let twice = jobs.schedule_in(&aborted, &job()).await;
    assert!(matches!(twice, Err(ScheduleError::KeyTaken { .. })));
    drop(aborted);
    let committed = store.begin_write().await.unwrap();
    jobs.schedule_in(&committed, &job()).await.unwrap();
    assert_eq!(jobs.metrics().fired, 0);
    committed.commit().await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!(jobs.metrics().fired, 1);
}

#[tokio::test]
async fn a_job_in_a_transaction_of_postgres_exists_if_it_commits() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle("n", idle).open().await.unwrap();
    let mut client = common::connect(&url).await;
    let job = || NewJob::new("n", &1).unwrap().key("k");
    let aborted = client.transaction().await.unwrap();
    jobs.schedule_in(&aborted, &job()).await.unwrap();
    let twice = jobs.schedule_in(&aborted, &job()).await;
    assert!(matches!(twice, Err(ScheduleError::KeyTaken { .. })));
    aborted.rollback().await.unwrap();
    let committed = client.transaction().await.unwrap();
    jobs.schedule_in(&committed, &job()).await.unwrap();
    assert_eq!(jobs.metrics().fired, 0);
    committed.commit().await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!(jobs.metrics().fired, 1);
}

/// Every job fails at its first attempt, one half before its commit and the other half after it.
#[tokio::test]
async fn work_in_the_transaction_of_redb_is_done_once_though_handlers_fail() {
    let (store, _folder) = common::redb();
    let database = store.clone();
    let handle = move |job: Job<u32, Redb>| {
        let store = database.clone();
        async move {
            let transaction = store.begin_write().await.map_err(|e| e.to_string())?;
            job.complete_in(&transaction).await.map_err(|e| e.to_string())?;
            {
                let mut effects = transaction.open_table(EFFECTS).unwrap();
                let before = effects.get(job.payload).unwrap().map_or(0, |count| count.value());
                effects.insert(job.payload, before + 1).unwrap();
            }
            if job.attempt == 1 && job.payload.is_multiple_of(2) {
                return Err("before the commit".to_owned());
            }
            transaction.commit().await.unwrap();
            if job.payload % 4 == 1 { Err("after the commit".to_owned()) } else { Ok(()) }
        }
    };
    let kind = Kind::new("n").concurrency(1).retry(Retry::default().first(ms(1)));
    let jobs = Jobs::builder(store.clone()).handle(kind, handle).open().await.unwrap();
    let batch = (0..20).map(|n| NewJob::new("n", &n).unwrap());
    assert!(jobs.schedule_all(batch).await.iter().all(Result::is_ok));
    until("all have ended", || jobs.metrics().done + jobs.metrics().lost == 20).await;
    let read = store.begin_read().unwrap();
    let effects = read.open_table(EFFECTS).unwrap();
    assert!(effects.iter().unwrap().all(|entry| entry.unwrap().1.value() == 1));
    let metrics = jobs.metrics();
    assert_eq!((effects.len().unwrap(), metrics.done, metrics.retried), (20, 15, 10));
}

#[tokio::test]
async fn work_in_the_transaction_of_postgres_is_done_once_though_handlers_fail() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let client = common::connect(&url).await;
    client.batch_execute("CREATE TABLE effects (n bigint PRIMARY KEY)").await.unwrap();
    let client = Arc::new(Mutex::new(client));
    let shared = client.clone();
    let handle = move |job: Job<u32, Postgres>| {
        let client = shared.clone();
        async move {
            let mut client = client.lock().await;
            let transaction = client.transaction().await.map_err(|e| e.to_string())?;
            job.complete_in(&transaction).await.map_err(|e| e.to_string())?;
            let n = i64::from(job.payload);
            let insert = "INSERT INTO effects VALUES ($1)";
            transaction.execute(insert, &[&n]).await.map_err(|e| e.to_string())?;
            if job.attempt == 1 && job.payload.is_multiple_of(2) {
                return Err("before the commit".to_owned());
            }
            transaction.commit().await.map_err(|e| e.to_string())?;
            if job.payload % 4 == 1 { Err("after the commit".to_owned()) } else { Ok(()) }
        }
    };
    let kind = Kind::new("n").retry(Retry::default().first(ms(1)));
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let batch = (0..20).map(|n| NewJob::new("n", &n).unwrap());
    assert!(jobs.schedule_all(batch).await.iter().all(Result::is_ok));
    until("all have ended", || jobs.metrics().done + jobs.metrics().lost == 20).await;
    let row = client.lock().await.query_one("SELECT count(*) FROM effects", &[]).await.unwrap();
    let metrics = jobs.metrics();
    assert_eq!((row.get::<_, i64>(0), metrics.done, metrics.retried), (20, 15, 10));
}

#[tokio::test]
async fn a_job_that_was_cancelled_meanwhile_cannot_be_completed() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let client = Arc::new(Mutex::new(common::connect(&url).await));
    let (begun, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (begins, waits) = (begun.clone(), go_on.clone());
    let handle = move |job: Job<u32, Postgres>| {
        let (begins, waits, client) = (begins.clone(), waits.clone(), client.clone());
        async move {
            begins.fetch_add(1, SeqCst);
            waits.notified().await;
            let mut client = client.lock().await;
            let transaction = client.transaction().await.unwrap();
            match job.complete_in(&transaction).await {
                Err(CompleteError::Lost { id }) if id == job.id => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }
    };
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
    until("it runs", || begun.load(SeqCst) == 1).await;
    assert!(jobs.cancel(id).await.unwrap());
    go_on.notify_one();
    until("it has found out", || jobs.metrics().lost == 1).await;
}

/// The commit of a transaction does not notify, and so waits for no other one. The library does it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_in_a_long_transaction_of_another_program_runs_after_its_commit() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = || Postgres::new(&url).unwrap();
    // So long a liveness that no beat finds the job.
    let hour = Duration::from_secs(3_600);
    let builder = Jobs::builder(store()).liveness(hour).window(hour);
    let node = builder.handle("n", idle).open().await.unwrap();
    let other = Jobs::builder(store()).liveness(hour).window(hour).open().await.unwrap();
    let mut client = common::connect(&url).await;
    for (n, open_for) in [0, 30, 1_000].into_iter().enumerate() {
        let transaction = client.transaction().await.unwrap();
        let near = NewJob::new("n", &1).unwrap().due(ms(0));
        other.schedule_in(&transaction, &near).await.unwrap();
        other.schedule_in(&transaction, &NewJob::new("n", &1).unwrap()).await.unwrap();
        tokio::time::sleep(ms(open_for)).await;
        assert_eq!(node.metrics().done, 2 * n as u64);
        transaction.commit().await.unwrap();
        until("both are done", || node.metrics().done == 2 * (n as u64 + 1)).await;
    }
}

/// A transaction that has notified cannot be prepared, and its commit waits for all others that notify.
#[tokio::test]
async fn a_transaction_of_a_user_does_not_notify() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let mut client = common::connect(&url).await;
    let transaction = client.transaction().await.unwrap();
    jobs.schedule_in(&transaction, &NewJob::new("n", &1).unwrap()).await.unwrap();
    transaction.batch_execute("PREPARE TRANSACTION 'user'").await.unwrap();
    drop(transaction);
    client.batch_execute("ROLLBACK PREPARED 'user'").await.unwrap();
}
