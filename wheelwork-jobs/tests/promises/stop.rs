//! The end of a node.

use crate::common::{self, Shared, until};
use crate::on_every_store;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::Semaphore;
use wheelwork_jobs::{Condition, Job, Jobs, Kind, NewJob, Retry, ScheduleError, StopError};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A node that counts the runs of the kind "n", one at a time, each of which waits for a permit. Its beats are too rare
/// to find anything.
async fn gated<S: Shared>(store: S, gate: &Arc<Semaphore>) -> (Jobs<S>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let (count, pass) = (runs.clone(), gate.clone());
    let handle = move |_: Job<(), _>| {
        count.fetch_add(1, SeqCst);
        let pass = pass.clone();
        async move {
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok::<_, String>(())
        }
    };
    let builder = Jobs::builder(store).window(2 * HOUR).liveness(HOUR);
    let builder = builder.handle(Kind::new("n").concurrency(1), handle);
    (builder.open().await.unwrap(), runs)
}

fn gate(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits))
}

async fn a_stop_gives_the_rest_to_others_at_once_and_waits_for_what_runs(store: impl Shared) {
    let gate_of_first = gate(0);
    let (first, runs) = gated(store.clone(), &gate_of_first).await;
    let new = || NewJob::new("n", &()).unwrap();
    first.schedule(new()).await.unwrap();
    until("one runs", || runs.load(SeqCst) == 1).await;
    first.schedule(new()).await.unwrap();
    let waiting = first.schedule(new().due(HOUR)).await.unwrap();
    let (second, others_runs) = gated(store, &gate(2)).await;
    until("it hears of jobs", || second.health().listening == Some(true)).await;
    tokio::time::sleep(ms(300)).await; // its first look finds nothing
    assert_eq!((first.metrics().held, second.metrics().held), (3, 0));
    let stopping = first.clone();
    let stop = tokio::spawn(async move { stopping.stop(HOUR).await });
    until("the other has run what is due, and holds the rest", || {
        let metrics = second.metrics();
        (metrics.done, metrics.held) == (1, 1)
    })
    .await;
    assert!(!stop.is_finished());
    assert_eq!((first.metrics().held, first.metrics().running), (1, 1));
    gate_of_first.add_permits(1);
    let stopped = stop.await.unwrap().unwrap();
    assert_eq!((stopped.given_back, stopped.still_running), (2, 0));
    assert_eq!((first.metrics().done, first.metrics().held), (1, 0));

    assert!(second.reschedule(waiting, ms(0)).await.unwrap());
    until("the other has run it", || second.metrics().done == 2).await;
    assert_eq!((runs.load(SeqCst), others_runs.load(SeqCst)), (1, 2));
    assert_eq!(second.get(waiting).await.unwrap(), None);
    assert!(matches!(first.stop(ms(0)).await, Err(StopError::Stopped)));
    let refused = first.schedule(NewJob::new("n", &()).unwrap()).await;
    assert!(matches!(refused, Err(ScheduleError::Stopped { .. })));
}

async fn a_stop_does_not_wait_beyond_its_limit(store: impl Shared) {
    let (jobs, runs) = gated(store, &gate(0)).await;
    jobs.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
    until("it runs", || runs.load(SeqCst) == 1).await;
    let stopped = jobs.stop(ms(20)).await.unwrap();
    assert_eq!((stopped.given_back, stopped.still_running), (0, 1));
}

async fn the_drop_of_the_last_handle_gives_the_jobs_to_others(store: impl Shared) {
    let (first, _) = gated(store.clone(), &gate(0)).await;
    let waiting = first.schedule(NewJob::new("n", &()).unwrap().due(HOUR)).await.unwrap();
    let (second, runs) = gated(store, &gate(1)).await;
    assert_eq!((first.metrics().held, second.metrics().held), (1, 0));
    drop(first);
    until("the other holds it", || second.metrics().held == 1).await;
    assert!(second.reschedule(waiting, ms(0)).await.unwrap());
    until("the other has run it", || second.metrics().done == 1).await;
    assert_eq!((runs.load(SeqCst), second.metrics().taken_over), (1, 0));
}

/// One run goes on, so the node does not leave. Another one ends with this error, or well, when the stop has begun.
async fn others_take_what_a_run_leaves<S: Shared>(
    store: S,
    kind: impl Fn() -> Kind,
    jobs: usize,
    error: Option<&'static str>,
) {
    let gate = gate(0);
    let pass = gate.clone();
    let ends = move |job: Job<bool, S>| {
        let pass = pass.clone();
        async move {
            if job.payload {
                pending::<()>().await;
            }
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            error.map_or(Ok(()), |error| Err(error.to_owned()))
        }
    };
    let builder = || Jobs::builder(store.clone()).window(2 * HOUR).liveness(HOUR);
    let first = builder().handle(kind(), ends).open().await.unwrap();
    for n in 0..jobs {
        first.schedule(NewJob::new("n", &(n == 0)).unwrap()).await.unwrap();
    }
    until("two run", || first.metrics().running == 2).await;
    let fine = |_: Job<bool, S>| async { Ok::<_, String>(()) };
    let second = builder().handle(kind(), fine).open().await.unwrap();
    until("it hears of jobs", || second.health().listening == Some(true)).await;
    let stopping = first.clone();
    let stop = tokio::spawn(async move { stopping.stop(HOUR).await });
    until("it stops", || first.health().condition == Condition::Stopped).await;
    tokio::time::sleep(ms(300)).await; // the looks that are under way find nothing
    assert_eq!(second.metrics().claimed, 0);
    gate.add_permits(1);
    until("the other has run it", || second.metrics().done == 1).await;
    assert!(first.metrics().running == 1 && !stop.is_finished());
}

async fn a_run_that_fails_during_a_stop_is_made_again_by_others(store: impl Shared) {
    let kind = || Kind::new("n").retry(Retry::default().first(ms(1)));
    others_take_what_a_run_leaves(store, kind, 2, Some("again")).await;
}

async fn a_place_that_becomes_free_during_a_stop_is_taken_by_others(store: impl Shared) {
    let kind = || Kind::new("n").total_concurrency(2);
    others_take_what_a_run_leaves(store, kind, 3, None).await;
}

on_every_store! {
    a_run_that_fails_during_a_stop_is_made_again_by_others
    a_place_that_becomes_free_during_a_stop_is_taken_by_others
    a_stop_gives_the_rest_to_others_at_once_and_waits_for_what_runs
    a_stop_does_not_wait_beyond_its_limit
    the_drop_of_the_last_handle_gives_the_jobs_to_others
}

/// The claim waits in the store for a transaction of the user's, and the node leaves meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_comes_after_its_node_has_left_hides_no_job() {
    let (store, _folder) = common::redb();
    let (first, _) = gated(store.clone(), &gate(9)).await;
    let transaction = store.begin_write().await.unwrap();
    first.schedule_in(&transaction, &NewJob::new("n", &()).unwrap()).await.unwrap();
    tokio::time::sleep(ms(100)).await; // the node is told at once, and its claim waits
    first.stop(ms(1_000)).await.unwrap();
    transaction.commit().await.unwrap();
    let (second, _) = gated(store, &gate(9)).await;
    until("the other has run it", || second.metrics().done == 1).await;
}

/// A call keeps the number of the node, and waits for the transaction of a handler, which goes on after the stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_under_a_transaction_of_its_handler_gives_its_jobs_to_others() {
    let (store, _folder) = common::redb();
    let (gate, begun) = (gate(0), Arc::new(AtomicUsize::new(0)));
    let (writes, pass, begins) = (store.clone(), gate.clone(), begun.clone());
    let handle = move |_: Job<(), _>| {
        let (writes, pass, begins) = (writes.clone(), pass.clone(), begins.clone());
        async move {
            let _transaction = writes.begin_write().await.map_err(|error| error.to_string())?;
            begins.fetch_add(1, SeqCst);
            pass.acquire().await.map(drop).map_err(|error| error.to_string())
        }
    };
    let builder = Jobs::builder(store.clone()).window(2 * HOUR).handle("n", handle);
    let first = builder.open().await.unwrap();
    let new = || NewJob::new("n", &()).unwrap();
    first.schedule(new().due(HOUR)).await.unwrap();
    first.schedule(new()).await.unwrap();
    until("it has begun its transaction", || begun.load(SeqCst) == 1).await;
    let caller = first.clone();
    let call = tokio::spawn(async move { drop(caller.schedule(new()).await) });
    tokio::time::sleep(ms(100)).await; // the call waits for the transaction
    let stopped = first.stop(ms(20)).await.unwrap();
    assert_eq!((stopped.given_back, stopped.still_running), (1, 1));
    call.await.unwrap();
    gate.add_permits(1);
    let (second, _) = gated(store, &self::gate(9)).await;
    until("the other has run what was due, and holds the rest", || {
        let metrics = second.metrics();
        metrics.done >= 1 && metrics.held == 1
    })
    .await;
}
