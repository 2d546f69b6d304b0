//! The crates, each set up as its own documentation advises for many small jobs.
//!
//! A job's payload is its due time in microseconds since 1970.

mod apalis;
mod graphile;
mod sqlxmq;
mod underway;
pub mod wheelwork;

use crate::Failed;
use crate::recorder::Recorder;
use crate::server::connect;
use clap::ValueEnum;
use std::time::{Duration, SystemTime};
use tokio_postgres::Client;

/// How many handlers run at once.
pub const CONCURRENCY: usize = 64;
/// Connections of those that have a pool.
const CONNECTIONS: u32 = 10;
/// How often the database is asked by those that ask.
const POLL: Duration = Duration::from_millis(100);

/// For crates that take a delay from the begin of their transaction, which is after `now`. Rounded up to the
/// microseconds of PostgreSQL.
fn delay(due: SystemTime, now: SystemTime) -> Duration {
    let delay = due.duration_since(now).unwrap_or_default();
    Duration::from_micros(delay.as_nanos().div_ceil(1_000) as u64)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// wheelwork-jobs on PostgreSQL
    Wheelwork,
    /// wheelwork-jobs on its embedded store
    Embedded,
    /// graphile_worker with its local queue
    Graphile,
    /// The same, with a pause after each look that finds nothing
    GraphileDelay,
    /// apalis-postgres
    Apalis,
    /// sqlxmq
    Sqlxmq,
    /// underway
    Underway,
}

impl Rival {
    pub fn name(self) -> &'static str {
        match self {
            Self::Wheelwork => "wheelwork-jobs",
            Self::Embedded => "wheelwork-jobs, embedded",
            Self::Graphile => "graphile_worker 0.14",
            Self::GraphileDelay => "graphile_worker, delay",
            Self::Apalis => "apalis-postgres 1.0",
            Self::Sqlxmq => "sqlxmq 0.6",
            Self::Underway => "underway 0.2",
        }
    }

    /// Starts a worker on an empty database.
    pub async fn start(self, url: &str, recorder: Recorder) -> Result<Running, Failed> {
        let worker = match self {
            Self::Wheelwork => Worker::Wheelwork(wheelwork::shared(url, recorder).await?),
            Self::Embedded => Worker::Embedded(wheelwork::embedded(recorder).await?),
            Self::Graphile | Self::GraphileDelay => {
                let delay = self == Self::GraphileDelay;
                Worker::Graphile(graphile::Graphile::start(url, recorder, delay).await?)
            }
            Self::Apalis => Worker::Apalis(apalis::Apalis::start(url, recorder).await?),
            Self::Sqlxmq => Worker::Sqlxmq(sqlxmq::Sqlxmq::start(url, recorder).await?),
            Self::Underway => Worker::Underway(underway::Underway::start(url, recorder).await?),
        };
        Ok(Running { worker, observer: connect(url).await? })
    }
}

/// A worker, and the way to hand jobs in.
pub struct Running {
    worker: Worker,
    observer: Client,
}

enum Worker {
    Wheelwork(wheelwork::Node<wheelwork_jobs::Postgres>),
    Embedded(wheelwork::Node<wheelwork_jobs::Redb>),
    Graphile(graphile::Graphile),
    Apalis(apalis::Apalis),
    Sqlxmq(sqlxmq::Sqlxmq),
    Underway(underway::Underway),
}

impl Running {
    /// Stores jobs, with as few calls as the crate allows.
    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        match &self.worker {
            Worker::Wheelwork(node) => node.schedule(due).await,
            Worker::Embedded(node) => node.schedule(due).await,
            Worker::Graphile(worker) => worker.schedule(due).await,
            Worker::Apalis(worker) => worker.schedule(due).await,
            Worker::Sqlxmq(worker) => worker.schedule(due).await,
            Worker::Underway(worker) => worker.schedule(due).await,
        }
    }

    /// How many jobs are stored whose end is not.
    pub async fn unfinished(&self) -> Result<u64, Failed> {
        let count = match &self.worker {
            Worker::Embedded(node) => return Ok(node.unfinished()),
            Worker::Wheelwork(node) => return Ok(node.unfinished()),
            Worker::Graphile(_) => "SELECT count(*) FROM graphile_worker._private_jobs",
            Worker::Apalis(_) => "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'",
            Worker::Sqlxmq(_) => "SELECT count(*) FROM mq_msgs WHERE id <> uuid_nil()",
            Worker::Underway(_) => "SELECT count(*) FROM underway.task WHERE state <> 'succeeded'",
        };
        Ok(self.observer.query_one(count, &[]).await?.get::<_, i64>(0) as u64)
    }

    pub async fn stop(self) -> Result<(), Failed> {
        match self.worker {
            Worker::Wheelwork(node) => node.stop().await?,
            Worker::Embedded(node) => node.stop().await?,
            Worker::Graphile(worker) => worker.stop(),
            Worker::Apalis(worker) => worker.stop(),
            Worker::Sqlxmq(worker) => worker.stop().await,
            Worker::Underway(worker) => worker.stop(),
        }
        Ok(())
    }
}
