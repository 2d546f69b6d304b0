//! One process after the other on one file.

use crate::common::until;
use crate::crash::process::{Process, kills, some_time, task};
use redb::{ReadableTable, TableDefinition};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Redb, Retry};

/// How often the effect of each job was written.
const EFFECTS: TableDefinition<u64, u64> = TableDefinition::new("effects");

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn work(store: Redb, job: Job<u64, Redb>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let transaction = store.begin_write().await?;
    job.complete_in(&transaction).await?;
    {
        let mut effects = transaction.open_table(EFFECTS)?;
        let before = effects.get(job.payload)?.map_or(0, |count| count.value());
        effects.insert(job.payload, before + 1)?;
    }
    Ok(transaction.commit().await?)
}

async fn open(store: &Redb) -> Jobs<Redb> {
    let shared = store.clone();
    let kind = Kind::new("n").concurrency(2).retry(Retry::default().first(ms(10)));
    let builder = Jobs::builder(store.clone());
    builder.handle(kind, move |job| work(shared.clone(), job)).open().await.unwrap()
}

/// A process that schedules jobs and runs them, until it is killed. Prints the number of each job that is
/// durable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test"]
async fn process() {
    let Some(task) = task() else { return };
    let (path, first) = task.split_once(' ').unwrap();
    let store = Redb::open(path).unwrap();
    let jobs = open(&store).await;
    for n in first.parse::<u64>().unwrap().. {
        let job = NewJob::new("n", &n).unwrap().due(some_time(ms(500)));
        jobs.schedule(job).await.unwrap();
        println!("durable {n}");
        tokio::time::sleep(some_time(ms(4))).await;
    }
}

/// Kills the process as soon as it has written anything.
#[test]
fn a_process_that_is_killed_while_it_creates_the_file_leaves_a_whole_one_or_none() {
    for _ in 0..2 * kills() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.redb");
        let mut process =
            Process::start("crash::embedded::process", &format!("{} 0", path.display()));
        while std::fs::read_dir(folder.path()).unwrap().next().is_none() {}
        std::thread::sleep(some_time(ms(4)));
        process.kill();
        Redb::open(&path).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_of_a_file_is_lost_or_done_twice_when_its_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let mut durable = Vec::new();
    let mut last = None;
    for round in 0..u64::from(kills()) {
        let task = format!("{} {}", path.display(), round * 1_000_000);
        let mut process = Process::start("crash::embedded::process", &task);
        let output = BufReader::new(process.0.stdout.take().unwrap());
        let (begins, begun) = tokio::sync::oneshot::channel();
        let reader = std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            let number = |line: String| line.strip_prefix("durable ")?.parse::<u64>().ok();
            let mut numbers = lines.filter_map(number);
            let first = numbers.next();
            begins.send(()).unwrap();
            first.into_iter().chain(numbers).collect::<Vec<_>>()
        });
        begun.await.unwrap();
        tokio::time::sleep(some_time(ms(400))).await;
        process.kill();
        durable.extend(reader.join().unwrap());
        last = Some(process);
    }
    drop(last);

    let store = Redb::open(&path).unwrap();
    let jobs = open(&store).await;
    let mut left = usize::MAX;
    let begun = Instant::now();
    while left > 0 {
        assert!(begun.elapsed() < Duration::from_secs(120), "{left} jobs have not ended");
        left = jobs.list(Default::default()).await.unwrap().len();
        tokio::time::sleep(ms(10)).await;
    }
    until("all are settled", || jobs.metrics().held == 0).await;
    let read = store.begin_read().unwrap();
    let effects = read.open_table(EFFECTS).unwrap();
    let effects: BTreeMap<u64, u64> = effects
        .iter()
        .unwrap()
        .map(|entry| entry.map(|(n, count)| (n.value(), count.value())).unwrap())
        .collect();
    assert!(durable.len() >= kills() as usize, "{} are too few", durable.len());
    for n in &durable {
        assert!(effects.contains_key(n), "job {n} is lost");
    }
    assert!(effects.values().all(|&count| count == 1));
    eprintln!("{} jobs, {} effects, {} kills", durable.len(), effects.len(), kills());
}
