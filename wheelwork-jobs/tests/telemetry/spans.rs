//! The span of a run, and what is told in it.

use crate::common::{connect, redb, until};
use crate::recorder::{Told, record, recorded};
use std::time::Duration;
use tracing::Level;
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Retry};

const HOUR: Duration = Duration::from_secs(3_600);

fn told_of(id: JobId) -> Vec<Told> {
    let id = id.to_string();
    let is_of = |told: &&Told| told.span.as_ref().is_some_and(|span| span["id"] == id);
    recorded().events.iter().filter(is_of).cloned().collect()
}

/// How the spans of the job's runs have ended.
fn ended(id: JobId) -> Vec<String> {
    let id = id.to_string();
    let recorded = recorded();
    let mine = recorded.spans.iter().filter(|span| span.get("id") == Some(&id));
    mine.map(|span| format!("{} {}", span["attempt"], span["outcome"])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_span_is_current_in_the_whole_handler() {
    record();
    let (store, _folder) = redb();
    let say = |text: &str| tracing::info!(target: "handler", "{text}");
    let jobs = Jobs::builder(store)
        .handle("slow", move |_: Job<(), _>| async move {
            for _ in 0..20 {
                say("before");
                tokio::time::sleep(Duration::from_millis(1)).await;
                say("after");
            }
            Ok::<(), String>(())
        })
        .handle_blocking("blocking", move |_: Job<(), _>| {
            say("on a thread");
            Ok::<(), String>(())
        })
        .open()
        .await
        .unwrap();
    let keyed = |n: u32| NewJob::new("slow", &()).unwrap().key(format!("key {n}"));
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(jobs.schedule(keyed(n)).await.unwrap());
    }
    let blocking = jobs.schedule(NewJob::new("blocking", &()).unwrap()).await.unwrap();
    until("all spans have ended", || {
        ids.iter().chain([&blocking]).all(|&id| ended(id) == ["1 done"])
    })
    .await;
    for (n, &id) in ids.iter().enumerate() {
        let told = told_of(id);
        assert_eq!(told.len(), 40);
        for Told { span, .. } in told {
            let span = span.unwrap();
            assert_eq!((&*span["span"], &*span["kind"]), ("run", "slow"));
            assert_eq!((span["key"].clone(), &*span["node"]), (format!("key {n}"), "1"));
        }
    }
    let told = told_of(blocking);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].span.as_ref().unwrap().get("key"), None);
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_told_in_the_span_of_their_run() {
    record();
    let (store, _folder) = redb();
    let kind = Kind::new("bad").retry(Retry::default().attempts(2).first(Duration::ZERO));
    let fail = |_: Job<(), _>| async { Err::<(), _>("no milk") };
    let jobs = Jobs::builder(store).handle(kind, fail).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("bad", &()).unwrap()).await.unwrap();
    // The first may end late.
    let sorted = || {
        let mut ended = ended(id);
        ended.sort();
        ended
    };
    until("both spans have ended", || sorted() == ["1 retry", "2 dead"]).await;
    let told = told_of(id);
    let levels: Vec<_> = told.iter().map(|told| told.level).collect();
    assert_eq!(levels, [Level::WARN, Level::ERROR]);
    for (attempt, Told { fields, span, .. }) in (1..).zip(told) {
        assert_eq!(fields["error"], "no milk");
        assert_eq!(fields["attempt"], attempt.to_string());
        assert_eq!(span.unwrap()["attempt"], attempt.to_string());
    }
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_and_a_new_connection_are_told() {
    record();
    let Some(server) = crate::common::postgres::server() else { return };
    let url = server.database();
    let handle = |_: Job<(), Postgres>| async { Ok::<(), String>(()) };
    let store = Postgres::new(&url).unwrap();
    let liveness = Duration::from_secs(1);
    let jobs = Jobs::builder(store).liveness(liveness).handle("far", handle).open().await.unwrap();
    let client = connect(&url).await;
    let id = jobs.schedule(NewJob::new("far", &()).unwrap().due(HOUR)).await.unwrap();
    // A node that has died with the job.
    let die = "WITH node AS (INSERT INTO wheelwork_nodes VALUES (1000, now() - interval '1 h') RETURNING id) \
        UPDATE wheelwork_jobs SET owner = node.id FROM node";
    client.batch_execute(die).await.unwrap();
    let told = |field: &str| {
        recorded().events.iter().filter(|told| told.fields.contains_key(field)).count()
    };
    until("it is taken over", || jobs.metrics().taken_over == 1 && told("freed") == 1).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE application_name = 'wheelwork-jobs' AND datname = current_database()";
    client.batch_execute(cut).await.unwrap();
    until("it is connected again", || told("action") >= 1).await;
    assert!(jobs.cancel(id).await.unwrap());
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}
