//! Stores for tests: each test runs on both.

#![allow(dead_code)] // each test program uses a part

pub mod postgres;

use std::time::{Duration, Instant};
use tempfile::TempDir;
use wheelwork_jobs::{Jobs, JobsBuilder, Postgres, Redb, Store};

/// A fresh embedded store, and the folder that it is in.
pub fn redb() -> (Redb, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Redb::open(folder.path().join("jobs.redb")).unwrap(), folder)
}

/// A store in a fresh database. `None` if PostgreSQL is missing.
pub fn postgres() -> Option<Postgres> {
    Some(Postgres::new(&postgres::server()?.database()).unwrap())
}

/// A connection of a user's to the database of a URL.
pub async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs each of these async functions, which take a store, as a test on every store.
#[macro_export]
macro_rules! on_every_store {
    ($($name:ident)*) => {
        mod on_redb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (store, _folder) = $crate::common::redb();
                super::$name(store).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(store) = $crate::common::postgres() {
                    super::$name(store).await;
                }
            })*
        }
    };
}

/// Waits until a condition holds. It must come to hold some time.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes attempts until one is in time: on a busy machine, what should come before a due time can come after it. Each
/// attempt is told how much time it may take, and says whether it took less.
pub async fn in_time(mut attempt: impl AsyncFnMut(Duration) -> bool) {
    for doublings in 0..8 {
        if attempt(Duration::from_millis(250 << doublings)).await {
            return;
        }
    }
    panic!("half a minute was not enough");
}

/// Waits until a statement counts something. It must do so some time.
pub async fn until_counted(client: &tokio_postgres::Client, statement: &str) {
    let begun = Instant::now();
    while client.query_one(statement, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never counted: {statement}");
    }
}

/// Waits until a statement waits for what an open transaction has locked, in the database of the connection.
pub async fn until_one_waits(watcher: &tokio_postgres::Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until_counted(watcher, waiting).await;
}

/// Opens a node. On a busy machine, that can take longer than its calls may.
pub async fn opened<S: Store>(builder: impl Fn() -> JobsBuilder<S>) -> Jobs<S> {
    let begun = Instant::now();
    loop {
        match builder().open().await {
            Ok(jobs) => return jobs,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
    }
}

/// A store that nodes share.
pub trait Shared: Store + Clone {}
impl<S: Store + Clone> Shared for S {}
