//! A job runs when it is due.

use crate::common::{Shared, until};
use crate::on_every_store;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use wheelwork_jobs::{Filter, Job, Jobs, Kind, NewJob, ScheduleError, When};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Mail {
    to: String,
    lines: Vec<u32>,
}

async fn a_job_runs_with_its_payload_and_not_before_its_time(store: impl Shared) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let handle = move |job: Job<Mail, _>| {
        let ran = ran.clone();
        async move {
            ran.send((job.id, job.payload, job.due, SystemTime::now())).map_err(|e| e.to_string())
        }
    };
    let jobs = Jobs::builder(store).handle("mail", handle).open().await.unwrap();
    let due = SystemTime::now() + ms(120);
    let mail = |to: &str| Mail { to: to.into(), lines: vec![1, 2] };
    let by_time = NewJob::new("mail", &mail("anna")).unwrap().due(due);
    let by_time = jobs.schedule(by_time).await.unwrap();
    let (id, payload, was_due, at) = runs.recv().await.unwrap();
    assert_eq!((id, payload), (by_time, mail("anna")));
    assert!(at >= due && was_due >= due && was_due <= due + ms(1));

    let by_delay = NewJob::new("mail", &mail("bert")).unwrap().due(ms(240));
    let scheduled = SystemTime::now();
    let by_delay = jobs.schedule(by_delay).await.unwrap();
    let (id, payload, was_due, at) = runs.recv().await.unwrap();
    assert_eq!((id, payload), (by_delay, mail("bert")));
    assert!(at >= was_due && at >= scheduled + ms(240));
    until("the store is empty", || jobs.metrics().done == 2).await;
    assert_eq!(jobs.get(by_time).await.unwrap(), None);
    assert_eq!(jobs.metrics().held, 0);
}

async fn no_job_is_early_however_near_it_is(store: impl Shared) {
    let early = Arc::new(Mutex::new(Vec::new()));
    let notes = early.clone();
    let handle = move |job: Job<u64, _>| {
        let ahead = job.due.duration_since(SystemTime::now());
        notes.lock().unwrap().extend(ahead.ok().filter(|ahead| !ahead.is_zero()));
        async { Ok::<_, String>(()) }
    };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let near = |n: u64| NewJob::new("n", &n).unwrap().due(Duration::from_micros(n * 150));
    assert!(jobs.schedule_all((0..200).map(near)).await.iter().all(Result::is_ok));
    until("all are done", || jobs.metrics().done == 200).await;
    assert_eq!(*early.lock().unwrap(), []);
}

async fn a_job_of_the_past_runs_at_once(store: impl Shared) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let handle = move |job: Job<u32, _>| {
        let ran = ran.clone();
        async move { ran.send(job.payload).map_err(|e| e.to_string()) }
    };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    let past = SystemTime::UNIX_EPOCH + ms(1);
    jobs.schedule(NewJob::new("n", &7).unwrap().due(past)).await.unwrap();
    assert_eq!(runs.recv().await, Some(7));
}

async fn a_far_job_waits_in_the_store_and_not_in_the_wheel(store: impl Shared) {
    let handle = |_: Job<(), _>| async { Ok::<_, String>(()) };
    let jobs = Jobs::builder(store).handle("far", handle).open().await.unwrap();
    for delay in [Duration::from_secs(3_600), Duration::from_secs(1 << 40), Duration::MAX] {
        jobs.schedule(NewJob::new("far", &()).unwrap().due(delay)).await.unwrap();
    }
    assert_eq!(jobs.metrics().held, 0);
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats[0].waiting, stats[0].claimed), (3, 0));
    assert_eq!(jobs.list(Default::default()).await.unwrap().len(), 3);
}

async fn a_job_can_be_as_late_as_can_be_said(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let job = NewJob::new("far", &()).unwrap().key("k");
    let id = jobs.schedule(job.due(When::After(u64::MAX))).await.unwrap();
    assert!(jobs.reschedule(id, Duration::from_secs(3_600)).await.unwrap());
    assert!(jobs.reschedule(id, When::After(u64::MAX)).await.unwrap());
    let thousand_years = SystemTime::now() + 1_000 * Duration::from_secs(366 * 86_400);
    assert!(jobs.get(id).await.unwrap().unwrap().due > thousand_years);
}

async fn a_list_can_begin_behind_any_time(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let id = jobs.schedule(NewJob::new("far", &()).unwrap().due(Duration::MAX)).await.unwrap();
    let years = |number: u32| number * Duration::from_secs(366 * 86_400);
    let listed = async |after| {
        let filter = Filter { after: Some((after, id)), ..Filter::default() };
        jobs.list(filter).await.unwrap().len()
    };
    for far in [100_000, 400_000, 1_000_000].map(years) {
        assert_eq!(listed(SystemTime::UNIX_EPOCH + far).await, 0);
        assert_eq!(listed(SystemTime::UNIX_EPOCH - far).await, 1);
    }
}

async fn a_job_waits_for_a_node_that_has_its_handler(store: impl Shared) {
    let client = Jobs::open(store.clone()).await.unwrap();
    client.schedule(NewJob::new("late", &()).unwrap()).await.unwrap();
    let (ran, mut runs) = mpsc::unbounded_channel();
    let handle = move |_: Job<(), _>| {
        let ran = ran.clone();
        async move { ran.send(()).map_err(|e| e.to_string()) }
    };
    let _other = Jobs::builder(store.clone())
        .handle("other", |_: Job<(), _>| async { Err("not mine") })
        .open()
        .await
        .unwrap();
    let node = Jobs::builder(store).handle("late", handle).open().await.unwrap();
    runs.recv().await.unwrap();
    // The next one is told to the node at once.
    client.schedule(NewJob::new("late", &()).unwrap().due(ms(50))).await.unwrap();
    runs.recv().await.unwrap();
    until("both are done", || node.metrics().done == 2).await;
}

async fn no_more_jobs_of_a_kind_run_at_once_than_allowed(store: impl Shared) {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let counts = (running.clone(), most.clone());
    let handle = move |_: Job<u32, _>| {
        let (running, most) = counts.clone();
        async move {
            most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::time::sleep(ms(2)).await;
            running.fetch_sub(1, SeqCst);
            Ok::<_, String>(())
        }
    };
    let kind = Kind::new("slow").concurrency(3).most_held(20);
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let batch = (0..100).map(|n| NewJob::new("slow", &n).unwrap());
    assert!(jobs.schedule_all(batch).await.iter().all(Result::is_ok));
    assert!(jobs.metrics().held <= 20);
    until("all are done", || jobs.metrics().done == 100).await;
    assert_eq!((most.load(SeqCst), jobs.metrics().retried), (3, 0));
}

async fn a_blocking_handler_runs_beside_the_runtime(store: impl Shared) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let handle = move |job: Job<u32, _>| {
        std::thread::sleep(ms(5));
        sees.lock().unwrap().push(job.payload);
        Ok::<_, String>(())
    };
    let jobs = Jobs::builder(store).handle_blocking("block", handle).open().await.unwrap();
    let batch = (0..10).map(|n| NewJob::new("block", &n).unwrap());
    jobs.schedule_all(batch).await;
    until("all are done", || jobs.metrics().done == 10).await;
    seen.lock().unwrap().sort_unstable();
    assert_eq!(*seen.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

async fn a_key_is_unique_until_its_job_has_ended(store: impl Shared) {
    let handle = |_: Job<(), _>| async { Ok::<_, String>(()) };
    let jobs = Jobs::builder(store).handle("keyed", handle).open().await.unwrap();
    let keyed = |delay| NewJob::new("keyed", &()).unwrap().key("order-17").due(delay);
    let first = jobs.schedule(keyed(Duration::from_secs(3_600))).await.unwrap();
    let refused = jobs.schedule(keyed(ms(0))).await.unwrap_err();
    assert!(
        matches!(&refused, ScheduleError::KeyTaken { job } if job.unique_key() == Some("order-17"))
    );
    let both = jobs.schedule_all([refused.into_job(), keyed(ms(1))]).await;
    assert!(both.iter().all(Result::is_err));

    assert!(jobs.cancel(first).await.unwrap());
    jobs.schedule(keyed(ms(0))).await.unwrap();
    until("the second is done", || jobs.metrics().done == 1).await;
    let far = || keyed(Duration::from_secs(3_600)); // neither ends before the other is stored
    let again = jobs.schedule_all([far(), far()]).await;
    assert_eq!(again.iter().filter(|result| result.is_ok()).count(), 1);
}

async fn the_same_new_job_is_not_stored_twice(store: impl Shared) {
    let jobs = Jobs::open(store).await.unwrap();
    let job = NewJob::new("once", &()).unwrap();
    assert_eq!(jobs.schedule(job.clone()).await.unwrap(), job.id());
    let again = jobs.schedule(job.clone()).await.unwrap_err();
    assert!(matches!(again, ScheduleError::AlreadyStored { .. }), "{again}");
    assert_eq!(again.to_string(), format!("job {} is already stored", job.id()));
    assert_eq!(again.into_job(), job);
    let keyed = NewJob::new("once", &()).unwrap().key("k");
    jobs.schedule(keyed.clone()).await.unwrap();
    let both = jobs.schedule_all([keyed, NewJob::new("once", &()).unwrap().key("k")]).await;
    assert!(matches!(&both[0], Err(ScheduleError::AlreadyStored { .. })), "{both:?}");
    assert!(matches!(&both[1], Err(ScheduleError::KeyTaken { .. })), "{both:?}");
    jobs.cancel(both.into_iter().next().unwrap().unwrap_err().into_job().id()).await.unwrap();
    assert_eq!(jobs.stats().await.unwrap()[0].waiting, 1);
}

async fn the_longest_values_are_stored_and_longer_ones_come_back(store: impl Shared) {
    let kind = "k".repeat(NewJob::LONGEST_KIND);
    let payload = "p".repeat(NewJob::LONGEST_PAYLOAD - 2); // with quotes
    let key = |length| "\u{1F600}".repeat(length / 4);
    let (ran, mut runs) = mpsc::unbounded_channel();
    let handle = move |job: Job<String, _>| {
        let ran = ran.clone();
        async move { ran.send(job.payload.len()).map_err(|e| e.to_string()) }
    };
    let jobs = Jobs::builder(store).handle(kind.as_str(), handle).open().await.unwrap();
    let longest = NewJob::new(&kind, &payload).unwrap().key(key(NewJob::LONGEST_KEY));
    jobs.schedule(longest).await.unwrap();
    assert_eq!(runs.recv().await, Some(payload.len()));

    let long_key = NewJob::new(&kind, &0).unwrap().key(key(NewJob::LONGEST_KEY + 4));
    let refused = jobs.schedule(long_key.clone()).await.unwrap_err();
    assert_eq!(refused.to_string(), "a key of 516 bytes: expected at most 512");
    assert_eq!(refused.into_job(), long_key);
    assert!(NewJob::new(&(kind + "k"), &0).is_err());
    assert!(NewJob::new("a\0b", &0).is_err());
    let error = NewJob::new("n", &(payload + "p")).unwrap_err().to_string();
    assert!(error.ends_with("has 262145 bytes: expected at most 262144"), "{error}");
}

on_every_store! {
    the_longest_values_are_stored_and_longer_ones_come_back
    a_job_runs_with_its_payload_and_not_before_its_time
    no_job_is_early_however_near_it_is
    a_job_of_the_past_runs_at_once
    a_far_job_waits_in_the_store_and_not_in_the_wheel
    a_job_can_be_as_late_as_can_be_said
    a_list_can_begin_behind_any_time
    a_job_waits_for_a_node_that_has_its_handler
    no_more_jobs_of_a_kind_run_at_once_than_allowed
    a_blocking_handler_runs_beside_the_runtime
    a_key_is_unique_until_its_job_has_ended
    the_same_new_job_is_not_stored_twice
}
