//! Notices that get lost: a job that was cancelled or moved must not run at its old time.

use crate::common::{self, Shared, connect, in_time, opened, postgres, until};
use crate::tests::proxy::{Line, Proxy};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{NodeId, Notice};
use wheelwork_jobs::{Job, JobId, Jobs, NewJob, Postgres, Store};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const DAY: Duration = Duration::from_secs(86_400);

/// A node that counts the runs of the kind "n".
async fn counting<S: Shared>(store: S, liveness: Duration) -> (Jobs<S>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let handle = move |_: Job<u32, _>| {
        count.fetch_add(1, SeqCst);
        async { Ok::<_, String>(()) }
    };
    let builder = || {
        let builder = Jobs::builder(store.clone()).liveness(liveness).window(DAY);
        builder.handle("n", handle.clone())
    };
    (opened(builder).await, runs)
}

async fn hold<S: Store>(node: &Jobs<S>, due: Duration) -> Vec<JobId> {
    let jobs = (0..100).map(|n| NewJob::new("n", &n).unwrap().due(due));
    node.schedule_all(jobs).await.into_iter().map(Result::unwrap).collect()
}

/// Cancels one half, and moves the other one. Returns whether all were there.
async fn cancel_and_move<S: Store>(client: &Jobs<S>, ids: &[JobId]) -> bool {
    let mut all = true;
    for (n, &id) in ids.iter().enumerate() {
        let changed =
            if n % 2 == 0 { client.cancel(id).await } else { client.reschedule(id, 2 * DAY).await };
        all &= changed.unwrap();
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_and_moved_jobs_do_not_run_though_the_listener_was_cut() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let mut config: Config = url.parse().unwrap();
    config.application_name("the node");
    let store = Postgres::with(config, NoTls, Postgres::LIMIT);
    let (node, runs) = counting(store, Duration::from_secs(30)).await;
    let client = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let killer = connect(&url).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'the node' AND datname = current_database()";
    in_time(async |time| {
        let (begun, before) = (Instant::now(), node.metrics().fired);
        let ids = hold(&node, time).await;
        assert!(killer.execute(cut, &[]).await.unwrap() > 0);
        let all = cancel_and_move(&client, &ids).await;
        let is_in_time = begun.elapsed() < time;
        until("the node has dropped them", || node.metrics().held == 0).await;
        tokio::time::sleep((time + ms(500)).saturating_sub(begun.elapsed())).await;
        if is_in_time {
            assert!(all);
            assert_eq!((runs.load(SeqCst) as u64, node.metrics().fired), (before, before));
        }
        until("nothing runs", || node.metrics().running == 0).await;
        is_in_time
    })
    .await;
    let (done, near) = (node.metrics().done, NewJob::new("n", &0).unwrap());
    client.schedule(near).await.unwrap();
    until("a new job is done", || node.metrics().done == done + 1).await;
}

/// The database goes on, and so does the node, but nothing arrives: each thinks that the other is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_whose_other_end_is_gone_is_noticed() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let proxy = Proxy::start(server.port()).await;
    let config: Config = url.parse().unwrap();
    let mut by_proxy = Config::new();
    let database = config.get_dbname().unwrap();
    by_proxy.host("127.0.0.1").port(proxy.port).user("postgres").dbname(database);
    let (node, runs) = counting(Postgres::with(by_proxy, NoTls, ms(1_500)), ms(4_500)).await;
    let client = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let ids = hold(&node, DAY / 2).await;
    proxy.set(Line::Dead);
    tokio::time::sleep(ms(50)).await;
    proxy.set(Line::Good);
    assert!(cancel_and_move(&client, &ids).await);
    until("the node has dropped them", || node.metrics().held == 0).await;
    client.schedule(NewJob::new("n", &0).unwrap()).await.unwrap();
    until("a new job is done", || node.metrics().done == 1).await;
    assert_eq!(runs.load(SeqCst), 1);
}

/// No notice comes at all, from the beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_node_hears_nothing_it_asks_before_a_job_begins() {
    let (store, _folder) = common::redb();
    deaf(store).await;
    if let Some(store) = common::postgres() {
        deaf(store).await;
    }
}

async fn deaf(store: impl Shared) {
    let silent = crate::tests::flaky::Silent { store: store.clone() };
    let (node, runs) = counting(silent, Duration::from_secs(3_600)).await;
    in_time(async |time| {
        let (begun, before) = (Instant::now(), runs.load(SeqCst));
        let (ids, mut all) = (hold(&node, time).await, true);
        for &id in &ids[..50] {
            all &= store.cancel(id, None).await.unwrap().is_some();
        }
        let is_in_time = begun.elapsed() < time;
        until("none is left", || node.metrics().held + node.metrics().running == 0).await;
        if is_in_time {
            assert!(all);
            assert_eq!(runs.load(SeqCst), before + 50);
        }
        is_in_time
    })
    .await;
    assert_eq!(node.health().listening, Some(false));
    assert!(node.health().is_well());
}

/// A beat finds what no notice has told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_somebody_has_deleted_by_hand_does_not_run() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (node, runs) = counting(Postgres::new(&url).unwrap(), ms(1_500)).await;
    let user = connect(&url).await;
    in_time(async |time| {
        let before = runs.load(SeqCst);
        hold(&node, time).await;
        user.batch_execute("DELETE FROM wheelwork_jobs").await.unwrap();
        until("none is left", || node.metrics().held + node.metrics().running == 0).await;
        runs.load(SeqCst) == before // a beat came in time
    })
    .await;
}

/// Two schemas of one database have nothing to do with each other.
#[tokio::test]
async fn each_schema_has_its_own_notices() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    connect(&url).await.batch_execute("CREATE SCHEMA a; CREATE SCHEMA b").await.unwrap();
    let store = |schema: &str| {
        let mut config: Config = url.parse().unwrap();
        config.options(format!("-c search_path={schema}"));
        Postgres::with(config, NoTls, Postgres::LIMIT)
    };
    let (a, b) = (store("a"), store("b"));
    let (sender, mut notices) = tokio::sync::mpsc::unbounded_channel();
    a.prepare().await.unwrap();
    b.prepare().await.unwrap();
    let listener = a.clone();
    tokio::spawn(async move { listener.listen(sender).await });
    assert_eq!(notices.recv().await, Some(Notice::Listening));
    b.leave(NodeId(1)).await.unwrap();
    for store in [&b, &a] {
        let job = NewJob::new("n", &0).unwrap();
        let insert = wheelwork_jobs::store::Insert { job, claim: false };
        store.insert(None, ms(1_000), &[insert]).await.unwrap();
    }
    assert_eq!(notices.recv().await, Some(Notice::Look));
    tokio::time::sleep(ms(200)).await;
    assert!(notices.try_recv().is_err());
}

/// It is no more than a hint: whoever may read the tables may send it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_runs_though_somebody_says_that_it_was_taken_away() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (node, runs) = counting(Postgres::new(&url).unwrap(), Duration::from_secs(30)).await;
    let ids = hold(&node, ms(5_000)).await;
    let client = connect(&url).await;
    client
        .batch_execute(
            "CREATE ROLE reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; SET ROLE reader;
            SELECT pg_notify('wheelwork_jobs_' || 'wheelwork_jobs'::regclass::oid,
                concat_ws(' ', 'drop', owner, id, epoch)) FROM wheelwork_jobs",
        )
        .await
        .unwrap();
    // The notice of this one comes later.
    let other = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    assert!(other.cancel(ids[0]).await.unwrap());
    until("all but one are done", || node.metrics().done == 99).await;
    assert_eq!(runs.load(SeqCst), 99);
}
