//! Three nodes on one database. Their wall clocks are minutes apart.

use crate::common::{connect, postgres};
use crate::process::{Process, kills, some_time, task};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio_postgres::Client;
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Retry};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const LIVENESS: Duration = ms(1_000);
const CONCURRENCY: usize = 4;

/// A node, until it is killed.
#[tokio::test]
#[ignore = "a part of another test"]
async fn node() {
    let Some(url) = task() else { return };
    let mut clients = Vec::new();
    for _ in 0..2 * CONCURRENCY {
        clients.push(connect(&url).await);
    }
    let clients = Arc::new(Mutex::new(clients));
    let work = |in_transaction: bool| {
        let clients = clients.clone();
        move |job: Job<i64, Postgres>| {
            let clients = clients.clone();
            async move {
                // As many handlers run at once as there are connections.
                let mut client = clients.lock().await.pop().unwrap();
                let done = if in_transaction {
                    work_in_transaction(&mut client, &job).await
                } else {
                    work_outside(&client, &job).await
                };
                clients.lock().await.push(client);
                done.map_err(|error| error.to_string())
            }
        }
    };
    let kind = |name: &str| {
        let retry = Retry::default().attempts(1_000).first(ms(20)).longest(ms(100));
        Kind::new(name).concurrency(CONCURRENCY).retry(retry)
    };
    let _node = Jobs::builder(Postgres::new(&url).unwrap())
        .liveness(LIVENESS)
        .window(ms(2_000))
        .handle(kind("once"), work(true))
        .handle(kind("often"), work(false))
        .open()
        .await
        .unwrap();
    std::future::pending::<()>().await;
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn work_in_transaction(client: &mut Client, job: &Job<i64, Postgres>) -> Result<(), Failed> {
    let transaction = client.transaction().await?;
    let effect = "INSERT INTO effects VALUES ($1, $2, clock_timestamp())";
    if fastrand::bool() {
        job.complete_in(&transaction).await?;
        transaction.execute(effect, &[&job.payload, &job.due]).await?;
    } else {
        transaction.execute(effect, &[&job.payload, &job.due]).await?;
        tokio::time::sleep(some_time(ms(20))).await;
        job.complete_in(&transaction).await?;
    }
    Ok(transaction.commit().await?)
}

async fn work_outside(client: &Client, job: &Job<i64, Postgres>) -> Result<(), Failed> {
    let effect = "INSERT INTO effects_often VALUES ($1, $2, clock_timestamp())";
    client.execute(effect, &[&job.payload, &job.due]).await?;
    tokio::time::sleep(some_time(ms(5))).await;
    Ok(())
}

const TABLES: &str = "
CREATE TABLE effects (n bigint PRIMARY KEY, due timestamptz NOT NULL, at timestamptz NOT NULL);
CREATE TABLE effects_often (n bigint NOT NULL, due timestamptz NOT NULL, at timestamptz NOT NULL);
";

/// What the user has asked for.
#[derive(Default)]
struct Asked {
    jobs: Vec<(i64, JobId)>,
    cancelled: BTreeSet<i64>,
    /// Jobs whose call failed: they may be there or not.
    unknown: BTreeSet<i64>,
}

impl Asked {
    async fn schedule(&mut self, jobs: &Jobs<Postgres>, next: &mut i64) {
        let batch: Vec<_> = (0..fastrand::i64(1..30)).map(|i| *next + i).collect();
        *next += batch.len() as i64;
        let new = |&n: &i64| {
            let kind = if n % 4 == 0 { "often" } else { "once" };
            NewJob::new(kind, &n).unwrap().due(some_time(ms(3_000)))
        };
        let results = jobs.schedule_all(batch.iter().map(new)).await;
        for (n, result) in batch.into_iter().zip(results) {
            match result {
                Ok(id) => self.jobs.push((n, id)),
                Err(error) => {
                    eprintln!("{n}: {error}");
                    self.unknown.insert(n);
                }
            }
        }
    }

    async fn change(&mut self, jobs: &Jobs<Postgres>) {
        let Some(&(n, id)) = fastrand::choice(&self.jobs) else { return };
        if fastrand::bool() {
            if jobs.cancel(id).await.unwrap() {
                self.cancelled.insert(n);
            }
        } else {
            jobs.reschedule(id, some_time(ms(1_000))).await.unwrap();
        }
    }
}

async fn count(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn numbers(client: &Client, query: &str) -> BTreeSet<i64> {
    client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_lost_early_or_done_twice_when_nodes_are_killed_and_paused() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let client = connect(&url).await;
    client.batch_execute(TABLES).await.unwrap();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let start = |clock: &str| Process::start_with_clock("cluster::node", &url, clock);
    let clocks = ["+10m", "+0", "-10m"];
    let mut nodes = clocks.map(start);

    let (mut asked, mut next) = (Asked::default(), 0);
    for _ in 0..kills() {
        let end = Instant::now() + ms(50) + some_time(ms(350));
        while Instant::now() < end {
            asked.schedule(&jobs, &mut next).await;
            asked.change(&jobs).await;
            tokio::time::sleep(some_time(ms(20))).await;
        }
        let number = fastrand::usize(..nodes.len());
        let node = &mut nodes[number];
        if fastrand::u8(..10) == 0 {
            node.pause(LIVENESS.mul_f64(2.0 * fastrand::f64()));
        } else {
            node.kill();
            *node = start(clocks[number]);
        }
    }
    let begun = Instant::now();
    while count(&client, "SELECT count(*) FROM wheelwork_jobs").await > 0 {
        if begun.elapsed() > Duration::from_secs(120) {
            let left = "SELECT string_agg(job::text, E'\\n') FROM wheelwork_jobs AS job";
            let left: String = client.query_one(left, &[]).await.unwrap().get(0);
            panic!("jobs have not ended:\n{left}");
        }
        tokio::time::sleep(ms(50)).await;
    }
    let once = numbers(&client, "SELECT n FROM effects").await;
    let often = numbers(&client, "SELECT n FROM effects_often").await;
    for (n, _) in &asked.jobs {
        let done = if n % 4 == 0 { &often } else { &once };
        let cancelled = asked.cancelled.contains(n);
        assert!(done.contains(n) || cancelled, "job {n} is lost");
        // Outside a transaction, a job can be cancelled while it runs.
        assert!(
            !(cancelled && n % 4 != 0 && done.contains(n)),
            "job {n} was cancelled, and is done"
        );
    }
    for table in ["effects", "effects_often"] {
        let early = format!("SELECT count(*) FROM {table} WHERE at < due");
        assert_eq!(count(&client, &early).await, 0, "early in {table}");
    }
    let twice = "SELECT count(*) - count(DISTINCT n) FROM effects_often";
    eprintln!(
        "{} jobs, {} kills, {} cancelled, {} unknown; outside a transaction {} of {} ran again",
        asked.jobs.len(),
        kills(),
        asked.cancelled.len(),
        asked.unknown.len(),
        count(&client, twice).await,
        often.len(),
    );
}
