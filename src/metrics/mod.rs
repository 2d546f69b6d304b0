//! What a timer counts, and how late its timeouts are. [Monitoring](crate::guide::watching) shows what to look at.

// The files:
//   snapshot  the public snapshots, of a timer and of each thread
//   lateness  the histogram of lateness
//   tally     the counts that each thread keeps of its timeouts
//   worker    the counters of the worker's own actions
//   counts    all of these for one timer, and their sums
mod counts;
mod lateness;
mod snapshot;
mod tally;
mod worker;

pub(crate) use counts::Counts;
pub use lateness::Lateness;
pub use snapshot::{Metrics, ThreadMetrics};
pub(crate) use tally::{Count, Tally};
pub(crate) use worker::WorkerCounts;
