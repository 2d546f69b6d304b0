//! The order of due jobs that have priorities.

use crate::common::{self, Shared, connect, until};
use crate::on_every_store;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, SemaphorePermit as Permit};
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::Insert;
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Postgres, Retry, State, Store};

on_every_store! {
    of_due_jobs_the_most_urgent_begins_first
    a_claim_takes_the_most_urgent_due_jobs_and_then_the_earliest
    a_priority_survives_failures_moves_and_replacements
    a_job_that_is_due_comes_in_beside_a_full_room
}

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn job(n: u32, priority: u8) -> NewJob {
    NewJob::new("n", &n).unwrap().priority(priority)
}

/// A due time in the past.
fn ago(seconds: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(seconds)
}

async fn of_due_jobs_the_most_urgent_begins_first<S: Shared>(store: S) {
    let scheduler = Jobs::open(store.clone()).await.unwrap();
    for n in 0..30 {
        let priority = u8::try_from(n % 5).unwrap();
        scheduler.schedule(job(n, priority).due(ago(100 - u64::from(n)))).await.unwrap();
    }
    // More than the highest one means the highest one.
    scheduler.schedule(job(30, 200).due(ago(1))).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let handle = move |job: Job<u32, S>| {
        sees.lock().unwrap().push(job.payload);
        async { Ok::<_, String>(()) }
    };
    let kind = Kind::new("n").concurrency(1).most_held(2);
    let node = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    until("all are done", || node.metrics().done == 31).await;
    let mut expected: Vec<u32> = (0..30).collect();
    expected.sort_by_key(|n| (4 - n % 5, *n));
    expected.insert(0, 30);
    assert_eq!(*seen.lock().unwrap(), expected);
}

async fn a_claim_takes_the_most_urgent_due_jobs_and_then_the_earliest(store: impl Shared) {
    store.prepare().await.unwrap();
    let me = store.join(None, &[], HOUR).await.unwrap().node;
    let near = SystemTime::now() + HOUR;
    let jobs = [
        job(0, 0).due(ago(50)),
        job(1, 0).due(ago(40)),
        job(2, 3).due(ago(2)),
        job(3, 1).due(ago(9)),
        job(4, 3).due(ago(1)),
        job(5, 9).due(near),
        job(6, 0).due(near - ms(1_000)),
        job(7, 9).due(near + HOUR),
    ];
    let insert = |job: &NewJob| Insert { job: job.clone(), claim: false };
    let jobs: Vec<_> = jobs.iter().map(insert).collect();
    store.insert(Some(me), 2 * HOUR, &jobs).await.unwrap();
    let mut claimed = Vec::new();
    for room in [0, 1, 2, 2, 9] {
        let some = store.claim(me, HOUR + HOUR / 2, &[("n".into(), room)]).await.unwrap();
        let mut some: Vec<_> = some.iter().map(|job| (job.payload.clone(), job.priority)).collect();
        some.sort();
        claimed.push(some);
    }
    let of = |jobs: &[(u32, u8)]| -> Vec<_> {
        jobs.iter().map(|(payload, priority)| (payload.to_string(), *priority)).collect()
    };
    let expected = [
        of(&[]),
        of(&[(2, 3)]),
        of(&[(3, 1), (4, 3)]),
        of(&[(0, 0), (1, 0)]),
        of(&[(5, 9), (6, 0)]),
    ];
    assert_eq!(claimed, expected);
}

async fn a_priority_survives_failures_moves_and_replacements<S: Shared>(store: S) {
    let fail =
        |job: Job<u32, S>| async move { if job.attempt < 3 { Err("not yet") } else { Ok(()) } };
    let kind = Kind::new("n").retry(Retry::default().first(ms(1)).attempts(2));
    let node = Jobs::builder(store).handle(kind, fail).open().await.unwrap();
    let priority = async |id| node.get(id).await.unwrap().map(|job| job.priority);
    let dead = node.schedule(job(1, 7)).await.unwrap();
    until("it is dead", || node.metrics().buried == 1).await;
    assert_eq!(priority(dead).await, Some(7));
    node.revive(dead).await.unwrap();
    until("it is dead again", || node.metrics().buried == 2).await;
    let far = node.schedule(job(2, 5).key("k").due(HOUR)).await.unwrap();
    node.reschedule(far, 2 * HOUR).await.unwrap();
    assert_eq!(priority(far).await, Some(5));
    let new = job(3, 4).key("k").due(HOUR);
    assert_eq!(node.replace(new.clone()).await.unwrap(), Some(far));
    assert_eq!(priority(new.id()).await, Some(4));
    assert!(node.cancel(new.id()).await.unwrap());
}

/// Many far jobs with priorities, and as many due ones without, stand in no claim's way.
#[tokio::test]
async fn a_claim_reads_few_rows_whatever_the_priorities_of_far_jobs() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let user = connect(&url).await;
    let fill = "INSERT INTO wheelwork_jobs (id, kind, due, payload, priority)
        SELECT gen_random_uuid(), 'n', now() + n * interval '1 day', 'null', n % 10
        FROM generate_series(1, 50000) AS n
        UNION ALL
        SELECT gen_random_uuid(), 'n', now() - n * interval '1 second', 'null', 0
        FROM generate_series(1, 50000) AS n";
    user.batch_execute(fill).await.unwrap();
    let me = store.join(None, &[], HOUR).await.unwrap().node;
    for _ in 0..20 {
        let claimed = store.claim(me, ms(1), &[("n".into(), 10)]).await.unwrap();
        assert_eq!(claimed.len(), 10);
    }
    drop(store);
    tokio::time::sleep(ms(1_500)).await; // a connection that ends tells its counts
    let read = "SELECT coalesce(seq_tup_read, 0) + coalesce(sum(idx_tup_read), 0)
        FROM pg_stat_user_tables AS jobs JOIN pg_stat_user_indexes AS index USING (relid)
        WHERE jobs.relname = 'wheelwork_jobs' GROUP BY seq_tup_read";
    let read: i64 = user.query_one(&format!("SELECT ({read})::bigint"), &[]).await.unwrap().get(0);
    assert!(read < 5_000, "20 claims of 10 have read {read} rows");
}

/// The room is full of jobs that are due later. Those that are due last give way, and come back.
async fn a_job_that_is_due_comes_in_beside_a_full_room<S: Shared>(store: S) {
    let permits = Arc::new(Semaphore::new(0));
    let waits = permits.clone();
    let handle = move |_: Job<u32, S>| {
        let waits = waits.clone();
        async move { waits.acquire().await.map(Permit::forget).map_err(|error| error.to_string()) }
    };
    let kind = Kind::new("n").most_held(8);
    let builder = Jobs::builder(store).window(100 * HOUR).handle(kind, handle);
    let node = builder.open().await.unwrap();
    let later = (1..=8).map(|n| job(n, 0).due(n * HOUR));
    let later: Vec<_> = node.schedule_all(later).await.into_iter().map(Result::unwrap).collect();
    until("the room is full", || node.metrics().held == 8).await;
    for running in 1..=3 {
        node.schedule(job(0, 9)).await.unwrap();
        until("it runs", || node.metrics().running == running).await;
        assert!(node.metrics().held <= 8);
    }
    for (n, id) in later.iter().enumerate() {
        let expected = if n < 5 { State::Claimed } else { State::Waiting };
        let state = async || node.get(*id).await.unwrap().unwrap().state;
        while state().await != expected {
            tokio::time::sleep(ms(5)).await; // the store may not know yet
        }
    }
    permits.add_permits(3);
    until("they are done, and the others are held again", || {
        node.metrics().done == 3 && node.metrics().held == 8
    })
    .await;
}
