//! Processes that are killed at any moment. Each job has an effect, which is written in the transaction
//! that ends the job: afterwards no effect is missing, and none is there twice.
//!
//! `WHEELWORK_JOBS_KILLS=200` kills so often; 10 times otherwise.

mod cluster;
mod embedded;
#[cfg(feature = "cron")]
mod periodic;
mod process;
mod takeover;
