//! The crates, each set up as its own documentation advises for many small jobs.
//!
//! A job's payload is its due time in microseconds since 1970.

mod apalis;
mod graphile;
pub mod wheelwork;

use crate::Failed;
use crate::recorder::Recorder;
use std::time::{Duration, SystemTime};

/// How many handlers run at once.
const CONCURRENCY: usize = 64;
/// Connections of those that have a pool.
const CONNECTIONS: u32 = 10;
/// How often the database is asked by those that ask.
const POLL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    Wheelwork,
    Embedded,
    Graphile,
    Apalis,
}

impl Rival {
    /// Those that use PostgreSQL.
    pub const SHARED: [Self; 3] = [Self::Wheelwork, Self::Graphile, Self::Apalis];
    pub const ALL: [Self; 4] = [Self::Wheelwork, Self::Embedded, Self::Graphile, Self::Apalis];

    pub fn name(self) -> &'static str {
        match self {
            Self::Wheelwork => "wheelwork-jobs",
            Self::Embedded => "wheelwork-jobs, embedded",
            Self::Graphile => "graphile_worker 0.14",
            Self::Apalis => "apalis-postgres 1.0",
        }
    }

    /// Starts a worker on an empty database.
    pub async fn start(self, url: &str, recorder: Recorder) -> Result<Running, Failed> {
        Ok(match self {
            Self::Wheelwork => Running::Wheelwork(wheelwork::shared(url, recorder).await?),
            Self::Embedded => Running::Embedded(wheelwork::embedded(recorder).await?),
            Self::Graphile => Running::Graphile(graphile::Graphile::start(url, recorder).await?),
            Self::Apalis => Running::Apalis(apalis::Apalis::start(url, recorder).await?),
        })
    }
}

/// A worker, and the way to hand jobs in.
pub enum Running {
    Wheelwork(wheelwork::Node<wheelwork_jobs::Postgres>),
    Embedded(wheelwork::Node<wheelwork_jobs::Redb>),
    Graphile(graphile::Graphile),
    Apalis(apalis::Apalis),
}

impl Running {
    /// Stores jobs, with as few calls as the crate allows.
    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        match self {
            Self::Wheelwork(node) => node.schedule(due).await,
            Self::Embedded(node) => node.schedule(due).await,
            Self::Graphile(worker) => worker.schedule(due).await,
            Self::Apalis(worker) => worker.schedule(due).await,
        }
    }

    pub async fn stop(self) -> Result<(), Failed> {
        match self {
            Self::Wheelwork(node) => node.stop().await?,
            Self::Embedded(node) => node.stop().await?,
            Self::Graphile(worker) => worker.stop(),
            Self::Apalis(worker) => worker.stop(),
        }
        Ok(())
    }
}
