//! Runs that are told to end.

use crate::common::{Shared, until};
use crate::on_every_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Retry};

on_every_store! {
    a_handler_is_told_at_the_time_limit
    a_handler_that_does_not_listen_is_dropped_after_the_time_limit
    a_handler_is_told_when_its_job_is_cancelled
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn kind() -> Kind {
    Kind::new("n").retry(Retry::never()).concurrency(1)
}

async fn a_handler_is_told_at_the_time_limit<S: Shared>(store: S) {
    let handle = |job: Job<u32, S>| async move {
        if job.payload == 0 {
            job.cancellation().cancelled().await;
        }
        Err::<(), _>(job.cancellation().is_cancelled().to_string())
    };
    let kind = kind().time_limit(ms(50));
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let told = async |payload: u32, number| {
        let id = jobs.schedule(NewJob::new("n", &payload).unwrap()).await.unwrap();
        until("it has ended", || jobs.metrics().buried == number).await;
        jobs.get(id).await.unwrap().unwrap().error.unwrap() == "true"
    };
    assert!(told(0, 1).await);
    // A busy machine may reach the limit before a short one can look.
    let mut number = 2;
    while told(1, number).await {
        assert!(number < 50, "a short one is told at once");
        number += 1;
    }
}

async fn a_handler_that_does_not_listen_is_dropped_after_the_time_limit<S: Shared>(store: S) {
    let handle = |job: Job<u32, S>| async move {
        if job.payload == 0 {
            std::future::pending::<()>().await;
        }
        Ok::<_, String>(())
    };
    let kind = kind().time_limit(ms(50));
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let stuck = jobs.schedule(NewJob::new("n", &0).unwrap()).await.unwrap();
    jobs.schedule(NewJob::new("n", &1).unwrap().due(ms(60))).await.unwrap();
    until("the next one has run", || jobs.metrics().done == 1).await;
    until("the end is stored", || jobs.metrics().buried == 1).await;
    let error = jobs.get(stuck).await.unwrap().unwrap().error.unwrap();
    assert_eq!(error, "it ran longer than 5.05s");
}

async fn a_handler_is_told_when_its_job_is_cancelled<S: Shared>(store: S) {
    let begun = Arc::new(AtomicUsize::new(0));
    let begins = begun.clone();
    let handle = move |job: Job<u32, S>| {
        begins.fetch_add(1, SeqCst);
        async move {
            job.cancellation().cancelled().await;
            Ok::<_, String>(())
        }
    };
    let jobs = Jobs::builder(store.clone()).handle(kind(), handle).open().await.unwrap();
    let other = Jobs::open(store).await.unwrap();
    for (n, canceller) in [&jobs, &other].into_iter().enumerate() {
        let id = jobs.schedule(NewJob::new("n", &0).unwrap()).await.unwrap();
        until("it runs", || begun.load(SeqCst) == n + 1).await;
        assert!(canceller.cancel(id).await.unwrap());
        until("it has ended", || jobs.metrics().lost == n as u64 + 1).await;
    }
}
