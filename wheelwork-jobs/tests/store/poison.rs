//! Jobs that end their process each time they run.

use crate::common::{self, until};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Claim, Insert, NodeId, Store};
use wheelwork_jobs::{Filter, Job, Jobs, Kind, NewJob, Postgres};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A node that dies now. Returns what it has claimed.
async fn dying(store: &impl Store) -> (NodeId, Vec<Claim>) {
    let node = store.join(None, &[], ms(0)).await.unwrap().node;
    let claimed = store.claim(node, ms(1_000), &[("n".into(), 10)]).await.unwrap();
    (node, claimed.into_iter().map(|job| job.claim).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_begins_again_and_again_and_never_ends_is_buried() {
    let Some(store) = common::postgres() else { return };
    store.prepare().await.unwrap();
    let jobs = [0, 1].map(|n| NewJob::new("n", &n).unwrap());
    let [poison, innocent] = jobs.each_ref().map(NewJob::id);
    let inserts = jobs.map(|job| Insert { job, claim: false });
    store.insert(None, ms(1_000), &inserts).await.unwrap();
    for round in 1..=4 {
        let (node, claims) = dying(&store).await;
        assert_eq!(claims.len(), 2);
        let poisons: Vec<_> = claims.into_iter().filter(|claim| claim.id == poison).collect();
        let started = store.start(node, &poisons).await.unwrap();
        assert_eq!((started[0].claim, started[0].starts), (poisons[0], round));
        assert_eq!(store.take_over().await.unwrap(), 2);
        assert!(store.start(node, &poisons).await.unwrap().is_empty());
    }
    let runs = Arc::new(Mutex::new(Vec::new()));
    let notes = runs.clone();
    let handle = move |job: Job<u32, _>| {
        notes.lock().unwrap().push((job.payload, job.attempt, job.claims));
        async { Ok::<_, String>(()) }
    };
    let kind = Kind::new("n").max_claims(4);
    let node = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let ended = || node.metrics().done == 1 && node.metrics().buried == 1;
    until("one is done and one is dead", ended).await;
    assert_eq!(*runs.lock().unwrap(), [(1, 1, 5)]);
    let dead = node.list(Filter { dead: Some(true), ..Filter::default() }).await.unwrap();
    assert_eq!(dead[0].id, poison);
    assert_eq!(dead[0].error.as_deref(), Some("it began at least 4 times and never ended"));
    assert_eq!(node.get(innocent).await.unwrap(), None);

    // With new attempts it may begin again.
    assert!(node.revive(poison).await.unwrap());
    until("it is done as well", || node.metrics().done == 2).await;
    assert_eq!(runs.lock().unwrap()[1], (0, 1, 1));
}

/// The process of many jobs may end because of one: the others have not begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_begins_is_counted() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let insert = |n: u32| Insert { job: NewJob::new("n", &n).unwrap(), claim: false };
    store.insert(None, ms(1_000), &[0, 1, 2].map(insert)).await.unwrap();
    assert_eq!(dying(&store).await.1.len(), 3);
    assert_eq!(store.take_over().await.unwrap(), 3);
    let (begins, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, goes_on) = (begins.clone(), go_on.clone());
    let handle = move |_: Job<u32, _>| {
        let (begun, goes_on) = (begun.clone(), goes_on.clone());
        async move {
            begun.notify_one();
            goes_on.notified().await;
            Ok::<_, String>(())
        }
    };
    let kind = Kind::new("n").concurrency(1);
    let node = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    begins.notified().await;
    let client = common::connect(&url).await;
    let starts = "SELECT sum(starts)::bigint, min(claims) FROM wheelwork_jobs";
    let row = client.query_one(starts, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 2));
    until("all are done", || {
        go_on.notify_one();
        node.metrics().done == 3
    })
    .await;
}
