//! Marks of unique jobs whose periods are over are deleted, while others store the same.

use crate::common::{self, Shared, connect, until_one_waits};
use crate::on_every_store;
use std::time::Duration;
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::{Job, Jobs, NewJob, Postgres};

on_every_store! {
    marks_are_deleted_while_the_same_is_stored_again
}

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn far(kind: &str, payload: u32) -> NewJob {
    NewJob::new(kind, &payload).unwrap().due(10 * HOUR)
}

/// A node that beats often.
async fn node<S: Shared>(store: S) -> Jobs<S> {
    let handle = |_: Job<u32, S>| async { Ok::<_, String>(()) };
    Jobs::builder(store).liveness(ms(300)).handle("n", handle).open().await.unwrap()
}

async fn marks_of(client: &tokio_postgres::Client) -> i64 {
    client.query_one("SELECT count(*) FROM wheelwork_unique", &[]).await.unwrap().get(0)
}

/// Each call stores its job, or has the id of one that was stored.
async fn marks_are_deleted_while_the_same_is_stored_again(store: impl Shared) {
    let (jobs, other) = (node(store.clone()).await, node(store.clone()).await);
    let call = |n: u64| {
        let (jobs, store) =
            (if n.is_multiple_of(2) { &jobs } else { &other }.clone(), store.clone());
        tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..50 {
                let job = far("m", 1).unique_for(ms(fastrand::u64(0..4)));
                ids.push(jobs.schedule(job).await.unwrap());
                store.unmark(10).await.unwrap();
            }
            ids
        })
    };
    for calls in (0..4).map(call).collect::<Vec<_>>() {
        for id in calls.await.unwrap() {
            assert!(jobs.get(id).await.unwrap().is_some(), "job {id} was acknowledged");
        }
    }
    let last = far("m", 1).unique_for(HOUR);
    tokio::time::sleep(ms(5)).await;
    assert_eq!(jobs.schedule(last.clone()).await.unwrap(), last.id());
    while store.unmark(10).await.unwrap() > 0 {}
    assert_eq!(jobs.schedule(far("m", 1).unique_for(HOUR)).await.unwrap(), last.id());
}

#[tokio::test]
async fn a_mark_that_is_over_is_deleted_or_taken() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let (mut user, watcher) = (connect(&url).await, connect(&url).await);
    let (over, again) = (far("n", 1).unique_for(ms(0)), far("n", 1).unique_for(HOUR));
    jobs.schedule(over.clone()).await.unwrap();
    let takes = user.transaction().await.unwrap();
    assert_eq!(jobs.schedule_in(&takes, &again).await.unwrap(), again.id());
    assert_eq!(store.unmark(10).await.unwrap(), 0);
    takes.commit().await.unwrap();
    assert_eq!(store.unmark(10).await.unwrap(), 0);
    assert_eq!(jobs.schedule(far("n", 1).unique_for(HOUR)).await.unwrap(), again.id());

    let (over, again) = (far("n", 2).unique_for(ms(0)), far("n", 2).unique_for(HOUR));
    jobs.schedule(over).await.unwrap();
    let deletes = user.transaction().await.unwrap();
    let delete = "DELETE FROM wheelwork_unique WHERE until <= now()";
    assert_eq!(deletes.execute(delete, &[]).await.unwrap(), 1);
    let storing = tokio::spawn({
        let (jobs, again) = (jobs.clone(), again.clone());
        async move { jobs.schedule(again).await.unwrap() }
    });
    until_one_waits(&watcher).await;
    deletes.commit().await.unwrap();
    assert_eq!(storing.await.unwrap(), again.id());
    assert_eq!(jobs.schedule(far("n", 2).unique_for(HOUR)).await.unwrap(), again.id());
    assert_eq!((store.unmark(10).await.unwrap(), marks_of(&user).await), (0, 2));
}
