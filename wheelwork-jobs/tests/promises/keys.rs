//! Jobs that are named by their keys, replaced, put off and pruned.

use crate::common::{Shared, until};
use crate::on_every_store;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{Filter, Job, Jobs, Kind, NewJob, Retry, ScheduleError, State};

on_every_store! {
    a_job_is_found_moved_and_cancelled_by_its_key
    a_job_replaces_the_one_that_has_its_key
    a_job_that_is_held_runs_no_more_when_it_is_replaced
    replacements_at_once_leave_one_job
    a_job_that_is_put_off_runs_again_without_a_failure
    dead_jobs_are_pruned_by_kind_and_age
}

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn keyed(payload: u32, due: Duration) -> NewJob {
    NewJob::new("n", &payload).unwrap().key("order-17").due(due)
}

/// A node, and the payloads that its handler gets.
async fn node<S: Shared>(store: S) -> (Jobs<S>, Arc<Mutex<Vec<u32>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let handle = move |job: Job<u32, S>| {
        sees.lock().unwrap().push(job.payload);
        async { Ok::<_, String>(()) }
    };
    (Jobs::builder(store).window(2 * HOUR).handle("n", handle).open().await.unwrap(), seen)
}

async fn a_job_is_found_moved_and_cancelled_by_its_key(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    assert_eq!(jobs.get_by_key("order-17").await.unwrap(), None);
    assert!(!jobs.cancel_by_key("order-17").await.unwrap());
    assert!(!jobs.reschedule_by_key("order-17", ms(1)).await.unwrap());
    let id = jobs.schedule(keyed(1, HOUR)).await.unwrap();
    assert_eq!(jobs.get_by_key("order-17").await.unwrap().unwrap().id, id);
    assert!(jobs.cancel_by_key("order-17").await.unwrap());
    assert_eq!(jobs.get(id).await.unwrap(), None);
    jobs.schedule(keyed(2, HOUR)).await.unwrap();
    assert!(jobs.reschedule_by_key("order-17", ms(1)).await.unwrap());
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!(*seen.lock().unwrap(), [2]);
    // A key is stored without NUL characters.
    let strange = NewJob::new("n", &3).unwrap().key("order\0-18").due(HOUR);
    let id = jobs.schedule(strange).await.unwrap();
    for key in ["order\0-18", "order-18"] {
        assert_eq!(jobs.get_by_key(key).await.unwrap().unwrap().id, id);
    }
}

async fn a_job_replaces_the_one_that_has_its_key(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let first = keyed(1, HOUR);
    assert_eq!(jobs.replace(first.clone()).await.unwrap(), None);
    let again = jobs.replace(first.clone()).await.unwrap_err();
    assert!(matches!(again, ScheduleError::AlreadyStored { .. }), "{again}");
    let second = keyed(2, 2 * HOUR);
    assert_eq!(jobs.replace(second.clone()).await.unwrap(), Some(first.id()));
    let all = jobs.list(Filter::default()).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].id, &*all[0].payload, all[0].state), (second.id(), "2", State::Waiting));
    // One without a key replaces nothing.
    assert_eq!(jobs.replace(NewJob::new("n", &3).unwrap().due(HOUR)).await.unwrap(), None);
    assert_eq!(jobs.list(Filter::default()).await.unwrap().len(), 2);
}

async fn a_job_that_is_held_runs_no_more_when_it_is_replaced(store: impl Shared) {
    let (jobs, seen) = node(store.clone()).await;
    let other = Jobs::open(store).await.unwrap();
    for n in 0..20 {
        jobs.replace(keyed(2 * n, HOUR)).await.unwrap();
        until("it is held", || jobs.metrics().held == 1).await;
        other.replace(keyed(2 * n + 1, ms(1))).await.unwrap();
        until("the other is done", || jobs.metrics().done == u64::from(n) + 1).await;
    }
    until("none is held any more", || jobs.metrics().held == 0).await;
    assert!(seen.lock().unwrap().iter().all(|n| n % 2 == 1), "{:?}", seen.lock().unwrap());
}

async fn replacements_at_once_leave_one_job(store: impl Shared) {
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let other = Jobs::open(store).await.unwrap();
    let replace = |n: u32| {
        let jobs = if n.is_multiple_of(2) { jobs.clone() } else { other.clone() };
        tokio::spawn(async move { jobs.replace(keyed(n, HOUR)).await.unwrap() })
    };
    let mut replaced = 0;
    for task in (0..40).map(replace).collect::<Vec<_>>() {
        replaced += usize::from(task.await.unwrap().is_some());
    }
    assert_eq!(replaced, 39);
    assert_eq!(jobs.list(Filter::default()).await.unwrap().len(), 1);
}

async fn a_job_that_is_put_off_runs_again_without_a_failure<S: Shared>(store: S) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let handle = move |job: Job<u32, S>| {
        let run = counted.fetch_add(1, SeqCst);
        assert_eq!(job.attempt, 1);
        if run < 3 {
            job.snooze(ms(10));
        }
        async { Ok::<_, String>(()) }
    };
    let kind = Kind::new("n").retry(Retry::never()).max_claims(1);
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let id = jobs.schedule(keyed(1, ms(1))).await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!((runs.load(SeqCst), jobs.metrics().snoozed, jobs.metrics().buried), (4, 3, 0));
    assert_eq!(jobs.get(id).await.unwrap(), None);
}

async fn dead_jobs_are_pruned_by_kind_and_age<S: Shared>(store: S) {
    let fail = |_: Job<u32, S>| async { Err::<(), _>("no") };
    let never = |name: &str| Kind::new(name).retry(Retry::never());
    let builder = Jobs::builder(store).handle(never("a"), fail).handle(never("b"), fail);
    let jobs = builder.open().await.unwrap();
    for kind in ["a", "b"] {
        let batch = (0..1_200).map(|n| NewJob::new(kind, &n).unwrap());
        assert!(jobs.schedule_all(batch).await.iter().all(Result::is_ok));
    }
    let waiting = jobs.schedule(NewJob::new("a", &1).unwrap().due(HOUR)).await.unwrap();
    until("all are dead", || jobs.metrics().buried == 2_400).await;
    let hour_ago = SystemTime::now() - HOUR;
    assert_eq!(jobs.prune(None, hour_ago).await.unwrap(), 0);
    let soon = SystemTime::now() + 2 * HOUR;
    assert_eq!(jobs.prune(Some("a"), soon).await.unwrap(), 1_200);
    assert_eq!(jobs.prune(None, soon).await.unwrap(), 1_200);
    assert!(jobs.get(waiting).await.unwrap().is_some());
}
