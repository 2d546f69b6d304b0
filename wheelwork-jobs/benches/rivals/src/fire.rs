//! Many jobs through one node: each must run once, and not before its due time.

use crate::Failed;
use crate::args::Args;
use crate::rivals::{CONCURRENCY, Rival};
use crate::server::Server;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Postgres, Redb, Store};

const KIND: &str = "fire";
/// The time over which the jobs are due, at random.
const SPREAD: Duration = Duration::from_secs(20);
const BATCH: u64 = 1_000;
/// So many batches are stored at the same time.
const AT_ONCE: u64 = 4;
/// Jobs are lost if none ends for this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a line tells what was done.
const NEWS: Duration = Duration::from_secs(20);

pub struct Fired {
    pub rival: Rival,
    pub time: Duration,
    pub lost: u64,
    pub early: u64,
    /// Runs beyond the first one of each job.
    pub again: u64,
    pub late_by: Histogram<u64>,
}

/// What the handlers have seen.
struct Seen {
    runs: Vec<AtomicU8>,
    early: AtomicU64,
    late_by: Mutex<Histogram<u64>>,
}

impl Seen {
    fn new(jobs: u64) -> Result<Self, Failed> {
        let late_by = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        let late_by = Mutex::new(late_by.map_err(|error| format!("{error:?}"))?);
        let runs = (0..jobs).map(|_| AtomicU8::new(0)).collect();
        Ok(Self { runs, early: AtomicU64::new(0), late_by })
    }

    /// The server's clock is that of this machine.
    fn ran(&self, number: u64, due: SystemTime) {
        self.runs[number as usize].fetch_add(1, Ordering::Relaxed);
        match SystemTime::now().duration_since(due) {
            Ok(late) => {
                let mut late_by = self.late_by.lock().unwrap_or_else(PoisonError::into_inner);
                late_by.saturating_record(late.as_micros() as u64);
            }
            Err(_) => _ = self.early.fetch_add(1, Ordering::Relaxed),
        }
    }
}

pub async fn measure(server: &Server, args: &Args) -> Result<Vec<Fired>, Failed> {
    let mut results = Vec::new();
    for rival in args.rivals() {
        match rival {
            Rival::Wheelwork => {
                let store = Postgres::new(&server.database().await?)?;
                results.push(fire(rival, store, args.jobs).await?);
            }
            Rival::Embedded => {
                let folder = tempfile::tempdir()?;
                let store = Redb::open(folder.path().join("jobs.redb"))?;
                results.push(fire(rival, store, args.jobs).await?);
            }
            _ => {}
        }
    }
    Ok(results)
}

async fn fire<S: Store>(rival: Rival, store: S, jobs: u64) -> Result<Fired, Failed> {
    let seen = Arc::new(Seen::new(jobs)?);
    let noted = seen.clone();
    let handle = move |job: Job<u64, S>| {
        noted.ran(job.payload, job.due);
        std::future::ready(Ok::<(), String>(()))
    };
    let kind = Kind::new(KIND).concurrency(CONCURRENCY);
    let node = Jobs::builder(store).handle(kind, handle).open().await?;
    let begun = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let schedulers = (0..AT_ONCE).map(|_| tokio::spawn(schedule(node.clone(), next.clone(), jobs)));
    let schedulers: Vec<_> = schedulers.collect();
    wait(&node, jobs).await;
    let time = begun.elapsed();
    for scheduler in schedulers {
        scheduler.await??;
    }
    node.stop(PATIENCE).await?;
    let runs = seen.runs.iter().map(|runs| u64::from(runs.load(Ordering::Relaxed)));
    let late_by = seen.late_by.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Fired {
        rival,
        time,
        lost: runs.clone().filter(|runs| *runs == 0).count() as u64,
        early: seen.early.load(Ordering::Relaxed),
        again: runs.map(|runs| runs.saturating_sub(1)).sum(),
        late_by,
    })
}

async fn schedule<S: Store>(node: Jobs<S>, next: Arc<AtomicU64>, jobs: u64) -> Result<(), Failed> {
    loop {
        let first = next.fetch_add(BATCH, Ordering::Relaxed);
        if first >= jobs {
            return Ok(());
        }
        let numbers = first..jobs.min(first + BATCH);
        let job = |number| {
            let delay = SPREAD.mul_f64(fastrand::f64());
            Ok::<_, Failed>(NewJob::new(KIND, &number)?.due(delay))
        };
        let batch = numbers.map(job).collect::<Result<Vec<_>, _>>()?;
        for result in node.schedule_all(batch).await {
            result?;
        }
    }
}

/// Waits until the end of every job is stored, or nothing ends any more.
async fn wait<S: Store>(node: &Jobs<S>, jobs: u64) {
    let (mut last, mut changed, mut told) = (0, Instant::now(), Instant::now());
    while last < jobs && changed.elapsed() < PATIENCE + SPREAD {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let metrics = node.metrics();
        if metrics.done > last {
            (last, changed) = (metrics.done, Instant::now());
        }
        if told.elapsed() > NEWS {
            told = Instant::now();
            eprintln!("{} scheduled, {} done, {} held", metrics.scheduled, last, metrics.held);
        }
    }
}
