//! What is counted, by kind.

use crate::common::{Shared, until};
use crate::on_every_store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use wheelwork_jobs::{Job, Jobs, Kind, KindMetrics, NewJob, Retry};

on_every_store! {
    each_kind_has_its_counts
    kinds_without_a_handler_are_counted
}

fn of(jobs: &Jobs<impl Shared>, kind: &str) -> KindMetrics {
    let kinds = jobs.metrics().kinds;
    kinds.into_iter().find(|metrics| &*metrics.kind == kind).unwrap_or_default()
}

fn new(kind: &str) -> NewJob {
    NewJob::new(kind, &()).unwrap()
}

async fn each_kind_has_its_counts(store: impl Shared) {
    let gate = Arc::new(Semaphore::new(0));
    let retry = Retry::default().attempts(2).first(Duration::ZERO);
    let pass = gate.clone();
    let jobs = Jobs::builder(store)
        .handle("slow", move |_: Job<(), _>| {
            let pass = pass.clone();
            async move {
                pass.acquire().await.map_err(|error| error.to_string())?.forget();
                Ok::<(), String>(())
            }
        })
        .handle(Kind::new("bad").retry(retry), |_: Job<(), _>| async { Err::<(), _>("no") })
        .open()
        .await
        .unwrap();
    let all = [new("slow"), new("slow"), new("slow"), new("bad")];
    assert!(jobs.schedule_all(all).await.iter().all(Result::is_ok));
    let far = jobs.schedule(new("slow").due(Duration::from_secs(3_600))).await.unwrap();
    assert!(jobs.cancel(far).await.unwrap());
    assert!(!jobs.cancel(far).await.unwrap());
    until("three run", || of(&jobs, "slow").running == 3).await;
    until("it is dead", || of(&jobs, "bad").buried == 1).await;
    let bad = of(&jobs, "bad");
    assert_eq!((bad.scheduled, bad.claimed, bad.fired), (1, 2, 2));
    assert_eq!((bad.failed, bad.retried, bad.done, bad.cancelled), (2, 1, 0, 0));
    assert_eq!((bad.late_by.count(), bad.took.count()), (2, 2));
    gate.add_permits(3);
    until("all are done", || (of(&jobs, "slow").done, of(&jobs, "slow").held) == (3, 0)).await;
    let slow = of(&jobs, "slow");
    assert_eq!((slow.scheduled, slow.claimed, slow.fired, slow.cancelled), (4, 3, 3, 1));
    assert_eq!((slow.failed, slow.running, slow.took.count()), (0, 0, 3));
    let all = jobs.metrics();
    assert_eq!((all.scheduled, all.fired, all.done, all.failed, all.cancelled), (5, 5, 3, 2, 1));
    assert_eq!(all.kinds.iter().map(|kind| &*kind.kind).collect::<Vec<_>>(), ["bad", "slow"]);

    let text = all.to_prometheus();
    let samples: BTreeMap<_, _> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap())
        .collect();
    assert_eq!(samples["wheelwork_jobs_done_total{kind=\"slow\"}"], "3");
    assert_eq!(samples["wheelwork_jobs_late_seconds_count{kind=\"bad\"}"], "2");
    jobs.stop(Duration::from_secs(10)).await.unwrap();
}

/// This process only schedules them.
async fn kinds_without_a_handler_are_counted(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let hour = Duration::from_secs(3_600);
    jobs.schedule(new("a").key("one").due(hour)).await.unwrap();
    jobs.replace(new("b").key("one").due(hour)).await.unwrap();
    assert!(jobs.cancel_by_key("one").await.unwrap());
    let (a, b) = (of(&jobs, "a"), of(&jobs, "b"));
    assert_eq!((a.scheduled, a.cancelled, b.scheduled, b.cancelled), (1, 0, 1, 1));
    jobs.stop(Duration::ZERO).await.unwrap();
}
