//! Delayed jobs that survive a crash and outgrow one machine.
#![forbid(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

mod error;
mod handler;
mod job;
mod jobs;
mod kind;
mod metrics;
mod node;
pub mod store;
mod time;

pub use error::{CompleteError, OpenError, PayloadError, ScheduleError, StopError, StoreError};
pub use job::{Job, JobId, NewJob, NoJobId, State, StoredJob, When};
pub use jobs::{Jobs, JobsBuilder};
pub use kind::{Kind, Retry};
pub use metrics::{LateBy, Metrics};
pub use node::Stopped;
#[cfg(feature = "postgres")]
pub use store::postgres::Postgres;
#[cfg(feature = "redb")]
pub use store::redb::Redb;
pub use store::{Filter, KindStats, Store};
pub use time::{Reading, Timestamp};

// A transaction of yours must be of the same version.
#[cfg(feature = "redb")]
pub use redb;
#[cfg(feature = "postgres")]
pub use tokio_postgres;

/// The README's program runs as a test.
#[cfg(all(doctest, feature = "redb"))]
#[doc = include_str!("../README.md")]
struct Readme;
