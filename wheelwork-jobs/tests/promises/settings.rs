//! Settings that are refused.

use crate::common;
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, JobsBuilder, Kind, OpenError, Postgres, Redb};

fn builder() -> (JobsBuilder<Redb>, tempfile::TempDir) {
    let (store, folder) = common::redb();
    (Jobs::builder(store), folder)
}

async fn handle(_: Job<(), Redb>) -> Result<(), String> {
    Ok(())
}

async fn refusal(set: impl FnOnce(JobsBuilder<Redb>) -> JobsBuilder<Redb>) -> String {
    let (builder, _folder) = builder();
    set(builder).open().await.unwrap_err().to_string()
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let twice = refusal(|b| b.handle("n", handle).handle("n", handle)).await;
    assert_eq!(twice, "two handlers for the kind \"n\"");
    let none = refusal(|b| b.handle(Kind::new("n").concurrency(0), handle)).await;
    assert_eq!(none, "the concurrency of the kind \"n\" must be greater than zero");
    let nul = refusal(|b| b.handle("n\0", handle)).await;
    assert!(nul.contains("NUL character"), "{nul}");
    let window = refusal(|b| b.window(Duration::from_secs(14))).await;
    assert_eq!(window, "a window of 14s: expected at least half of the liveness of 30s");
    let liveness = refusal(|b| b.liveness(Duration::from_millis(99))).await;
    assert_eq!(liveness, "a liveness of 99ms: expected at least 100 ms");
    let tick = refusal(|b| b.tick(Duration::ZERO)).await;
    assert!(tick.contains("tick"), "{tick}");
}

#[test]
fn a_runtime_is_needed() {
    let (builder, _folder) = builder();
    let mut open = std::pin::pin!(builder.open());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(OpenError::NoRuntime)) = open.as_mut().poll(&mut context) else {
        panic!("it opened without a runtime");
    };
}

#[tokio::test]
async fn extreme_settings_are_ordinary() {
    let (builder, _folder) = builder();
    let kind = Kind::new("n").concurrency(usize::MAX).most_held(usize::MAX);
    let limited = Kind::new("m").rate(u32::MAX, Duration::MAX).total_concurrency(usize::MAX);
    let builder = builder.window(Duration::MAX).liveness(Duration::MAX);
    let jobs = builder.handle(kind, handle).handle(limited, handle).open().await.unwrap();
    let far = wheelwork_jobs::NewJob::new("n", &()).unwrap().due(Duration::MAX);
    jobs.schedule(far).await.unwrap();
    assert_eq!(jobs.metrics().held, 1); // the window has no end
    jobs.schedule(wheelwork_jobs::NewJob::new("n", &()).unwrap()).await.unwrap();
    common::until("one is done", || jobs.metrics().done == 1).await;
    assert_eq!(jobs.stop(Duration::MAX).await.unwrap().given_back, 1);
}

#[tokio::test]
async fn a_database_that_is_away_is_an_error() {
    assert!(Postgres::new("mysql://here").is_err());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = Postgres::new(&format!("postgres://postgres@{nobody}/test")).unwrap();
    let error = Jobs::open(store).await.unwrap_err().to_string();
    assert!(error.starts_with("the store failed to look for its tables: "), "{error}");
    let (_store, folder) = common::redb();
    let error = Redb::open(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("the store failed to open the file: "), "{error}");
}
