//! Delayed jobs that survive a crash and outgrow one machine.
//!
//! A job is one row in a database. A node claims the jobs that are due soon, and puts them into the timer
//! wheel of [`wheelwork`], which fires them on time. So a job does not wait for a poll of the database,
//! and runs a few milliseconds after its due time.
//!
//! ```
//! use std::time::Duration;
//! use wheelwork_jobs::{Job, Jobs, Kind, NewJob, Redb, Retry};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("jobs.redb");
//! let mail = Kind::new("mail").concurrency(8).retry(Retry::default().attempts(5));
//! let jobs = Jobs::builder(Redb::open(path)?)
//!     .handle(mail, |job: Job<(String, u32), _>| async move {
//!         let (to, number) = job.payload;
//!         if number == 0 { Err(format!("no number for {to}")) } else { Ok(()) }
//!     })
//!     .open()
//!     .await?;
//! let id = jobs.schedule(NewJob::new("mail", &("anna", 17))?.due(Duration::from_secs(3600))).await?;
//! jobs.reschedule(id, Duration::from_millis(10)).await?;
//! # while jobs.metrics().done == 0 { tokio::time::sleep(Duration::from_millis(1)).await }
//! # assert_eq!(jobs.get(id).await?, None);
//! let stopped = jobs.stop(Duration::from_secs(10)).await?;
//! assert_eq!(stopped.given_back, 0);
//! # Ok(())
//! # }
//! ```
//!
//! A job whose [`schedule`](Jobs::schedule) has returned is durable, and runs at least once, never before its due time
//! by the database's clock. Work in the transaction of [`Job::complete_in`] is done exactly once. The
//! [design](design#guarantees) lists all guarantees, and explains how they are kept.
//!
//! Read the [guide] for when to use the crate, what a job can do, and how to run it.
//!
//! # The main types
//!
//! - [`Jobs`] schedules jobs and changes them. With handlers, it is a node that runs them.
//! - [`NewJob`] is a job to schedule, [`Job`] what a handler gets, [`StoredJob`] what is in the store.
//! - [`Kind`] sets how the jobs of one handler are run, and [`Retry`] what happens after a failure.
//!
//! # Features
//!
//! - `redb` (default) and `postgres`: the stores
//! - `cron`: periodic jobs, by cron expressions in time zones
//! - `tls`: encrypted connections to PostgreSQL
//! - `sqlx` and `diesel-async`: jobs in the transactions of these clients
//! - `tracing`: a span of the `tracing` facade for each run
//! - `cli`: the program `wheelwork-jobs`
#![forbid(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

mod batch;
mod error;
mod group;
mod handler;
mod health;
mod host;
mod job;
mod jobs;
mod json;
mod kind;
mod lock;
mod metrics;
mod node;
mod periodic;
mod reports;
mod store;
mod time;
mod trace;
mod transaction;
#[cfg(feature = "redb")]
mod virtual_time;

// Tests that call stores themselves, or put others around them. They lie beside src, so no package has them.
#[cfg(all(test, feature = "postgres", feature = "redb"))]
#[allow(unreachable_pub)]
#[path = "../tests/common/mod.rs"]
mod common;
#[cfg(all(test, feature = "postgres", feature = "redb"))]
#[allow(unreachable_pub)]
#[path = "../tests/store/mod.rs"]
mod tests;
#[cfg(all(test, feature = "postgres", feature = "redb"))]
extern crate self as wheelwork_jobs;

pub use error::{CompleteError, DiedError, OpenError, ResultError, ScheduleError, StopError};
pub use group::{Group, GroupError};
pub use handler::Job;
pub use health::{Condition, Health};
pub use job::{
    JobId, NewJob, NoJobId, PayloadError, PayloadFault, Progress, State, StoredJob, When,
};
pub use jobs::{Jobs, JobsBuilder};
pub use json::JsonError;
pub use kind::{Kind, Retry};
pub use metrics::{Histogram, KindMetrics, Metrics};
pub use node::Stopped;
#[cfg(feature = "cron")]
pub use periodic::{Periodic, PeriodicError};
#[cfg(feature = "postgres")]
pub use store::postgres::Postgres;
#[cfg(feature = "redb")]
pub use store::redb::{Redb, RedbTransaction};
pub use store::{Filter, Glance, KindStats, Peek, Store, StoreError, Transaction};
pub use time::{Reading, Timestamp};
pub use tokio_util::sync::CancellationToken;

// A transaction of yours must be of the same version.
#[cfg(feature = "redb")]
pub use redb;
#[cfg(feature = "postgres")]
pub use tokio_postgres;

/// When to use it, what a job can do, how it scales, and how to run it. Exists only in the documentation.
#[cfg(any(doc, all(doctest, feature = "cron", feature = "postgres", feature = "redb")))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

/// How the guarantees are kept. Exists only in the documentation.
#[cfg(doc)]
#[doc = include_str!("../docs/design.md")]
pub mod design {}

/// The README's program is compiled.
#[cfg(all(doctest, feature = "redb"))]
#[doc = include_str!("../README.md")]
struct Readme;
