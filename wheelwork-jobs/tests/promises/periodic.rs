//! Periodic jobs: one row for each, whatever fails, and however many nodes there are.

use crate::common::{self, Shared, connect, until, until_one_waits};
use crate::on_every_store;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{
    Filter, Job, Jobs, Kind, NewJob, Periodic, Postgres, Redb, Retry, State, StoredJob,
};

on_every_store! {
    a_periodic_job_runs_at_each_of_its_times_once
    nodes_that_start_at_once_make_one_job
    a_changed_rule_takes_the_place_of_the_old_one
    what_was_missed_runs_once_or_is_skipped
    a_failed_occurrence_is_retried_and_then_given_up
    a_periodic_job_is_removed_while_it_runs
    a_time_of_earlier_rules_of_its_zone_is_corrected
    a_time_that_somebody_has_chosen_stays
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn new(payload: u32) -> NewJob {
    NewJob::new("n", &payload).unwrap().key("name")
}

fn every_second(payload: u32) -> Periodic {
    Periodic::cron(new(payload), "* * * * * *", "Europe/Berlin").unwrap()
}

/// Every year, so not while the test runs, unless it is New Year's Eve.
fn far() -> Periodic {
    Periodic::cron(new(1), "59 59 23 31 12 *", "UTC").unwrap()
}

async fn all<S: Shared>(jobs: &Jobs<S>) -> Vec<StoredJob> {
    jobs.list(Filter::default()).await.unwrap()
}

type Seen = Arc<Mutex<Vec<(u32, SystemTime)>>>;

/// A node, and the payloads and times of its runs.
async fn node<S: Shared>(store: S) -> (Jobs<S>, Seen) {
    let seen = Seen::default();
    let sees = seen.clone();
    let handle = move |job: Job<u32, S>| {
        sees.lock().unwrap().push((job.payload, job.due));
        async { Ok::<_, String>(()) }
    };
    (Jobs::builder(store).handle("n", handle).open().await.unwrap(), seen)
}

async fn a_periodic_job_runs_at_each_of_its_times_once(store: impl Shared) {
    let (jobs, seen) = node(store.clone()).await;
    let (other, seen_there) = node(store).await;
    jobs.repeat(&every_second(7)).await.unwrap();
    until("it ran four times", || {
        seen.lock().unwrap().len() + seen_there.lock().unwrap().len() >= 4
    })
    .await;
    // Before the cancel, which a run that is under way would lose its job to.
    assert_eq!([&jobs, &other].map(|node| node.metrics().lost + node.metrics().retried), [0, 0]);
    assert!(jobs.cancel_by_key("name").await.unwrap());
    let mut runs = seen.lock().unwrap().clone();
    runs.extend(seen_there.lock().unwrap().iter());
    runs.sort_unstable();
    for pair in runs.windows(2) {
        // A slow machine may miss some: then one run stands for all of them.
        let between = pair[1].1.duration_since(pair[0].1).unwrap();
        assert!(between >= ms(1_000) && between.subsec_nanos() == 0, "{runs:?}");
    }
    assert!(runs.iter().all(|(payload, _)| *payload == 7));
}

async fn nodes_that_start_at_once_make_one_job(store: impl Shared) {
    let opened = (0..4).map(|_| Jobs::open(store.clone()));
    let mut nodes = Vec::new();
    for jobs in opened {
        nodes.push(jobs.await.unwrap());
    }
    let many = nodes.iter().flat_map(|jobs| [jobs; 5]).cloned();
    let calls: Vec<_> =
        many.map(|jobs| tokio::spawn(async move { jobs.repeat(&far()).await })).collect();
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap().unwrap());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let stored = all(&nodes[0]).await;
    assert_eq!(stored.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(stored[0].due, far().next_after(SystemTime::now()).unwrap());
}

async fn a_changed_rule_takes_the_place_of_the_old_one(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let before = jobs.repeat(&far()).await.unwrap();
    assert_eq!(jobs.repeat(&far()).await.unwrap(), before);
    let after = jobs.repeat(&every_second(2)).await.unwrap();
    assert_ne!(before, after);
    until("the new one ran", || !seen.lock().unwrap().is_empty()).await;
    assert_eq!(seen.lock().unwrap()[0].0, 2);
    let back = jobs.repeat(&far()).await.unwrap();
    assert_eq!(back, before);
    // A run of the old rule that is under way leaves nothing behind.
    let settled = || jobs.metrics().running == 0;
    until("nothing runs", settled).await;
    assert_eq!(all(&jobs).await.iter().map(|job| job.id).collect::<Vec<_>>(), [before]);
}

/// Puts the job into the past, as if no node had run since.
async fn miss<S: Shared>(jobs: &Jobs<S>, by: Duration) -> SystemTime {
    let due = SystemTime::now() - by;
    assert!(jobs.reschedule_by_key("name", due).await.unwrap());
    due
}

async fn what_was_missed_runs_once_or_is_skipped(store: impl Shared) {
    let hour = Duration::from_secs(3_600);
    let jobs = Jobs::open(store.clone()).await.unwrap();
    jobs.repeat(&far()).await.unwrap();
    miss(&jobs, 3 * 24 * hour).await;
    // A node that starts does not forget what was missed.
    jobs.repeat(&far()).await.unwrap();
    let (node_1, seen) = node(store.clone()).await;
    until("it is done", || node_1.metrics().done == 1).await;
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert_eq!(all(&jobs).await[0].due, far().next_after(SystemTime::now()).unwrap());
    node_1.stop(ms(1_000)).await.unwrap();

    let skips = far().skip_later_than(hour);
    jobs.repeat(&skips).await.unwrap();
    miss(&jobs, 2 * hour).await;
    let (node_2, seen) = node(store.clone()).await;
    until("it is skipped", || node_2.metrics().skipped == 1).await;
    assert_eq!(all(&jobs).await[0].due, far().next_after(SystemTime::now()).unwrap());
    miss(&jobs, hour / 2).await;
    until("it is done", || node_2.metrics().done == 1).await;
    assert_eq!(seen.lock().unwrap().len(), 1);
}

async fn a_failed_occurrence_is_retried_and_then_given_up(store: impl Shared) {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let fail = fails.clone();
    let handle = move |_: Job<u32, _>| {
        let fail = fail.load(std::sync::atomic::Ordering::SeqCst);
        async move { if fail { Err("on purpose") } else { Ok(()) } }
    };
    let kind = Kind::new("n").retry(Retry::default().attempts(3).first(ms(1)));
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    jobs.repeat(&far()).await.unwrap();
    miss(&jobs, ms(1)).await;
    until("it is given up", || jobs.metrics().given_up == 1).await;
    assert_eq!((jobs.metrics().retried, jobs.metrics().buried), (2, 0));
    let stored = all(&jobs).await.remove(0);
    assert_eq!((stored.attempts, stored.state), (0, State::Waiting));
    assert_eq!(stored.error.as_deref(), Some("on purpose"));
    assert_eq!(stored.due, far().next_after(SystemTime::now()).unwrap());

    fails.store(false, std::sync::atomic::Ordering::SeqCst);
    miss(&jobs, ms(1)).await;
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!(all(&jobs).await[0].error, None);
}

async fn a_periodic_job_is_removed_while_it_runs(store: impl Shared) {
    let (begun, go_on) =
        (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (begins, waits) = (begun.clone(), go_on.clone());
    let handle = move |_: Job<u32, _>| {
        let (begins, waits) = (begins.clone(), waits.clone());
        async move {
            begins.notify_one();
            waits.notified().await;
            Ok::<_, String>(())
        }
    };
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    jobs.repeat(&far()).await.unwrap();
    miss(&jobs, ms(1)).await;
    begun.notified().await;
    assert!(jobs.cancel_by_key("name").await.unwrap());
    go_on.notify_one();
    until("it has found out", || jobs.metrics().lost == 1).await;
    assert_eq!(all(&jobs).await, []);
}

/// Every year, in a zone with rules.
fn far_in_berlin() -> Periodic {
    Periodic::cron(new(1), "59 59 22 30 12 *", "Europe/Berlin").unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

/// A move to such a time looks like a change of the rules.
async fn a_time_of_earlier_rules_of_its_zone_is_corrected(store: impl Shared) {
    let (client, seen) = (Jobs::open(store.clone()).await.unwrap(), Seen::default());
    client.repeat(&far_in_berlin()).await.unwrap();
    let next = far_in_berlin().next_after(SystemTime::now()).unwrap();
    for due in [next + 60 * MINUTE, next - 60 * MINUTE, next + 15 * MINUTE, next - 180 * MINUTE] {
        assert!(client.reschedule_by_key("name", due).await.unwrap());
        client.repeat(&far_in_berlin()).await.unwrap();
        assert_eq!(all(&client).await[0].due, next);
    }
    // Also if the kind is paused, or a node has claimed the job.
    client.pause("n").await.unwrap();
    client.reschedule_by_key("name", next - 60 * MINUTE).await.unwrap();
    client.repeat(&far_in_berlin()).await.unwrap();
    assert_eq!(all(&client).await[0].due, next);
    client.resume("n").await.unwrap();
    let sees = seen.clone();
    let handle = move |job: Job<u32, _>| {
        sees.lock().unwrap().push((job.payload, job.due));
        async { Ok::<_, String>(()) }
    };
    let window = Duration::from_secs(400 * 24 * 3_600);
    let node = Jobs::builder(store).window(window).handle("n", handle).open().await.unwrap();
    for moved in [false, true] {
        if moved {
            client.reschedule_by_key("name", next - 60 * MINUTE).await.unwrap();
        }
        until("the node has it", || node.metrics().held == 1).await;
    }
    node.repeat(&far_in_berlin()).await.unwrap();
    assert_eq!(all(&client).await[0].due, next);
    until("the node has it", || node.metrics().held == 1).await;
    assert_eq!(*seen.lock().unwrap(), []);
}

async fn a_time_that_somebody_has_chosen_stays<S: Shared>(store: S) {
    let fails = |_: Job<u32, S>| async { Err::<(), _>("on purpose") };
    let kind = Kind::new("n").retry(Retry::default().first(60 * MINUTE));
    let jobs = Jobs::builder(store).handle(kind, fails).open().await.unwrap();
    jobs.repeat(&far_in_berlin()).await.unwrap();
    let next = far_in_berlin().next_after(SystemTime::now()).unwrap();
    let stays = async |periodic: &Periodic, due: SystemTime| {
        assert!(jobs.reschedule_by_key("name", due).await.unwrap());
        jobs.repeat(periodic).await.unwrap();
        let stored = all(&jobs).await.remove(0).due;
        assert_eq!(stored, due);
    };
    let second = Duration::from_secs(1);
    for chosen in [next + 20 * MINUTE, next - 60 * MINUTE - second, next - 240 * MINUTE] {
        stays(&far_in_berlin(), chosen).await;
    }
    stays(&far_in_berlin(), SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000)).await;
    // A retry.
    miss(&jobs, ms(1)).await;
    until("it is retried", || jobs.metrics().retried == 1).await;
    stays(&far_in_berlin(), next - 60 * MINUTE).await;
    // UTC has no rules.
    jobs.repeat(&far()).await.unwrap();
    stays(&far(), far().next_after(SystemTime::now()).unwrap() - 60 * MINUTE).await;
}

#[tokio::test]
async fn an_unchanged_job_in_redb_waits_for_no_transaction() {
    let (store, _folder) = common::redb();
    let store = store.with_limit(ms(500));
    let jobs = Jobs::open(store.clone()).await.unwrap();
    let first = jobs.repeat(&far()).await.unwrap();
    let _transaction = store.begin_write().await.unwrap();
    assert_eq!(jobs.repeat(&far()).await.unwrap(), first);
}

/// A row that is locked, a claim passes over: its occurrence would wait for the next beat.
#[tokio::test]
async fn an_unchanged_job_in_postgres_is_not_locked() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let (mut user, watcher) = (connect(&url).await, connect(&url).await);
    // An update changes the first and the last, and a lock the second.
    let row = "SELECT concat_ws(' ', xmin, xmax, ctid) FROM wheelwork_jobs";
    let first = jobs.repeat(&far()).await.unwrap();
    let before: String = watcher.query_one(row, &[]).await.unwrap().get(0);
    assert_eq!(jobs.repeat(&far()).await.unwrap(), first);
    let after: String = watcher.query_one(row, &[]).await.unwrap().get(0);
    assert_eq!(before, after);

    // Another node stores the same at the same time.
    let save =
        "CREATE TEMPORARY TABLE saved AS SELECT * FROM wheelwork_jobs; DELETE FROM wheelwork_jobs";
    user.batch_execute(save).await.unwrap();
    let other = user.transaction().await.unwrap();
    other.batch_execute("INSERT INTO wheelwork_jobs SELECT * FROM saved").await.unwrap();
    let repeating = tokio::spawn(async move { jobs.repeat(&far()).await });
    until_one_waits(&watcher).await;
    other.commit().await.unwrap();
    assert_eq!(repeating.await.unwrap().unwrap(), first);
    let locked = "SELECT xmax::text FROM wheelwork_jobs";
    assert_eq!(watcher.query_one(locked, &[]).await.unwrap().get::<_, String>(0), "0");
}

/// Another node may know the zone.
#[tokio::test]
async fn a_rule_that_a_node_cannot_read_does_not_end_the_job() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    Jobs::open(store.clone()).await.unwrap().repeat(&far()).await.unwrap();
    let user = connect(&url).await;
    let change = |from, to| {
        format!(
            "UPDATE wheelwork_jobs SET payload = replace(payload, '{from}', '{to}'), due = now() - interval '1 s'"
        )
    };
    user.batch_execute(&change("UTC", "Nowhere")).await.unwrap();
    let handle = |_: Job<u32, _>| async { Ok::<_, String>(()) };
    let kind = Kind::new("n").retry(Retry::never());
    let builder = Jobs::builder(store).liveness(ms(3_000)).handle(kind, handle);
    let jobs = builder.open().await.unwrap();
    until("it was tried", || jobs.metrics().retried + jobs.metrics().buried == 1).await;
    let stored = &all(&jobs).await[0];
    assert_eq!((stored.state, stored.attempts), (State::Waiting, 1));
    assert!(stored.error.as_deref().is_some_and(|error| error.contains("Nowhere")));
    user.batch_execute(&change("Nowhere", "UTC")).await.unwrap();
    until("it has run", || jobs.metrics().done == 1).await;
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Runs in which the handler fails after its commit: no occurrence is done twice, none is lost.
async fn commits_and_fails<S: Shared>(jobs: &Jobs<S>) {
    jobs.repeat(&far()).await.unwrap();
    for n in 1..=4 {
        miss(jobs, ms(1)).await;
        // Odd ones fail after the commit. Even ones fail before it at their first attempt, and are retried.
        until("it has ended", || {
            let metrics = jobs.metrics();
            metrics.done + metrics.lost == n
        })
        .await;
        let stored = all(jobs).await.remove(0);
        assert_eq!((stored.attempts, stored.state, stored.error), (0, State::Waiting, None));
        assert_eq!(stored.due, far().next_after(SystemTime::now()).unwrap());
    }
    let metrics = jobs.metrics();
    assert_eq!((metrics.done, metrics.lost, metrics.retried), (2, 2, 2));
}

/// How a run of this number ends, before its commit and after it.
fn fails(number: u32, committed: bool) -> Result<(), Failed> {
    // Numbers of runs: 1, 2 and its retry 3, 4, 5 and its retry 6.
    let fails = if committed { number == 1 || number == 4 } else { number == 2 || number == 5 };
    if fails { Err("on purpose".into()) } else { Ok(()) }
}

#[tokio::test]
async fn an_occurrence_in_redb_that_was_committed_is_over() {
    let (store, _folder) = common::redb();
    let shared = (store.clone(), Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let handle = move |job: Job<u32, Redb>| {
        let (store, runs) = shared.clone();
        async move {
            let number = runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            let transaction = store.begin_write().await?;
            job.complete_in(&transaction).await?;
            fails(number, false)?;
            transaction.commit().await?;
            let again = store.begin_write().await?;
            assert!(job.complete_in(&again).await.is_err(), "it was completed twice");
            drop(again);
            fails(number, true)
        }
    };
    let kind = Kind::new("n").retry(Retry::default().first(ms(1)));
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    commits_and_fails(&jobs).await;
}

#[tokio::test]
async fn an_occurrence_in_postgres_that_was_committed_is_over() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let client = Arc::new(tokio::sync::Mutex::new(common::connect(&url).await));
    let shared = (client, Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let handle = move |job: Job<u32, Postgres>| {
        let (client, runs) = shared.clone();
        async move {
            let number = runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            let mut client = client.lock().await;
            let transaction = client.transaction().await?;
            job.complete_in(&transaction).await?;
            fails(number, false)?;
            transaction.commit().await?;
            let again = client.transaction().await?;
            assert!(job.complete_in(&again).await.is_err(), "it was completed twice");
            drop(again);
            fails(number, true)
        }
    };
    let kind = Kind::new("n").retry(Retry::default().first(ms(1)));
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    commits_and_fails(&jobs).await;
}
