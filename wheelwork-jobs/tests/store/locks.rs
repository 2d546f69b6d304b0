//! Rows and keys that somebody has locked, and values that the server refuses: they hinder nobody else.

use crate::common::{self, connect, postgres, until, until_counted, until_one_waits};
use crate::tests::flaky::Hindered;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Insert, Insertion, Store};
use wheelwork_jobs::{Filter, Job, Jobs, Kind, NewJob, Postgres, Retry, ScheduleError};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A store that gives up after three seconds.
fn impatient(url: &str) -> Postgres {
    Postgres::with(url.parse::<Config>().unwrap(), NoTls, ms(3_000))
}

async fn fine(_: Job<u32, Postgres>) -> Result<(), String> {
    Ok(())
}

fn job(n: u32) -> NewJob {
    NewJob::new("n", &n).unwrap()
}

const BACKENDS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'wheelwork-jobs'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_an_open_transaction_keeps_nobody_else_waiting() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::builder(Postgres::new(&url).unwrap()).handle("n", fine).open().await.unwrap();
    let mut client = connect(&url).await;
    let open = client.transaction().await.unwrap();
    jobs.schedule_in(&open, &job(0).key("held")).await.unwrap();

    let (other, same) = (jobs.clone(), job(1).key("held"));
    // On a slow machine, the call may give up before the transaction ends.
    let waits = tokio::spawn(async move { while other.schedule(same.clone()).await.is_err() {} });
    until_one_waits(&connect(&url).await).await;
    // On their way with the one that waits, or after it: other keys, none, and other nodes.
    for n in 2..20 {
        let new = if n % 2 == 0 { job(n) } else { job(n).key(n.to_string()) };
        jobs.schedule(new).await.unwrap();
    }
    until("the others are done", || jobs.metrics().done == 18).await;
    let store = Postgres::new(&url).unwrap();
    let node = store.join(None, &[], ms(10_000)).await.unwrap().node;
    store.join(Some(node), &[], ms(10_000)).await.unwrap();
    assert!(!waits.is_finished(), "the key was free");
    open.rollback().await.unwrap();
    waits.await.unwrap();
    until("the last is done", || jobs.metrics().done == 19).await;
    assert_eq!((jobs.metrics().lapsed, jobs.metrics().store_errors), (0, 0));
}

/// Also if the default of the database or the role is another isolation, in which it would fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_has_waited_passes_over_what_others_have_claimed() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let name = url.rsplit('/').next().unwrap();
    let default = "SET default_transaction_isolation = 'repeatable read'";
    server.psql(name, &format!("ALTER DATABASE {name} {default}"));
    // Their limit is long, so that the wait for a lock does not end by itself.
    let [store, late] =
        [(); 2].map(|()| Postgres::with(url.parse::<Config>().unwrap(), NoTls, ms(600_000)));
    store.prepare().await.unwrap();
    let first = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let second = late.join(None, &[], ms(60_000)).await.unwrap().node;
    let new: Vec<_> = (0..3).map(|n| Insert { job: job(n), claim: false }).collect();
    store.insert(None, ms(1_000), &new).await.unwrap();
    let mut user = connect(&url).await;
    let open = user.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_nodes WHERE id = $1 FOR UPDATE";
    open.execute(lock, &[&second.0]).await.unwrap();
    let rooms = [("n".into(), 9)];
    let (window, late_rooms) = (ms(1_000), rooms.clone());
    let waiting = tokio::spawn(async move { late.claim(second, window, &late_rooms).await });
    until_one_waits(&connect(&url).await).await;
    assert_eq!(store.claim(first, window, &rooms).await.unwrap().len(), 3);
    open.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_jobs_that_wait_for_their_keys_are_not_tried_again_all_at_once() {
    let (store, _folder) = common::redb();
    let hindered = Hindered::new(store, 100);
    let hindrance = hindered.hindrance.clone();
    hindrance.busy.store(true, SeqCst);
    let jobs = Jobs::open(hindered).await.unwrap();
    let text = "x".repeat(200_000);
    let large = |n: u32| NewJob::new("n", &text).unwrap().key(n.to_string());
    let size = large(0).payload.len();
    let all: Vec<_> = (0..50).map(large).collect();
    let calls = tokio::spawn(async move { jobs.schedule_all(all).await });
    let sizes = || hindrance.sizes.lock().unwrap().clone();
    // On a slow machine, all may have waited for too long by then.
    let again = || sizes().iter().sum::<usize>() >= 4 * 50 * size || calls.is_finished();
    until("each is tried again", again).await;
    hindrance.busy.store(false, SeqCst);
    calls.await.unwrap();
    let largest = sizes().into_iter().max().unwrap();
    assert!(largest <= (4 << 20) + size, "{largest} bytes in one call");
}

/// The transaction is open for longer than the limit for one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_waits_for_a_key_can_be_ended() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = impatient(&url);
    store.prepare().await.unwrap();
    let old = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let mut client = connect(&url).await;
    let open = client.transaction().await.unwrap();
    let user = Jobs::open(store.clone()).await.unwrap();
    user.schedule_in(&open, &job(0).key("held")).await.unwrap();
    let inserting = store.clone();
    let insert = tokio::spawn(async move {
        loop {
            let insert = Insert { job: job(1).key("held"), claim: true };
            let answers = inserting.insert(Some(old), ms(1_000), &[insert]).await.unwrap();
            if !matches!(answers[0], Insertion::Busy) {
                return answers;
            }
        }
    });
    for _ in 0..5 {
        tokio::time::sleep(ms(20)).await;
        let other = store.join(None, &[], ms(0)).await.unwrap().node;
        store.join(Some(other), &[], ms(60_000)).await.unwrap();
    }
    store.join(Some(old), &[], ms(60_000)).await.unwrap();
    assert!(!insert.is_finished());
    open.rollback().await.unwrap();
    let stored = insert.await.unwrap()[0].stored().unwrap();
    assert_eq!(stored.claimed, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_keeps_no_other_end_waiting_and_leaks_no_backend() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (begins, go_on) =
        (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (begun, goes_on) = (begins.clone(), go_on.clone());
    let handle = move |job: Job<u32, Postgres>| {
        let (begun, goes_on) = (begun.clone(), goes_on.clone());
        async move {
            if job.payload == 0 {
                begun.notify_one();
                goes_on.notified().await;
            }
            Ok::<_, String>(())
        }
    };
    let jobs = Jobs::builder(impatient(&url)).handle("n", handle).open().await.unwrap();
    let mut client = connect(&url).await;
    jobs.schedule(job(0)).await.unwrap();
    begins.notified().await;
    let locking = client.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_jobs WHERE payload = '0' FOR UPDATE";
    assert_eq!(locking.execute(lock, &[]).await.unwrap(), 1);
    go_on.notify_one();
    let watcher = connect(&url).await;
    for round in 1..=5 {
        for result in jobs.schedule_all((1..=20).map(job)).await {
            result.unwrap();
        }
        until("the others are done", || jobs.metrics().done == 20 * round).await;
        tokio::time::sleep(ms(300)).await;
        until_counted(&watcher, &format!("SELECT (({BACKENDS}) <= 6)::int::bigint")).await;
    }
    assert_eq!(jobs.metrics().store_errors, 0);
    locking.rollback().await.unwrap();
    until("the first is done as well", || jobs.metrics().done == 101).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_of_a_node_does_not_hold_up_the_others() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = impatient(&url);
    store.prepare().await.unwrap();
    let insert = |n| [Insert { job: job(n), claim: true }];
    let mut dead = Vec::new();
    for n in 0..2 {
        let node = store.join(None, &[], ms(10)).await.unwrap().node;
        store.insert(Some(node), ms(10_000), &insert(n)).await.unwrap();
        dead.push(node);
    }
    let mut client = connect(&url).await;
    let locking = client.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_nodes WHERE id = $1 FOR UPDATE";
    assert_eq!(locking.execute(lock, &[&dead[0].0]).await.unwrap(), 1);

    let builder = Jobs::builder(store).liveness(Duration::from_secs(3)).handle("n", fine);
    let node = builder.open().await.unwrap();
    until("the jobs of the other dead node are done", || node.metrics().done == 1).await;
    node.schedule(job(2)).await.unwrap();
    until("new jobs are done", || node.metrics().done == 2).await;
    assert_eq!((node.metrics().lapsed, node.metrics().store_errors), (0, 0));
    locking.rollback().await.unwrap();
    until("all are done", || node.metrics().done == 3).await;
}

/// A row that somebody has locked keeps only the call for it waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_waits_keeps_no_other_call_waiting() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let ids: Vec<_> = jobs.schedule_all((0..2).map(job)).await.into_iter().flatten().collect();
    let mut client = connect(&url).await;
    let locking = client.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_jobs WHERE payload = '0' FOR UPDATE";
    assert_eq!(locking.execute(lock, &[]).await.unwrap(), 1);
    let (other, locked) = (jobs.clone(), ids[0]);
    // On a slow machine, the call may give up before the transaction ends.
    let waits = tokio::spawn(async move {
        loop {
            if let Ok(cancelled) = other.cancel(locked).await {
                return cancelled;
            }
        }
    });
    until_one_waits(&connect(&url).await).await;
    assert!(jobs.reschedule(ids[1], ms(0)).await.unwrap());
    assert!(jobs.cancel(ids[1]).await.unwrap());
    assert!(!waits.is_finished(), "the row was free");
    locking.rollback().await.unwrap();
    assert!(waits.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_the_server_refuses_hinder_no_others() {
    let Some(server) = postgres::server() else { return };
    server.psql(
        "postgres",
        "CREATE DATABASE latin1 ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    );
    let handle = |job: Job<u32, Postgres>| async move {
        if job.payload % 10 == 3 { Err("that costs 5 \u{20ac}") } else { Ok(()) }
    };
    let kind = Kind::new("n").retry(Retry::never());
    let store = Postgres::new(&server.url("latin1")).unwrap();
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let strange = NewJob::new("strange", &"\u{1f600}").unwrap();
    let batch = (0..50).map(job).chain([strange.clone()]).chain((50..100).map(job));
    let mut results = jobs.schedule_all(batch).await;
    let refused = results.remove(50).unwrap_err();
    assert!(matches!(&refused, ScheduleError::Store { .. }), "{refused}");
    assert!(refused.to_string().contains("encoding"), "{refused}");
    assert_eq!(refused.into_job(), strange);
    assert!(results.iter().all(Result::is_ok));
    until("all have ended", || jobs.metrics().done == 90 && jobs.metrics().buried == 10).await;
    let dead = jobs.list(Filter { dead: Some(true), ..Filter::default() }).await.unwrap();
    assert!(dead.iter().all(|job| job.error.as_deref() == Some("that costs 5 \\u{20ac}")));
}

/// Two nodes store jobs with the same keys, in opposite order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insertions_do_not_wait_for_each_other() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = || Postgres::new(&url).unwrap();
    let stores = [store(), store()];
    stores[0].prepare().await.unwrap();
    let mut tasks = Vec::new();
    for (forward, store) in stores.into_iter().enumerate() {
        tasks.push(tokio::spawn(async move {
            for round in 0..60 {
                let keyed = |n| job(n).key(format!("{round} {n}"));
                let insert = |n| Insert { job: keyed(n), claim: false };
                let mut batch: Vec<_> = (0..200).map(insert).collect();
                if forward == 1 {
                    batch.reverse();
                }
                let answers = store.insert(None, ms(0), &batch).await.unwrap();
                let busy = answers.iter().filter(|a| matches!(a, Insertion::Busy)).count();
                assert!(busy < 200, "all are busy");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(deadlocks(&url).await, 0);
}

async fn deadlocks(url: &str) -> i64 {
    let client = common::connect(url).await;
    tokio::time::sleep(ms(1_500)).await; // the server counts with a delay
    let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    client.query_one(count, &[]).await.unwrap().get(0)
}

/// One job is stored, and one is refused. The look for why fails, because somebody wants the whole table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_runs_that_was_stored_by_a_call_that_failed_afterwards() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::builder(Postgres::new(&url).unwrap()).handle("n", fine).open().await.unwrap();
    jobs.schedule(job(0).key("k").due(ms(3_600_000))).await.unwrap();
    let slow = "
        CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$;
        CREATE TRIGGER slow AFTER INSERT ON wheelwork_jobs FOR EACH STATEMENT EXECUTE FUNCTION be_slow()";
    let mut other = connect(&url).await;
    other.batch_execute(slow).await.unwrap();
    let (storing, batch) = (jobs.clone(), vec![job(1).key("k"), job(2).key("l")]);
    let storing = tokio::spawn(async move { storing.schedule_all(batch).await });
    until_counted(&connect(&url).await, SLEEPING).await;
    let whole = other.transaction().await.unwrap();
    whole.execute("LOCK TABLE wheelwork_jobs IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    tokio::time::sleep(ms(200)).await; // longer than a call waits for a lock
    whole.rollback().await.unwrap();
    storing.await.unwrap();
    until("what was stored is done", || jobs.metrics().done == 1).await;
}

const SLEEPING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event = 'PgSleep'";
