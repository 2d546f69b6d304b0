//! The end of a node.

use crate::common::{Shared, until};
use crate::on_every_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, NewJob, ScheduleError, StopError};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A node that counts the runs of the kind "n", each of which takes so long.
async fn slow<S: Shared>(store: S, each: Duration) -> (Jobs<S>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let handle = move |_: Job<(), _>| {
        count.fetch_add(1, SeqCst);
        async move {
            tokio::time::sleep(each).await;
            Ok::<_, String>(())
        }
    };
    (Jobs::builder(store).handle("n", handle).open().await.unwrap(), runs)
}

async fn a_stop_waits_for_what_runs_and_gives_the_rest_to_others(store: impl Shared) {
    let (first, runs) = slow(store.clone(), ms(200)).await;
    first.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
    let waiting = first.schedule(NewJob::new("n", &()).unwrap().due(ms(900))).await.unwrap();
    until("one runs", || runs.load(SeqCst) == 1).await;
    let (second, others_runs) = slow(store, ms(0)).await;
    assert_eq!(second.metrics().held, 0);
    let stopped = first.stop(Duration::from_secs(60)).await.unwrap();
    assert_eq!((stopped.given_back, stopped.still_running), (1, 0));
    assert_eq!((first.metrics().done, first.metrics().held), (1, 0));

    until("the other has run it", || second.metrics().done == 1).await;
    assert_eq!((runs.load(SeqCst), others_runs.load(SeqCst)), (1, 1));
    assert_eq!(second.get(waiting).await.unwrap(), None);
    assert!(matches!(first.stop(ms(0)).await, Err(StopError::Stopped)));
    let refused = first.schedule(NewJob::new("n", &()).unwrap()).await;
    assert!(matches!(refused, Err(ScheduleError::Stopped { .. })));
}

async fn a_stop_does_not_wait_beyond_its_limit(store: impl Shared) {
    let (jobs, runs) = slow(store, Duration::from_secs(3_600)).await;
    jobs.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
    until("it runs", || runs.load(SeqCst) == 1).await;
    let stopped = jobs.stop(ms(20)).await.unwrap();
    assert_eq!((stopped.given_back, stopped.still_running), (0, 1));
}

async fn the_drop_of_the_last_handle_gives_the_jobs_to_others(store: impl Shared) {
    let (first, _) = slow(store.clone(), ms(0)).await;
    first.schedule(NewJob::new("n", &()).unwrap().due(ms(1_500))).await.unwrap();
    let (second, runs) = slow(store, ms(0)).await;
    drop(first);
    until("the other has run it", || second.metrics().done == 1).await;
    assert_eq!((runs.load(SeqCst), second.metrics().taken_over), (1, 0));
}

on_every_store! {
    a_stop_waits_for_what_runs_and_gives_the_rest_to_others
    a_stop_does_not_wait_beyond_its_limit
    the_drop_of_the_last_handle_gives_the_jobs_to_others
}
