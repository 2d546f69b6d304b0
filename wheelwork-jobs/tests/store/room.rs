//! Jobs for which a node has no place just now. No beat comes that would find them.

use crate::common::{Shared, connect, postgres, until};
use crate::on_every_store;
use crate::tests::flaky::Hindered;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Postgres};

on_every_store! {
    a_due_job_takes_the_place_that_an_insertion_has_not_used
    a_due_job_takes_the_place_of_a_later_one_after_an_error
    a_job_takes_the_place_of_one_that_was_cancelled
    a_due_job_that_is_dropped_leaves_the_queue
    an_urgent_job_is_claimed_when_a_quarter_has_ended
}

const HOUR: Duration = Duration::from_secs(3_600);

fn job(kind: &str) -> NewJob {
    NewJob::new(kind, &0).unwrap()
}

/// A node that holds one job of the kind `n`, and runs those of the kind `stays` for ever.
async fn node<S: Shared>(store: Hindered<S>) -> Jobs<Hindered<S>> {
    let fine = |_: Job<u32, _>| async { Ok::<_, String>(()) };
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let builder = Jobs::builder(store).liveness(3 * HOUR).window(3 * HOUR);
    let builder = builder.handle(Kind::new("n").most_held(1), fine).handle("stays", stays);
    let node = builder.open().await.unwrap();
    until("it hears of jobs", || node.health().listening == Some(true)).await;
    // A look that is under way would have the place.
    tokio::time::sleep(Duration::from_millis(300)).await;
    node
}

async fn a_due_job_takes_the_place_that_an_insertion_has_not_used<S: Shared>(store: S) {
    let hindered = Hindered::new(store.clone(), 0);
    let hindrance = hindered.hindrance.clone();
    let node = node(hindered).await;
    let inserting = node.clone();
    let far = tokio::spawn(async move { inserting.schedule(job("n").due(100 * HOUR)).await });
    hindrance.come.acquire().await.unwrap().forget();
    // The insertion has the only place.
    let other = Jobs::builder(store).window(3 * HOUR).open().await.unwrap();
    other.schedule(job("n")).await.unwrap();
    other.schedule(job("stays")).await.unwrap();
    until("the node has looked for both", || node.metrics().running == 1).await;
    hindrance.gate.add_permits(1);
    far.await.unwrap().unwrap();
    until("the other is done", || node.metrics().done == 1).await;
}

async fn a_due_job_takes_the_place_of_a_later_one_after_an_error<S: Shared>(store: S) {
    let hindered = Hindered::new(store.clone(), 1);
    let hindrance = hindered.hindrance.clone();
    let node = node(hindered).await;
    node.schedule(job("n").due(HOUR)).await.unwrap();
    hindrance.failures.add_permits(1);
    // The node looks for the other kind first, and fails.
    let other = Jobs::builder(store).window(3 * HOUR).open().await.unwrap();
    other.schedule(job("n")).await.unwrap();
    until("the job is done", || node.metrics().done == 1).await;
}

/// No run ends that would make room.
async fn a_job_takes_the_place_of_one_that_was_cancelled(store: impl Shared) {
    let node = node(Hindered::new(store, 2)).await;
    let held = node.schedule(job("n").due(HOUR)).await.unwrap();
    node.schedule(job("n").due(2 * HOUR)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await; // a look that is under way would find it
    assert!(node.cancel(held).await.unwrap());
    until("the later one is held", || node.metrics().claimed == 2).await;
}

/// The only place to run is taken for ever.
async fn a_due_job_that_is_dropped_leaves_the_queue<S: Shared>(store: S) {
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let builder = Jobs::builder(store).handle(Kind::new("n").concurrency(1), stays);
    let node = builder.open().await.unwrap();
    let new = || job("n").priority(3);
    node.schedule(new()).await.unwrap();
    until("it runs", || node.metrics().running == 1).await;
    let cancelled = node.schedule(new()).await.unwrap();
    let moved = node.schedule(new()).await.unwrap();
    node.schedule(new()).await.unwrap();
    let queued = || node.0.node.queued(0);
    until("all are due", || queued() == 3).await;
    assert!(node.cancel(cancelled).await.unwrap());
    assert_eq!(queued(), 2);
    assert!(node.reschedule(moved, 100 * HOUR).await.unwrap());
    assert_eq!(queued(), 1);
    assert!(node.pause("n").await.unwrap());
    until("the last is let go", || queued() == 0).await;
}

/// Three are held. A quarter of these is one job, however many of the others are still in the queue.
async fn an_urgent_job_is_claimed_when_a_quarter_has_ended<S: Shared>(store: S) {
    let gate = Arc::new(Semaphore::new(0));
    let pass = gate.clone();
    let waits = move |_: Job<u32, S>| {
        let pass = pass.clone();
        async move {
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok::<_, String>(())
        }
    };
    let builder = Jobs::builder(store).liveness(3 * HOUR).window(3 * HOUR);
    let node = builder.handle(Kind::new("n").concurrency(1).most_held(3), waits);
    let node = node.open().await.unwrap();
    for _ in 0..3 {
        node.schedule(job("n")).await.unwrap();
    }
    until("three are held", || (node.metrics().held, node.metrics().running) == (3, 1)).await;
    node.schedule(job("n").priority(9)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await; // the looks that are under way find no room
    gate.add_permits(1);
    until("the urgent one is claimed", || node.metrics().claimed == 4).await;
    assert_eq!(node.metrics().done, 1);
    gate.add_permits(3);
    until("all are done", || node.metrics().done == 4).await;
}

/// A failover has lost the claim, and the node claims the job once more.
#[tokio::test]
async fn a_claim_that_was_lost_and_comes_again_takes_one_place() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let builder = Jobs::builder(Postgres::new(&url).unwrap()).liveness(Duration::from_secs(3));
    let node = builder.window(HOUR).handle("n", stays).open().await.unwrap();
    node.schedule(job("n").due(HOUR / 2)).await.unwrap();
    until("the node has it", || node.metrics().held == 1).await;
    let user = connect(&url).await;
    let lose = "UPDATE wheelwork_jobs SET owner = NULL, epoch = epoch - 1";
    user.batch_execute(lose).await.unwrap();
    let free = "SELECT count(*) FROM wheelwork_jobs WHERE owner IS NULL";
    while user.query_one(free, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    node.schedule(job("n").due(HOUR / 2)).await.unwrap(); // the answer to the claim has come by then
    until("the node has the second", || node.metrics().held >= 2).await;
    assert_eq!(node.metrics().held, 2);
    node.stop(Duration::from_secs(60)).await.unwrap();
}
