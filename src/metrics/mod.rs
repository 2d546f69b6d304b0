//! Metrics: what a timer counts.
//!
//! - `snapshot`: the public snapshot, the worker's counters, the lateness histogram
//! - `thread`: the public snapshot of what one thread has
//! - `tally`: the counts of each thread
//! - `counts`: all counts of one timer

mod counts;
mod snapshot;
mod tally;
mod thread;

pub(crate) use counts::Counts;
pub(crate) use snapshot::WorkerMetrics;
pub use snapshot::{Lateness, Metrics};
pub(crate) use tally::{Count, Tally, Totals};
pub use thread::ThreadMetrics;
