//! More jobs than one statement can claim or free in time.

use crate::common::{connect, postgres, until};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::store::{Claim, Store};
use wheelwork_jobs::{Job, JobId, Jobs, Postgres};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A store whose statements have less time than it takes to change all jobs.
fn impatient(url: &str) -> Postgres {
    Postgres::with(url.parse::<Config>().unwrap(), NoTls, ms(400))
}

const KINDS: usize = 1_000;
const OF_EACH: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overdue_jobs_of_many_kinds_flow() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    impatient(&url).prepare().await.unwrap();
    let overdue = format!(
        "INSERT INTO wheelwork_jobs (id, kind, due, payload)
        SELECT gen_random_uuid(), 'k' || n % {KINDS}, now() - n * interval '1 ms', 'null'
        FROM generate_series(1, {}) AS n",
        KINDS * OF_EACH
    );
    connect(&url).await.batch_execute(&overdue).await.unwrap();
    let handle = |_: Job<(), Postgres>| async { Ok::<_, String>(()) };
    let mut builder = Jobs::builder(impatient(&url)).liveness(Duration::from_secs(3));
    for kind in 0..KINDS {
        builder = builder.handle(format!("k{kind}"), handle);
    }
    let node = builder.open().await.unwrap();
    until("all are done", || node.metrics().done == (KINDS * OF_EACH) as u64).await;
    assert_eq!(node.metrics().lapsed, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_over_and_a_stop_end_however_many_jobs_there_are() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = impatient(&url);
    store.prepare().await.unwrap();
    let dead = store.join(None, &[], ms(0)).await.unwrap().node;
    let owned = format!(
        "INSERT INTO wheelwork_jobs (id, kind, due, payload, owner)
        SELECT gen_random_uuid(), 'n', now() + interval '1 day', 'null', {}
        FROM generate_series(1, 100000) AS n",
        dead.0
    );
    let client = connect(&url).await;
    client.batch_execute(&owned).await.unwrap();
    let (begun, mut freed) = (Instant::now(), 0);
    while freed < 100_000 {
        assert!(begun.elapsed() < Duration::from_secs(300), "only {freed} were freed");
        freed += store.take_over().await.unwrap_or(0);
    }
    // The call that frees the last jobs may run out of time before it forgets the node: the next one does.
    let nodes = "SELECT count(*) FROM wheelwork_nodes";
    while client.query_one(nodes, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(300), "the node is not forgotten");
        assert_eq!(store.take_over().await.unwrap_or(0), 0);
    }

    let left = store.join(None, &[], ms(60_000)).await.unwrap().node;
    let own = format!("UPDATE wheelwork_jobs SET owner = {}", left.0);
    client.batch_execute(&own).await.unwrap();
    let begun = Instant::now();
    while let Err(error) = store.leave(left).await {
        assert!(begun.elapsed() < Duration::from_secs(300), "{error}");
    }
    let owned = "SELECT count(*) FROM wheelwork_jobs WHERE owner IS NOT NULL";
    assert_eq!(client.query_one(owned, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// The statistics say that nobody owns anything, and a long transaction keeps all that was freed in the
/// index of the owners.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_are_looked_up_by_their_ids() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::with(url.parse::<Config>().unwrap(), NoTls, ms(4_000));
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
    let new = store.join(Some(node), &claims, ms(60_000)).await.unwrap();
    assert_eq!(new.kept.len(), claims.len());
}
