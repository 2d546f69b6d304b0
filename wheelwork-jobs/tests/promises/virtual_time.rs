//! Virtual time: a store in memory whose clock the test moves.

use crate::common::until;
use crate::promises::unique::marks_in;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Redb, Retry};

const HOUR: Duration = Duration::from_secs(3_600);

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn store() -> Redb {
    Redb::in_memory().unwrap().on_test_clock(start())
}

type Seen = Arc<Mutex<Vec<(u32, Duration)>>>;

/// A node, and the payloads and the virtual times of its runs. The handler fails so often.
async fn node(store: &Redb, failures: u32) -> (Jobs<Redb>, Seen) {
    let seen = Seen::default();
    let (sees, clock) = (seen.clone(), store.clone());
    let handle = move |job: Job<u32, Redb>| {
        let since = clock.now().duration_since(start()).unwrap();
        sees.lock().unwrap().push((job.payload, since));
        async move { if job.attempt <= failures { Err("on purpose") } else { Ok(()) } }
    };
    let kind = Kind::new("n").retry(Retry::default().first(HOUR).longest(24 * HOUR).jitter(0.0));
    (Jobs::builder(store.clone()).handle(kind, handle).open().await.unwrap(), seen)
}

fn new(payload: u32, due: Duration) -> NewJob {
    NewJob::new("n", &payload).unwrap().due(due)
}

#[tokio::test]
async fn each_job_begins_exactly_when_it_is_due_and_nothing_before() {
    let store = store();
    let (jobs, seen) = node(&store, 0).await;
    let days: Vec<u32> = (1..=300).collect();
    let all = days.iter().map(|&day| new(day, day * 24 * HOUR));
    assert!(jobs.schedule_all(all).await.iter().all(Result::is_ok));
    tokio::time::sleep(Duration::from_millis(50)).await; // of real time
    assert!(seen.lock().unwrap().is_empty());
    jobs.advance(24 * HOUR - Duration::from_micros(1)).await.unwrap();
    assert!(seen.lock().unwrap().is_empty());
    jobs.advance(366 * 24 * HOUR).await.unwrap();
    let expected: Vec<_> = days.iter().map(|&day| (day, day * 24 * HOUR)).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
    assert!(jobs.metrics().kinds.iter().all(|kind| kind.late_by.sum().is_zero()));
    assert_eq!(jobs.metrics().clock_steps, 0);
    let passed = store.now().duration_since(start()).unwrap();
    assert_eq!(passed, 367 * 24 * HOUR - Duration::from_micros(1));
}

#[tokio::test]
async fn retries_wait_for_the_virtual_clock() {
    let store = store();
    let (jobs, seen) = node(&store, 3).await;
    jobs.schedule(new(1, HOUR)).await.unwrap();
    jobs.advance(24 * HOUR).await.unwrap();
    let times: Vec<_> = seen.lock().unwrap().iter().map(|(_, time)| *time).collect();
    assert_eq!(times, [HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR]);
}

#[tokio::test]
async fn two_nodes_share_the_clock() {
    let store = store();
    let ((first, seen), (_second, seen_there)) = (node(&store, 0).await, node(&store, 0).await);
    for n in 0..100 {
        first.schedule(new(n, HOUR)).await.unwrap();
    }
    first.advance(HOUR).await.unwrap();
    let runs = [seen.lock().unwrap().clone(), seen_there.lock().unwrap().clone()].concat();
    assert_eq!(runs.len(), 100);
    assert!(runs.iter().all(|(_, time)| *time == HOUR));
}

#[tokio::test]
async fn marks_of_unique_jobs_last_as_long_as_their_periods() {
    let store = store();
    let (jobs, _) = node(&store, 0).await;
    let unique = |n| new(n, 100 * HOUR).unique_for(n * HOUR);
    for n in 1..=30 {
        jobs.schedule(unique(n)).await.unwrap();
    }
    for n in 1..=30 {
        jobs.advance(HOUR - Duration::from_micros(1)).await.unwrap();
        let last = jobs.schedule(unique(n)).await.unwrap();
        assert_eq!(jobs.schedule(unique(n)).await.unwrap(), last);
        assert_eq!(marks_in(&store), u64::from(31 - n));
        jobs.advance(Duration::from_micros(1)).await.unwrap();
        until("the mark is deleted", || marks_in(&store) == u64::from(30 - n)).await;
    }
}

#[tokio::test]
async fn the_clock_of_the_system_cannot_be_moved() {
    let jobs = Jobs::open(Redb::in_memory().unwrap()).await.unwrap();
    let refused = jobs.advance(HOUR).await.unwrap_err().to_string();
    assert!(refused.contains("on_test_clock"), "{refused}");
}

/// A year of nights, with both changes of the clocks.
#[cfg(feature = "cron")]
#[tokio::test]
async fn a_nightly_job_runs_each_night_of_a_year() {
    use wheelwork_jobs::Periodic;

    let store = store();
    let (jobs, seen) = node(&store, 0).await;
    let nightly = NewJob::new("n", &1).unwrap().key("nightly");
    let nightly = Periodic::cron(nightly, "30 2 * * *", "Europe/Berlin").unwrap();
    jobs.repeat(&nightly).await.unwrap();
    jobs.advance(365 * 24 * HOUR).await.unwrap();
    let times: Vec<_> = seen.lock().unwrap().iter().map(|(_, time)| *time).collect();
    assert_eq!(times.len(), 365);
    let mut nights: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    nights.sort_unstable();
    let half = HOUR / 2;
    // 02:30, 03:00 after the gap, and 02:30 again; and the night that has 02:30 twice.
    assert_eq!(nights[..2], [24 * HOUR - half, 24 * HOUR - half]);
    assert_eq!(nights[2..363], [24 * HOUR; 361]);
    assert_eq!(nights[363..], [25 * HOUR]);
}
