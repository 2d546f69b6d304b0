//! Random histories of a store against a model: whatever several nodes and users do in any order, with
//! nodes that end between any two statements.
//!
//! `PROPTEST_CASES=1000` tries more histories.

mod model;
mod play;
mod step;

use play::play;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use step::{Step, steps};
use wheelwork_jobs::store::Store;
use wheelwork_jobs::{Postgres, Redb};

/// Tries random histories. One that differs from the model is shrunk and printed.
fn try_histories(play: impl Fn(Vec<Step>) -> Result<(), TestCaseError>) {
    let cases = std::env::var_os("PROPTEST_CASES").map_or(100, |_| Config::default().cases);
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    if let Err(error) = TestRunner::new(config).run(&steps(), play) {
        panic!("{error}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn histories_of_redb_are_those_of_the_model() {
    let runtime = runtime();
    try_histories(|steps| {
        let memory = redb::backends::InMemoryBackend::new();
        let database = redb::Database::builder().create_with_backend(memory).unwrap();
        let store = Redb::with(std::sync::Arc::new(database)).unwrap();
        runtime.block_on(play(store, false, &steps))
    });
}

/// All histories share the tables and the connections, because making them takes longer than a history.
/// So does `TRUNCATE`, which makes new files.
const EMPTY: &str = "DELETE FROM wheelwork_jobs; DELETE FROM wheelwork_nodes";

#[test]
fn histories_of_postgres_are_those_of_the_model() {
    let Some(server) = crate::common::postgres::server() else { return };
    let runtime = runtime();
    let url = server.database();
    let client = runtime.block_on(crate::common::connect(&url));
    let store = Postgres::new(&url).unwrap();
    runtime.block_on(store.prepare()).unwrap();
    try_histories(|steps| {
        runtime.block_on(async {
            client.batch_execute(EMPTY).await.unwrap();
            play(store.clone(), true, &steps).await
        })
    });
}
