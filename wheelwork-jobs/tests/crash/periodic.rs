//! A job that recurs each second, while the processes of its nodes are killed. Each process makes it again when it
//! starts.

use crate::common::{connect, opened, postgres};
use crate::crash::process::{Process, kills, some_time, task};
use redb::{ReadableTable, TableDefinition};
use std::error::Error;
use std::time::{Duration, Instant, SystemTime};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::{Filter, Job, Jobs, NewJob, Periodic, Postgres, Redb, Store};

/// How often the effect of each occurrence was written, by its time in milliseconds since 1970.
const EFFECTS: TableDefinition<u64, u64> = TableDefinition::new("effects");

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn time_of<S: Store>(job: &Job<u32, S>) -> u64 {
    let since = job.due.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

async fn repeat<S: Store>(jobs: &Jobs<S>) {
    let job = NewJob::new("n", &1).unwrap().key("each second");
    let each_second = Periodic::cron(job, "* * * * * *", "America/New_York").unwrap();
    while jobs.repeat(&each_second).await.is_err() {
        tokio::time::sleep(ms(20)).await;
    }
}

/// There is one job, which recurs, and each occurrence had its effect once.
async fn judge<S: Store>(jobs: &Jobs<S>, mut effects: Vec<(u64, u64)>) {
    let stored = jobs.list(Filter::default()).await.unwrap();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(stored[0].key.as_deref(), Some("each second"));
    effects.sort_unstable();
    let is_right = |&(time, count): &(u64, u64)| count == 1 && time % 1_000 == 0;
    assert!(effects.iter().all(is_right), "{effects:?}");
    eprintln!("{} occurrences, {} kills", effects.len(), kills());
}

// PostgreSQL: two processes at a time.

type Failed = Box<dyn Error + Send + Sync>;

async fn on_postgres(url: String, job: Job<u32, Postgres>) -> Result<(), Failed> {
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    let transaction = client.transaction().await?;
    job.complete_in(&transaction).await?;
    let time = i64::try_from(time_of(&job))?;
    transaction.execute("INSERT INTO effects VALUES ($1)", &[&time]).await?;
    tokio::time::sleep(some_time(ms(100))).await;
    Ok(transaction.commit().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test"]
async fn process_on_postgres() {
    let Some(url) = task() else { return };
    let config: Config = url.parse().unwrap();
    let builder = || {
        let (url, store) = (url.clone(), Postgres::with(config.clone(), NoTls, ms(500)));
        let handle = move |job| on_postgres(url.clone(), job);
        Jobs::builder(store).liveness(ms(1_500)).handle("n", handle)
    };
    let jobs = opened(builder).await;
    repeat(&jobs).await;
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_periodic_job_in_postgres_neither_ends_nor_doubles_when_processes_are_killed() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let client = connect(&url).await;
    client.batch_execute("CREATE TABLE effects (time bigint NOT NULL)").await.unwrap();
    let start = || Process::start("crash::periodic::process_on_postgres", &url);
    let mut processes = [start(), start()];
    for round in 0..kills() as usize {
        tokio::time::sleep(ms(400) + some_time(ms(1_200))).await;
        let process = &mut processes[round % 2];
        process.kill();
        *process = start();
    }
    // It goes on to recur.
    let count = "SELECT count(*) FROM effects";
    let count = async || client.query_one(count, &[]).await.unwrap().get::<_, i64>(0);
    let (begun, before) = (Instant::now(), count().await);
    while count().await < before + 3 {
        assert!(begun.elapsed() < Duration::from_secs(120), "it recurs no more");
        tokio::time::sleep(ms(50)).await;
    }
    processes.iter_mut().for_each(Process::kill);
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let effects = "SELECT time, count(*) FROM effects GROUP BY time";
    let effects = client.query(effects, &[]).await.unwrap();
    let number = |row: &tokio_postgres::Row, n| row.get::<_, i64>(n).cast_unsigned();
    let effects = effects.iter().map(|row| (number(row, 0), number(row, 1))).collect();
    judge(&jobs, effects).await;
}

// One file: one process after the other.

async fn on_redb(store: Redb, job: Job<u32, Redb>) -> Result<(), Failed> {
    let transaction = store.begin_write().await?;
    job.complete_in(&transaction).await?;
    {
        let mut effects = transaction.open_table(EFFECTS)?;
        let before = effects.get(time_of(&job))?.map_or(0, |count| count.value());
        effects.insert(time_of(&job), before + 1)?;
    }
    Ok(transaction.commit().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test"]
async fn process_on_redb() {
    let Some(path) = task() else { return };
    let store = Redb::open(path).unwrap();
    let shared = store.clone();
    let handle = move |job| on_redb(shared.clone(), job);
    let jobs = Jobs::builder(store).handle("n", handle).open().await.unwrap();
    repeat(&jobs).await;
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_periodic_job_in_a_file_neither_ends_nor_doubles_when_its_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    for _ in 0..kills() {
        let mut process =
            Process::start("crash::periodic::process_on_redb", &path.display().to_string());
        tokio::time::sleep(ms(300) + some_time(ms(1_200))).await;
        process.kill();
    }
    let store = Redb::open(&path).unwrap();
    let shared = store.clone();
    let handle = move |job| on_redb(shared.clone(), job);
    let jobs = Jobs::builder(store.clone()).handle("n", handle).open().await.unwrap();
    repeat(&jobs).await;
    crate::common::until("it has recurred", || jobs.metrics().done >= 2).await;
    jobs.stop(ms(10_000)).await.unwrap();
    let read = store.begin_read().unwrap();
    let effects = read.open_table(EFFECTS).unwrap();
    let effects = effects.iter().unwrap().map(|entry| {
        let (time, count) = entry.unwrap();
        (time.value(), count.value())
    });
    let jobs = Jobs::open(store).await.unwrap();
    judge(&jobs, effects.collect()).await;
}
