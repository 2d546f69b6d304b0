//! Jobs that are cancelled or moved.

use crate::common::{Shared, in_time, until};
use crate::on_every_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
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

/// Waits until the node has no job in hand.
async fn rests<S: Shared>(jobs: &Jobs<S>) {
    until("nothing is held", || jobs.metrics().held + jobs.metrics().running == 0).await;
}

async fn a_cancelled_job_never_runs(store: impl Shared) {
    let (jobs, runs) = counting(store).await;
    let schedule =
        async |due: Duration| jobs.schedule(NewJob::new("n", &()).unwrap().due(due)).await.unwrap();
    let far = schedule(HOUR).await;
    assert!(jobs.cancel(far).await.unwrap());
    assert!(!jobs.cancel(JobId::from_u128(7)).await.unwrap());
    in_time(async |time| {
        let (begun, before) = (Instant::now(), runs.load(SeqCst));
        let near = schedule(time).await;
        let cancelled = jobs.cancel(near).await.unwrap();
        if begun.elapsed() >= time {
            rests(&jobs).await;
            return false;
        }
        assert!(cancelled && !jobs.cancel(near).await.unwrap());
        assert_eq!(jobs.metrics().held, 0);
        let last = schedule(time + ms(50)).await;
        until("the last has run", || runs.load(SeqCst) > before).await;
        rests(&jobs).await;
        assert_eq!((runs.load(SeqCst), jobs.get(last).await.unwrap()), (before + 1, None));
        true
    })
    .await;
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
    assert!(!jobs.reschedule(JobId::from_u128(7), HOUR).await.unwrap());
    in_time(async |time| {
        let (begun, before, lost) = (Instant::now(), runs.load(SeqCst), jobs.metrics().lost);
        let (sooner, later, away) =
            (schedule(HOUR).await, schedule(time).await, schedule(time).await);
        let moved = [
            jobs.reschedule(later, SystemTime::now() + 2 * time).await.unwrap(),
            client.reschedule(away, HOUR).await.unwrap(),
        ];
        let is_in_time = begun.elapsed() < time;
        assert!(client.reschedule(sooner, ms(50)).await.unwrap());
        until("both have run", || !is_in_time || runs.load(SeqCst) >= before + 2).await;
        if !is_in_time {
            // None of them may run during the next attempt.
            for job in [sooner, later, away] {
                jobs.cancel(job).await.unwrap();
            }
        }
        rests(&jobs).await;
        if is_in_time {
            assert_eq!(moved, [true; 2]);
            assert_eq!((runs.load(SeqCst), jobs.metrics().lost), (before + 2, lost));
            assert!(jobs.get(away).await.unwrap().unwrap().due > SystemTime::now() + HOUR / 2);
        }
        is_in_time
    })
    .await;
}

async fn a_job_that_is_moved_while_it_runs_runs_again(store: impl Shared) {
    let (runs, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, pass) = (runs.clone(), gate.clone());
    let handle = move |_: Job<(), _>| {
        let (first, pass) = (count.fetch_add(1, SeqCst) == 0, pass.clone());
        async move {
            if first {
                pass.acquire().await.map_err(|error| error.to_string())?.forget();
            }
            Ok::<_, String>(())
        }
    };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let job = jobs.schedule(NewJob::new("n", &()).unwrap()).await.unwrap();
    until("it runs", || runs.load(SeqCst) == 1).await;
    assert!(jobs.reschedule(job, ms(20)).await.unwrap());
    until("the second run is done", || jobs.metrics().done == 1).await;
    gate.add_permits(1);
    until("the first run has found that it is lost", || jobs.metrics().lost == 1).await;
    assert_eq!(jobs.get(job).await.unwrap(), None);
}

on_every_store! {
    a_cancelled_job_never_runs
    another_node_is_told_of_a_cancel
    a_job_runs_once_at_its_new_time
    a_job_that_is_moved_while_it_runs_runs_again
}
