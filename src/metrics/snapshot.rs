//! The public snapshots: of a timer, and of each thread that schedules.

use super::lateness::Lateness;

/// A snapshot of a timer's counters, from [`HashedWheelTimer::metrics`].
///
/// In every snapshot, `scheduled + rearmed == expired + cancelled + returned + pending`. Each thread
/// counts for itself, and a snapshot stops none of them. So it can miss calls of other
/// threads that run at the same time. It includes every call that returned before. The timeouts that the
/// [`idle`](crate::idle) manager has in the timer are not counted.
/// [Monitoring](crate::guide::watching) lists healthy values, and what others mean.
///
/// With the feature `serde`, a snapshot can be serialized and read again. A field that is missing,
/// because an earlier version wrote the snapshot, is read as zero.
///
/// # Examples
///
/// ```
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// let before = timer.metrics();
/// // a second later
/// let now = timer.metrics();
/// let expired = now.expired.saturating_sub(before.expired); // less if the executor has dropped jobs
/// println!("{expired} a second, {} pending", now.pending);
/// let begun = now.scheduled + now.rearmed;
/// assert_eq!(begun, now.expired + now.cancelled + now.returned + now.pending);
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
///
/// [`HashedWheelTimer::metrics`]: crate::HashedWheelTimer::metrics
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Metrics {
    /// Timeouts accepted.
    pub scheduled: u64,
    /// Runs after which the timeout went on: runs of periodic timeouts, and runs that returned
    /// [`Next::after`](crate::task::Next::after) or [`Next::at`](crate::task::Next::at). A timeout that is cancelled as it
    /// would go on counts here and as cancelled.
    pub rearmed: u64,
    /// Deadlines that were moved, by [`Timeout::reschedule`](crate::Timeout::reschedule) or in a waiting future.
    pub rescheduled: u64,
    /// Timeouts handed to the executor, including those that are cancelled during their run. Less those whose job was
    /// dropped, or cancelled before it ran: from then on, they count as cancelled.
    pub expired: u64,
    /// Timeouts cancelled before a run, including those that were pending when the last handle was
    /// dropped.
    pub cancelled: u64,
    /// Timeouts returned by `stop`. Less those that were cancelled since.
    pub returned: u64,
    /// Timeouts refused because the timer was stopped or a limit was reached.
    pub rejected: u64,
    /// Timeouts accepted, and not yet run, cancelled or returned.
    pub pending: u64,
    /// Tasks and callbacks that panicked.
    pub panicked: u64,
    /// Jobs that the executor gave back.
    pub refused: u64,
    /// Jobs that the executor dropped without running them; also counted as cancelled.
    pub abandoned: u64,
    /// Slots for timeouts, both used and free. Each takes 42 bytes with its share of a chunk.
    pub slots: u64,
    /// Passes that reached the drain cap: they had more timeouts to put into the wheel than one pass may.
    pub passes_with_backlog: u64,
    /// Ticks without a pass of the worker: nothing was due, or it was busy.
    pub ticks_skipped: u64,
    /// The number of times the worker woke up.
    pub wakeups: u64,
    /// Completed sweeps of the wheel. A sweep drops the dead entries, which cancels and reschedules leave
    /// in the wheel. It begins once they outnumber the pending timeouts by more than 4,096, or by more than
    /// the number of buckets if that is greater.
    pub sweeps: u64,
    /// The time from a timeout's deadline until it was handed to the executor. The worker reads the
    /// clock before the first timeout of each pass, and then once in 64 timeouts.
    pub lateness: Lateness,
}

/// What one living thread has scheduled in a timer, from [`HashedWheelTimer::thread_metrics`].
///
/// # Examples
///
/// Which thread schedules most?
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # timer.new_timeout(|| (), Duration::from_secs(30))?;
/// let threads = timer.thread_metrics();
/// if let Some(busiest) = threads.iter().max_by_key(|thread| thread.scheduled) {
///     println!("{}: {} scheduled", busiest.thread, busiest.scheduled);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`HashedWheelTimer::thread_metrics`]: crate::HashedWheelTimer::thread_metrics
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadMetrics {
    /// The name of the thread. Empty if the thread has no name.
    pub thread: String,
    /// Timeouts that this thread has scheduled, including those that were refused because the timer was closed at that
    /// moment. [`Metrics::scheduled`](crate::metrics::Metrics) also has those of threads that have ended.
    pub scheduled: u64,
}
