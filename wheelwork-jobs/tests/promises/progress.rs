//! What runs report of their progress.

use crate::common::{Shared, postgres, until};
use crate::on_every_store;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use wheelwork_jobs::{
    CancellationToken, Job, JobId, Jobs, Kind, NewJob, Postgres, Progress, Retry,
};

on_every_store! {
    the_last_report_is_seen_while_the_job_runs
    runs_that_report_all_the_time_keep_no_other_one_waiting
}

async fn seen<S: Shared>(jobs: &Jobs<S>, id: JobId, done: u64) -> Progress {
    let begun = Instant::now();
    loop {
        let job = jobs.get(id).await.unwrap().unwrap();
        if let Some(progress) = job.progress.filter(|progress| progress.done == done) {
            return progress;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no report of {done} in a minute");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn the_last_report_is_seen_while_the_job_runs(store: impl Shared) {
    let gate = Arc::new(Semaphore::new(0));
    let pass = gate.clone();
    let handle = move |job: Job<(), _>| {
        let pass = pass.clone();
        async move {
            // Far more than are written.
            for n in 1..=10_000 {
                job.set_progress(n, 20_000, "half <of> it");
            }
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            job.set_progress(20_000, 0, &"é\0".repeat(300));
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            if job.attempt == 1 { Err("again".to_owned()) } else { Ok(()) }
        }
    };
    let slow = Kind::new("slow").retry(Retry::default().first(Duration::from_secs(3_600)));
    let jobs = Jobs::builder(store).handle(slow, handle).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("slow", &()).unwrap()).await.unwrap();
    let half = seen(&jobs, id, 10_000).await;
    assert_eq!((half.of, &*half.text), (20_000, "half <of> it"));
    gate.add_permits(1);
    let whole = seen(&jobs, id, 20_000).await;
    assert_eq!((whole.of, whole.text), (0, "é".repeat(200)));
    // A report is of its run alone.
    gate.add_permits(1);
    until("it has failed", || jobs.metrics().retried == 1).await;
    assert_eq!(jobs.get(id).await.unwrap().unwrap().progress, None);
    jobs.cancel(id).await.unwrap();
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

/// There are more of them than go in one call, and each reports again before the next call.
async fn runs_that_report_all_the_time_keep_no_other_one_waiting<S: Shared>(store: S) {
    let enough = CancellationToken::new();
    let ends = enough.clone();
    let handle = move |job: Job<(), S>| {
        let ends = ends.clone();
        async move {
            while !ends.is_cancelled() {
                job.set_progress(1, 2, "busy");
                tokio::task::yield_now().await;
            }
            Ok::<_, String>(())
        }
    };
    let builder = Jobs::builder(store).handle(Kind::new("busy").concurrency(150), handle);
    let jobs = builder.open().await.unwrap();
    let new = |_| NewJob::new("busy", &()).unwrap();
    for id in jobs.schedule_all((0..150).map(new)).await {
        seen(&jobs, id.unwrap(), 1).await;
    }
    enough.cancel();
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

/// A row is locked that one report is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_cannot_be_stored_hinders_nothing() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let gate = Arc::new(Semaphore::new(0));
    let pass = gate.clone();
    let handle = move |job: Job<u64, Postgres>| {
        let pass = pass.clone();
        async move {
            job.set_progress(job.payload, 2, "€");
            pass.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok::<(), String>(())
        }
    };
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle("slow", handle).open().await.unwrap();
    let new = |n: u64| NewJob::new("slow", &n).unwrap().due(Duration::from_secs(1));
    let (first, second) = (new(1), new(2));
    let ids = [first.id(), second.id()];
    assert!(jobs.schedule_all([first, second]).await.iter().all(Result::is_ok));
    let mut client = crate::common::connect(&url).await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!("SELECT FROM wheelwork_jobs WHERE id = '{}' FOR UPDATE", ids[0]);
    transaction.batch_execute(&lock).await.unwrap();
    assert_eq!(seen(&jobs, ids[1], 2).await.text, "€");
    transaction.rollback().await.unwrap();
    gate.add_permits(2);
    until("both are done", || jobs.metrics().done == 2).await;
    assert_eq!(jobs.metrics().store_errors, 0);
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}
