//! Jobs that are cancelled or moved.

use crate::common::{Shared, until};
use crate::on_every_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{Job, JobId, Jobs, NewJob};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A node that counts the runs of the kind "n".
async fn counting<S: Shared>(store: S) -> (Jobs<S>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let handle = move |_: Job<(), _>| {
        count.fetch_add(1, SeqCst);
        async { Ok::<_, String>(()) }
    };
    (Jobs::builder(store).handle("n", handle).open().await.unwrap(), runs)
}

async fn a_cancelled_job_never_runs(store: impl Shared) {
    let (jobs, runs) = counting(store).await;
    let near = jobs.schedule(NewJob::new("n", &()).unwrap().due(ms(300))).await.unwrap();
    let far = jobs.schedule(NewJob::new("n", &()).unwrap().due(HOUR)).await.unwrap();
    assert!(jobs.cancel(near).await.unwrap());
    assert!(jobs.cancel(far).await.unwrap());
    assert!(!jobs.cancel(near).await.unwrap());
    assert!(!jobs.cancel(JobId::from_u128(7)).await.unwrap());
    assert_eq!(jobs.metrics().held, 0);
    let last = jobs.schedule(NewJob::new("n", &()).unwrap().due(ms(350))).await.unwrap();
    until("the last is done", || jobs.metrics().done == 1).await;
    assert_eq!((runs.load(SeqCst), jobs.get(last).await.unwrap()), (1, None));
}

async fn another_node_is_told_of_a_cancel(store: impl Shared) {
    let (node, runs) = counting(store.clone()).await;
    let client = Jobs::open(store).await.unwrap();
    let job = node.schedule(NewJob::new("n", &()).unwrap().due(Duration::from_secs(20))).await;
    assert_eq!(node.metrics().held, 1);
    assert!(client.cancel(job.unwrap()).await.unwrap());
    until("the node has dropped it", || node.metrics().held == 0).await;
    assert_eq!(runs.load(SeqCst), 0);
}

async fn a_job_runs_once_at_its_new_time(store: impl Shared) {
    let (jobs, runs) = counting(store.clone()).await;
    let client = Jobs::open(store).await.unwrap();
    let schedule =
        async |due: Duration| jobs.schedule(NewJob::new("n", &()).unwrap().due(due)).await.unwrap();
    let (sooner, later, away) =
        (schedule(HOUR).await, schedule(ms(200)).await, schedule(ms(400)).await);
    assert!(client.reschedule(sooner, ms(50)).await.unwrap());
    assert!(jobs.reschedule(later, SystemTime::now() + ms(600)).await.unwrap());
    assert!(client.reschedule(away, HOUR).await.unwrap());
    assert!(!jobs.reschedule(JobId::from_u128(7), HOUR).await.unwrap());
    until("two are done", || jobs.metrics().done == 2).await;
    tokio::time::sleep(ms(100)).await;
    assert_eq!((runs.load(SeqCst), jobs.metrics().lost), (2, 0));
    assert!(jobs.get(away).await.unwrap().unwrap().due > SystemTime::now() + HOUR / 2);
}

async fn a_job_that_is_moved_while_it_runs_runs_again(store: impl Shared) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let handle = move |_: Job<(), _>| {
        let first = count.fetch_add(1, SeqCst) == 0;
        async move {
            tokio::time::sleep(if first { ms(300) } else { ms(0) }).await;
            Ok::<_, String>(())
        }
    };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let job = jobs.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
    until("it runs", || runs.load(SeqCst) == 1).await;
    assert!(jobs.reschedule(job, ms(20)).await.unwrap());
    until("the second run is done", || jobs.metrics().done == 1).await;
    until("the first run has found that it is lost", || jobs.metrics().lost == 1).await;
    assert_eq!(jobs.get(job).await.unwrap(), None);
}

on_every_store! {
    a_cancelled_job_never_runs
    another_node_is_told_of_a_cancel
    a_job_runs_once_at_its_new_time
    a_job_that_is_moved_while_it_runs_runs_again
}
