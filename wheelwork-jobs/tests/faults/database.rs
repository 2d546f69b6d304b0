//! A database that restarts, and a network that is cut or slow, while jobs run.

use crate::common::{connect, opened, postgres};
use crate::faults::proxy::{Line, Proxy};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Postgres, Retry};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const TABLE: &str = "CREATE TABLE effects (n bigint PRIMARY KEY, early boolean NOT NULL)";

/// A node whose handlers write their effect in the transaction that ends the job, over connections of
/// their own.
async fn node(store: Postgres, direct: &str) -> Jobs<Postgres> {
    let direct = direct.to_owned();
    let handle = move |job: Job<i64, Postgres>| {
        let direct = direct.clone();
        async move { work(&direct, &job).await.map_err(|error| error.to_string()) }
    };
    let retry = Retry::default().attempts(1_000).first(ms(20)).longest(ms(200));
    let kind = Kind::new("n").concurrency(4).retry(retry);
    let builder = || {
        let builder = Jobs::builder(store.clone()).liveness(ms(1_500)).window(ms(3_000));
        builder.handle(kind.clone(), handle.clone())
    };
    opened(builder).await
}

async fn work(
    direct: &str,
    job: &Job<i64, Postgres>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (mut client, connection) = tokio_postgres::connect(direct, NoTls).await?;
    tokio::spawn(connection);
    let transaction = client.transaction().await?;
    let effect = "INSERT INTO effects VALUES ($1, clock_timestamp() < $2)";
    transaction.execute(effect, &[&job.payload, &job.due]).await?;
    job.complete_in(&transaction).await?;
    Ok(transaction.commit().await?)
}

/// Schedules jobs until an instant. Returns those that were stored for sure.
async fn schedule_until(end: Instant, jobs: &Jobs<Postgres>, next: &mut i64) -> BTreeSet<i64> {
    let mut stored = BTreeSet::new();
    while Instant::now() < end {
        let batch: Vec<_> = (*next..*next + 5).collect();
        *next += 5;
        let new = |n: &i64| NewJob::new("n", n).unwrap().due(ms(fastrand::u64(..1_500)));
        let results = jobs.schedule_all(batch.iter().map(new)).await;
        stored.extend(
            batch.iter().zip(results).filter(|(_, result)| result.is_ok()).map(|(n, _)| *n),
        );
        tokio::time::sleep(ms(25)).await;
    }
    stored
}

async fn check(direct: &str, stored: &BTreeSet<i64>) {
    let client = connect(direct).await;
    let begun = Instant::now();
    let left = "SELECT count(*) FROM wheelwork_jobs";
    while client.query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "jobs have not ended");
        tokio::time::sleep(ms(50)).await;
    }
    let effects = client.query("SELECT n, early FROM effects", &[]).await.unwrap();
    let done: BTreeSet<i64> = effects.iter().map(|row| row.get(0)).collect();
    let lost: Vec<_> = stored.difference(&done).collect();
    assert!(lost.is_empty(), "{lost:?} are lost of {}", stored.len());
    assert!(!stored.is_empty());
    assert!(effects.iter().all(|row| !row.get::<_, bool>(1)), "a job was early");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_survive_a_database_that_crashes_under_load() {
    let Some(server) = postgres::own_server() else { return };
    let url = server.database();
    connect(&url).await.batch_execute(TABLE).await.unwrap();
    let nodes = [
        node(Postgres::new(&url).unwrap(), &url).await,
        node(Postgres::new(&url).unwrap(), &url).await,
    ];
    let mut stored = BTreeSet::new();
    let mut next = 0;
    for round in 0..5 {
        let end = Instant::now() + ms(1_000);
        stored.extend(schedule_until(end, &nodes[round % 2], &mut next).await);
        server.restart();
    }
    server.wait_until_ready();
    check(&url, &stored).await;
    assert!(nodes.iter().all(|node| node.metrics().store_errors > 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_survive_a_network_that_is_cut_hangs_and_is_slow() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    connect(&url).await.batch_execute(TABLE).await.unwrap();
    let proxy = Proxy::start(server.port()).await;
    let mut config: Config = url.parse().unwrap();
    config = {
        let mut by_proxy = Config::new();
        let database = config.get_dbname().unwrap();
        by_proxy.host("127.0.0.1").port(proxy.port).user("postgres").dbname(database);
        by_proxy
    };
    let behind = Postgres::with(config, NoTls, ms(500));
    let nodes = [node(Postgres::new(&url).unwrap(), &url).await, node(behind, &url).await];
    let mut stored = BTreeSet::new();
    let mut next = 0;
    for line in [Line::Cut, Line::Hangs, Line::Slow(ms(40)), Line::Cut, Line::Hangs] {
        for line in [line, Line::Good] {
            proxy.set(line);
            let end = Instant::now() + ms(200 + fastrand::u64(..2_500));
            for node in &nodes {
                stored.extend(schedule_until(end, node, &mut next).await);
            }
        }
    }
    check(&url, &stored).await;
    assert!(nodes[1].metrics().store_errors > 0);
}
