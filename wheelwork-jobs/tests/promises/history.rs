//! Jobs that are done and kept, with their results.

use crate::common::{Shared, connect, postgres, redb, until};
use crate::on_every_store;
use serde_json::json;
use std::time::Duration;
use wheelwork_jobs::{
    Job, JobId, Jobs, Kind, NewJob, Peek, Postgres, Redb, ResultError, Retry, State, StoredJob,
};

const HOUR: Duration = Duration::from_secs(3_600);

on_every_store! {
    a_done_job_is_kept_with_its_result_and_frees_its_key
    a_job_is_forgotten_after_its_time
    nothing_is_kept_by_default_and_nothing_of_failures
    kept_jobs_are_pruned_by_the_time_of_their_end
}

async fn state_of<S: Shared>(jobs: &Jobs<S>, id: JobId) -> Option<State> {
    jobs.get(id).await.unwrap().map(|job| job.state)
}

async fn done<S: Shared>(jobs: &Jobs<S>, kind: Option<&str>) -> Vec<StoredJob> {
    let kind = kind.map(str::to_owned);
    jobs.peek(Peek { kind, state: State::Done, skip: 0, most: 100 }).await.unwrap()
}

async fn a_done_job_is_kept_with_its_result_and_frees_its_key(store: impl Shared) {
    let add = |job: Job<(u32, String), _>| async move {
        job.set_result(&"replaced").map_err(|error| error.to_string())?;
        let long = job.set_result(&"x".repeat(17_000)).unwrap_err();
        assert!(matches!(long, ResultError::Long { bytes: 17_002 }), "{long}");
        let (number, text) = &job.payload;
        job.set_result(&json!({ "next": number + 1, "text": text })).map_err(|e| e.to_string())
    };
    let kind = Kind::new("add").keep_done(HOUR);
    let jobs = Jobs::builder(store).handle(kind, add).open().await.unwrap();
    let new = |n: u32| NewJob::new("add", &(n, "ü€😀\u{202e}")).unwrap().key("k");
    let job = new(7);
    let id = jobs.schedule(job.clone()).await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    let kept = jobs.get(id).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.id, &*kept.kind), (State::Done, id, "add"));
    assert_eq!((kept.key.as_deref(), &*kept.payload), (Some("k"), job.payload()));
    assert!(kept.done.unwrap() >= kept.due);
    let result = kept.result.unwrap();
    assert!(result.is_ascii(), "{result}");
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result, json!({ "next": 8, "text": "ü€😀\u{202e}" }));
    // It is no job any more.
    assert!(!jobs.cancel(id).await.unwrap());
    assert!(!jobs.revive(id).await.unwrap());
    assert_eq!(jobs.get_by_key("k").await.unwrap(), None);
    assert_eq!(jobs.list(wheelwork_jobs::Filter::default()).await.unwrap(), []);
    let second = jobs.schedule(new(8)).await.unwrap();
    until("the second is done", || jobs.metrics().done == 2).await;
    let found = done(&jobs, None).await;
    assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [second, id]);
    assert_eq!((&*found[0].payload, found[0].result.as_deref()), ("", None));
    assert_eq!(done(&jobs, Some("mail")).await, []);
    // The very job once more.
    jobs.schedule(job).await.unwrap();
    until("the third is done", || jobs.metrics().done == 3).await;
    let found = done(&jobs, Some("add")).await;
    assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [id, second]);
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

async fn a_job_is_forgotten_after_its_time(store: impl Shared) {
    let handle = |_: Job<u32, _>| async { Ok::<(), String>(()) };
    let soon = Kind::new("soon").keep_done(Duration::from_millis(500));
    let late = Kind::new("late").keep_done(HOUR);
    let jobs = Jobs::builder(store).handle(soon, handle).handle(late, handle);
    let jobs = jobs.open().await.unwrap();
    let late = jobs.schedule(NewJob::new("late", &0).unwrap()).await.unwrap();
    // More than one call forgets.
    let all = (0..2_500).map(|n| NewJob::new("soon", &n).unwrap());
    assert!(jobs.schedule_all(all).await.iter().all(Result::is_ok));
    until("all are done", || jobs.metrics().done == 2_501).await;
    let begun = std::time::Instant::now();
    while done(&jobs, None).await.len() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "jobs are kept for a minute");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(state_of(&jobs, late).await, Some(State::Done));
    assert_eq!(jobs.metrics().store_errors, 0);
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

async fn kept_jobs_are_pruned_by_the_time_of_their_end(store: impl Shared) {
    let handle = |_: Job<u32, _>| async { Ok::<(), String>(()) };
    let kept = Kind::new("kept").keep_done(HOUR);
    let jobs = Jobs::builder(store).handle(kept, handle).open().await.unwrap();
    // More than one call deletes.
    let all = (0..2_500).map(|n| NewJob::new("kept", &n).unwrap());
    assert!(jobs.schedule_all(all).await.iter().all(Result::is_ok));
    until("all are done", || jobs.metrics().done == 2_500).await;
    let last = done(&jobs, None).await[0].done.unwrap();
    assert_eq!(jobs.prune_done(last - HOUR).await.unwrap(), 0);
    let before = jobs.prune_done(last).await.unwrap();
    assert!(before < 2_500, "{before}");
    let rest = jobs.prune_done(last + Duration::from_micros(1)).await.unwrap();
    assert_eq!(before + rest, 2_500);
    assert_eq!(done(&jobs, None).await, []);
}

async fn nothing_is_kept_by_default_and_nothing_of_failures(store: impl Shared) {
    let handle = |job: Job<bool, _>| async move {
        job.set_result(&1).map_err(|error| error.to_string())?;
        if job.payload { Ok(()) } else { Err("no".to_owned()) }
    };
    let kept = Kind::new("kept").keep_done(HOUR).retry(Retry::never());
    let jobs = Jobs::builder(store).handle("plain", handle).handle(kept, handle);
    let jobs = jobs.open().await.unwrap();
    let plain = jobs.schedule(NewJob::new("plain", &true).unwrap()).await.unwrap();
    let bad = jobs.schedule(NewJob::new("kept", &false).unwrap()).await.unwrap();
    until("both have ended", || jobs.metrics().done == 1 && jobs.metrics().buried == 1).await;
    assert_eq!(state_of(&jobs, plain).await, None);
    let dead = jobs.get(bad).await.unwrap().unwrap();
    assert_eq!((dead.state, dead.result, dead.done), (State::Dead, None, None));
    assert_eq!(done(&jobs, None).await, []);
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

fn kind() -> Kind {
    Kind::new("add").keep_done(HOUR).retry(Retry::never())
}

/// Rolls its first transaction back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_completed_in_a_transaction_is_kept_if_that_commits() {
    let (store, _folder) = redb();
    let shared = store.clone();
    let handle = move |job: Job<u32, Redb>| {
        let store = shared.clone();
        async move {
            job.set_result(&(job.payload + 1))?;
            for commits in [false, true] {
                let transaction = store.begin_write().await?;
                job.complete_in(&transaction).await?;
                if commits {
                    transaction.commit().await?;
                }
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        }
    };
    let jobs = Jobs::builder(store).handle(kind(), handle).open().await.unwrap();
    is_kept_once(jobs).await;

    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let database = url.clone();
    let handle = move |job: Job<u32, Postgres>| {
        let url = database.clone();
        async move {
            job.set_result(&(job.payload + 1))?;
            let mut client = connect(&url).await;
            for commits in [false, true] {
                let transaction = client.transaction().await?;
                job.complete_in(&transaction).await?;
                if commits {
                    transaction.commit().await?;
                }
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        }
    };
    let store = Postgres::new(&url).unwrap();
    is_kept_once(Jobs::builder(store).handle(kind(), handle).open().await.unwrap()).await;
}

async fn is_kept_once(jobs: Jobs<impl Shared>) {
    let id = jobs.schedule(NewJob::new("add", &3).unwrap()).await.unwrap();
    until("it has ended", || jobs.metrics().done == 1).await;
    let kept = jobs.get(id).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.result.as_deref()), (State::Done, Some("4")));
    assert_eq!((done(&jobs, None).await.len(), jobs.metrics().buried), (1, 0));
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}

/// It is not told again for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_cannot_be_kept_is_done_all_the_same() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let handle = |_: Job<u32, Postgres>| async { Ok::<(), String>(()) };
    let store = Postgres::new(&url).unwrap();
    let jobs = Jobs::builder(store).handle(kind(), handle).open().await.unwrap();
    connect(&url).await.batch_execute("DROP TABLE wheelwork_done").await.unwrap();
    let all = (0..10).map(|n| NewJob::new("add", &n).unwrap());
    assert!(jobs.schedule_all(all).await.iter().all(Result::is_ok));
    until("they are done", || jobs.metrics().done == 10).await;
    assert_eq!(jobs.list(wheelwork_jobs::Filter::default()).await.unwrap(), []);
    jobs.stop(Duration::from_secs(60)).await.unwrap();
}
