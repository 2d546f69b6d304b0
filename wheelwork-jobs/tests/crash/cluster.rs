//! Three nodes on one database. Their wall clocks are minutes apart, their network forgets connections that are quiet,
//! and the server fails and gives way to its standby.

use crate::common::postgres::{self, Server};
use crate::common::{connect, opened};
use crate::crash::process::{Process, kills, some_time, task};
use crate::faults::proxy::Proxy;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Retry};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const LIVENESS: Duration = ms(1_000);
const CONCURRENCY: usize = 4;

/// The network forgets a connection that was quiet for this time, which is longer than a beat.
const FORGETS_AFTER: Duration = ms(1_500);

/// Kills between two failovers.
const FAILOVER_EACH: u32 = 20;

/// A node, until it is killed. Its task is the URL for the store, and that for its handlers.
#[tokio::test]
#[ignore = "a part of another test"]
async fn node() {
    let Some(task) = task() else { return };
    let (url, direct) = task.split_once(' ').unwrap();
    // As many handlers run at once as there are connections.
    let clients = Arc::new(Mutex::new((0..2 * CONCURRENCY).map(|_| None).collect::<Vec<_>>()));
    let work = |in_transaction: bool| {
        let (clients, direct) = (clients.clone(), direct.to_owned());
        move |job: Job<i64, Postgres>| {
            let (clients, direct) = (clients.clone(), direct.clone());
            async move {
                let mut client = clients.lock().await.pop().unwrap();
                let done = work_by(&mut client, &direct, &job, in_transaction).await;
                // After an error, the next one connects again.
                clients.lock().await.push(client.filter(|_| done.is_ok()));
                done.map_err(|error| error.to_string())
            }
        }
    };
    let kind = |name: &str| {
        let retry = Retry::default().attempts(1_000).first(ms(20)).longest(ms(100));
        Kind::new(name).concurrency(CONCURRENCY).retry(retry)
    };
    let _node = opened(|| {
        let builder = Jobs::builder(Postgres::new(url).unwrap()).liveness(LIVENESS);
        let builder = builder.window(ms(2_000)).handle(kind("once"), work(true));
        builder.handle(kind("often"), work(false))
    })
    .await;
    std::future::pending::<()>().await;
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn work_by(
    client: &mut Option<Client>,
    url: &str,
    job: &Job<i64, Postgres>,
    in_transaction: bool,
) -> Result<(), Failed> {
    if client.is_none() {
        let (new, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        *client = Some(new);
    }
    let client = client.as_mut().unwrap();
    if in_transaction {
        work_in_transaction(client, job).await
    } else {
        work_outside(client, job).await
    }
}

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
CREATE TABLE failovers (n bigserial);
";

/// What the user has asked for.
#[derive(Default)]
struct Asked {
    jobs: Vec<(i64, JobId)>,
    cancelled: BTreeSet<i64>,
    /// Jobs whose call failed: they may be there or not.
    unknown: BTreeSet<i64>,
    /// Jobs that may be cancelled or not, because that call failed.
    doubtful: BTreeSet<i64>,
}

impl Asked {
    async fn schedule(&mut self, jobs: &Jobs<Postgres>, next: &mut i64) {
        let batch: Vec<_> = (0..fastrand::i64(1..100)).map(|i| *next + i).collect();
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
            match jobs.cancel(id).await {
                Ok(true) => _ = self.cancelled.insert(n),
                Ok(false) => {}
                Err(_) => _ = self.doubtful.insert(n),
            }
        } else {
            let _ = jobs.reschedule(id, some_time(ms(1_000))).await; // or it runs at its old time
        }
    }
}

/// What leads to the server: for the nodes, and for their handlers and users.
struct Ways {
    nodes: Proxy,
    others: Proxy,
    database: String,
}

impl Ways {
    async fn to(server: &Server, database: String) -> Self {
        let (nodes, others) =
            (Proxy::start(server.port()).await, Proxy::start(server.port()).await);
        nodes.forget_after(FORGETS_AFTER);
        Self { nodes, others, database }
    }

    fn url(&self, proxy: &Proxy) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port, self.database)
    }

    fn task(&self) -> String {
        format!("{} {}", self.url(&self.nodes), self.url(&self.others))
    }

    /// The server fails. Its standby, which has all that was committed, takes no writes for a while, and then all.
    fn fail_over(&self, primary: &Server, standby: &Server) {
        primary.stop();
        for proxy in [&self.nodes, &self.others] {
            proxy.lead_to(standby.port());
            proxy.cut_all();
        }
        std::thread::sleep(some_time(LIVENESS));
        standby.promote();
    }

    /// A standby without which the server commits nothing.
    fn standby(&self, primary: &Server) -> Server {
        let standby = primary.standby();
        primary.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary.psql("postgres", "SELECT pg_reload_conf()");
        let is_needed = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let begun = Instant::now();
        while primary.psql("postgres", is_needed) != "1" {
            assert!(begun.elapsed() < ms(120_000), "the standby does not follow");
            std::thread::sleep(ms(50));
        }
        // It has all that was committed before.
        primary.psql(&self.database, "INSERT INTO failovers DEFAULT VALUES");
        standby
    }
}

async fn count(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn numbers(client: &Client, query: &str) -> BTreeSet<i64> {
    client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_lost_early_or_done_twice_when_nodes_are_killed_and_paused_and_servers_fail() {
    let Some(mut primary) = postgres::own_server() else { return };
    let url = primary.database();
    connect(&url).await.batch_execute(TABLES).await.unwrap();
    let ways = Ways::to(&primary, url.rsplit('/').next().unwrap().to_owned()).await;
    let jobs = opened(|| Jobs::builder(Postgres::new(&ways.url(&ways.nodes)).unwrap())).await;
    let task = ways.task();
    let start = |clock: &str| Process::start_with_clock("crash::cluster::node", &task, clock);
    let clocks = ["+10m", "+0", "-10m"];
    let mut nodes = clocks.map(start);

    let (mut asked, mut next, mut failovers) = (Asked::default(), 0, 0);
    for round in 0..kills() {
        let fails = round % FAILOVER_EACH == FAILOVER_EACH / 2;
        let standby = fails.then(|| tokio::task::block_in_place(|| ways.standby(&primary)));
        let end = Instant::now() + ms(50) + some_time(ms(350));
        while Instant::now() < end {
            asked.schedule(&jobs, &mut next).await;
            asked.change(&jobs).await;
            tokio::time::sleep(some_time(ms(20))).await;
        }
        if let Some(standby) = standby {
            tokio::task::block_in_place(|| ways.fail_over(&primary, &standby));
            (primary, failovers) = (standby, failovers + 1);
            continue;
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
    let client = connect(&primary.url(&ways.database)).await;
    let (mut left, mut since) = (i64::MAX, Instant::now());
    while left > 0 {
        let now = count(&client, "SELECT count(*) FROM wheelwork_jobs").await;
        if now < left {
            (left, since) = (now, Instant::now());
        }
        if since.elapsed() > Duration::from_secs(120) {
            let left = "SELECT string_agg(job::text, E'\\n') FROM wheelwork_jobs AS job";
            let left: String = client.query_one(left, &[]).await.unwrap().get(0);
            panic!("no job ends any more:\n{left}");
        }
        tokio::time::sleep(ms(50)).await;
    }
    let once = numbers(&client, "SELECT n FROM effects").await;
    let often = numbers(&client, "SELECT n FROM effects_often").await;
    for (n, _) in &asked.jobs {
        let done = if n % 4 == 0 { &often } else { &once };
        let cancelled = asked.cancelled.contains(n);
        let may_be_cancelled = cancelled || asked.doubtful.contains(n);
        assert!(done.contains(n) || may_be_cancelled, "job {n} is lost");
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
        "{} jobs, {} kills, {failovers} failovers, {} cancelled, {} unknown; outside a transaction {} of {} ran again",
        asked.jobs.len(),
        kills() - failovers,
        asked.cancelled.len(),
        asked.unknown.len(),
        count(&client, twice).await,
        often.len(),
    );
}
