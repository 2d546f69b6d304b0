//! Stores for tests: each test runs on both.

use std::time::{Duration, Instant};
use tempfile::TempDir;
use wheelwork_jobs::{Redb, Store};

/// A fresh store, and what must outlive it.
pub struct Fresh<S> {
    pub store: S,
    _keep: Option<TempDir>,
}

/// An embedded store in a folder of its own.
pub fn redb() -> Fresh<Redb> {
    let folder = tempfile::tempdir().unwrap();
    let store = Redb::open(folder.path().join("jobs.redb")).unwrap();
    Fresh { store, _keep: Some(folder) }
}

/// Runs each of these async functions, which take a store, as a test on every store.
#[macro_export]
macro_rules! on_every_store {
    ($($(#[$attribute:meta])* $name:ident)*) => {
        mod on_redb {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fresh = $crate::common::redb();
                super::$name(fresh.store.clone()).await;
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

/// A store that a test can share among nodes.
pub trait Shared: Store + Clone {}
impl<S: Store + Clone> Shared for S {}
