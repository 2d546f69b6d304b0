//! More jobs than one statement can claim or free in time.

use crate::common::{connect, opened, postgres};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Config, NoTls};
use wheelwork_jobs::store::Calls;
use wheelwork_jobs::store::{Claim, Insert, Keep, Store};
use wheelwork_jobs::{Job, JobId, Jobs, NewJob, Peek, Postgres, Redb, State};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A store whose statements have less time than it takes to change all jobs.
fn impatient(url: &str) -> Postgres {
    Postgres::with(url.parse::<Config>().unwrap(), NoTls, ms(400))
}

const HOUR: Duration = Duration::from_secs(3_600);

const KINDS: usize = 1_000;
const OF_EACH: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overdue_jobs_of_many_kinds_flow() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    Postgres::new(&url).unwrap().prepare().await.unwrap();
    let overdue = format!(
        "INSERT INTO wheelwork_jobs (id, kind, due, payload)
        SELECT gen_random_uuid(), 'k' || n % {KINDS}, now() - n * interval '1 ms', 'null'
        FROM generate_series(1, {}) AS n",
        KINDS * OF_EACH
    );
    let client = connect(&url).await;
    client.batch_execute(&overdue).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let handle = || {
        let runs = runs.clone();
        move |_: Job<(), Postgres>| {
            runs.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, String>(()) }
        }
    };
    let builder = || {
        let builder = Jobs::builder(impatient(&url));
        (0..KINDS).fold(builder, |builder, kind| builder.handle(format!("k{kind}"), handle()))
    };
    let node = opened(builder).await;
    // What the node counts as done can be fewer: the answer to an end may come too late.
    let left = "SELECT count(*) FROM wheelwork_jobs";
    until_none(&client, left, async || tokio::time::sleep(ms(5)).await).await;
    assert!(runs.load(Ordering::Relaxed) >= KINDS * OF_EACH);
    assert_eq!(node.metrics().lapsed, 0);
}

/// No test waits longer for progress.
const PATIENCE: Duration = Duration::from_secs(600);

/// Calls again and again until there are none. Each call may run out of time, and may do nothing but wait.
async fn until_none(client: &Client, count: &str, mut call: impl AsyncFnMut()) {
    let (mut left, mut since) = (i64::MAX, Instant::now());
    while left > 0 {
        call().await;
        let now = client.query_one(count, &[]).await.unwrap().get(0);
        if now < left {
            (left, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{left} are left, and no call frees one");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_over_and_a_stop_end_however_many_jobs_there_are() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let (store, patient) = (impatient(&url), Postgres::new(&url).unwrap());
    patient.prepare().await.unwrap();
    let dead = patient.join(None, &[], ms(0)).await.unwrap().node;
    let owned = format!(
        "INSERT INTO wheelwork_jobs (id, kind, due, payload, owner)
        SELECT gen_random_uuid(), 'n', now() + interval '1 day', 'null', {}
        FROM generate_series(1, 100000) AS n",
        dead.0
    );
    let client = connect(&url).await;
    client.batch_execute(&owned).await.unwrap();
    let owned = "SELECT count(*) FROM wheelwork_jobs WHERE owner IS NOT NULL";
    let nodes = "SELECT count(*) FROM wheelwork_nodes";
    for count in [owned, nodes] {
        until_none(&client, count, async || drop(store.take_over().await)).await;
    }

    let left = patient.join(None, &[], HOUR).await.unwrap().node;
    let own = format!("UPDATE wheelwork_jobs SET owner = {}", left.0);
    client.batch_execute(&own).await.unwrap();
    for count in [owned, nodes] {
        until_none(&client, count, async || drop(store.leave(left).await)).await;
    }
}

/// The statistics say that nobody owns anything, and a long transaction keeps all that was freed in the
/// index of the owners.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_are_looked_up_by_their_ids() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let node = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let mut old = connect(&url).await;
    let keeps = old.transaction().await.unwrap();
    let client = connect(&url).await;
    let fill = format!(
        "INSERT INTO wheelwork_jobs (id, kind, due, payload)
            SELECT gen_random_uuid(), 'n', now(), 'null' FROM generate_series(1, 30000);
        ANALYZE wheelwork_jobs;
        ALTER TABLE wheelwork_jobs SET (autovacuum_enabled = off);
        UPDATE wheelwork_jobs SET owner = {}, epoch = 7",
        node.0
    );
    keeps.query("SELECT count(*) FROM wheelwork_jobs", &[]).await.unwrap();
    client.batch_execute(&fill).await.unwrap();
    let ids = client.query("SELECT id FROM wheelwork_jobs LIMIT 1000", &[]).await.unwrap();
    let id = |row: &tokio_postgres::Row| row.get::<_, uuid::Uuid>(0).as_u128();
    let claims = ids.iter().map(|row| Claim { id: JobId::from_u128(id(row)), epoch: 7 });
    let claims: Vec<_> = claims.collect();
    // Each takes half a minute by the owner.
    for _ in 0..8 {
        assert_eq!(store.holding(node, &claims).await.unwrap().len(), claims.len());
        assert_eq!(store.start(node, &claims[..100]).await.unwrap().len(), 100);
    }
    let keep: Vec<_> = claims.iter().map(|&claim| Keep { claim, called: false }).collect();
    let new = store.join(Some(node), &keep, ms(60_000)).await.unwrap();
    assert_eq!(new.kept.len(), claims.len());
}

#[tokio::test]
async fn a_free_job_behind_all_that_are_claimed_is_seen() {
    let store = Redb::in_memory().unwrap();
    store.prepare().await.unwrap();
    let node = store.join(None, &[], HOUR).await.unwrap().node;
    let new = |due| NewJob::new("n", &0).unwrap().due(due);
    let claimed = (0..Peek::MOST_READ).map(|_| Insert { job: new(ms(0)), claim: true });
    let free = Insert { job: new(HOUR), claim: false };
    let jobs: Vec<_> = claimed.chain([free.clone()]).collect();
    store.insert(Some(node), ms(0), &jobs).await.unwrap();
    let peek = Peek { kind: Some("n".into()), state: State::Waiting, skip: 0, most: 10 };
    let seen = store.peek(&peek).await.unwrap();
    assert_eq!(seen.iter().map(|job| job.id).collect::<Vec<_>>(), [free.job.id()]);
}
