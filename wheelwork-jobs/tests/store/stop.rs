//! A stop while the store is slow.

use crate::common::Shared;
use crate::on_every_store;
use crate::tests::flaky::Hindered;
use std::time::Duration;
use wheelwork_jobs::{Condition, Jobs, NewJob, ScheduleError};

on_every_store! { a_stop_stores_what_waits_for_the_store }

/// More than one insertion takes.
const MANY: usize = 2_500;

async fn a_stop_stores_what_waits_for_the_store(store: impl Shared) {
    let hindered = Hindered::new(store, 0);
    let hindrance = hindered.hindrance.clone();
    let jobs = Jobs::open(hindered).await.unwrap();
    let far = |n| NewJob::new("n", &n).unwrap().due(Duration::from_secs(3_600));
    let caller = jobs.clone();
    let calls = tokio::spawn(async move { caller.schedule_all((0..MANY).map(far)).await });
    hindrance.come.acquire().await.unwrap().forget();
    tokio::time::sleep(Duration::from_millis(100)).await; // the others come into the queue
    let stopping = jobs.clone();
    let stop = tokio::spawn(async move { stopping.stop(Duration::from_secs(60)).await });
    while jobs.health().condition != Condition::Stopped {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await; // the stop waits for the insertion
    hindrance.gate.add_permits(MANY);
    for result in calls.await.unwrap() {
        // On a slow machine, some come after the stop.
        assert!(matches!(result, Ok(_) | Err(ScheduleError::Stopped { .. })), "{result:?}");
    }
    stop.await.unwrap().unwrap();
}
