//! Why a timer could not be built, or did not stop.

use crate::wheel::{LevelSizeError, WheelSizeError};
use std::time::{Duration, Instant};

/// Why a timer could not be built.
///
/// # Examples
///
/// ```
/// # use std::time::{Duration, Instant};
/// use wheelwork::{BuildError, HashedWheelTimer};
///
/// let tick_duration = Duration::from_micros(10);
/// let error = HashedWheelTimer::builder().tick_duration(tick_duration).build().unwrap_err();
/// assert!(matches!(error, BuildError::TickDuration { tick_duration: t } if t == tick_duration));
/// assert_eq!(error.to_string(), "a tick of 10µs: expected 50µs to 146 years");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The tick is shorter than 50 microseconds or longer than 2^62 nanoseconds (146 years).
    #[error("a tick of {tick_duration:?}: expected 50µs to 146 years")]
    TickDuration {
        /// The requested tick.
        tick_duration: Duration,
    },
    /// The number of ticks in a turn is zero or above 2^30.
    #[error("ticks_per_wheel is {}: expected 1 to 1073741824 (2^30)", .0.ticks_per_wheel)]
    TicksPerWheel(WheelSizeError),
    /// The system refused the memory for the wheel's buckets.
    #[error("cannot allocate {ticks_per_wheel} buckets of 41 bytes")]
    WheelMemory {
        /// The requested number of ticks, rounded up to a power of two.
        ticks_per_wheel: usize,
    },
    /// The number of buckets in a level of a hierarchical wheel is below 2 or above 65,536, or the system refused the
    /// memory for them.
    #[error("ticks_per_wheel: {0}")]
    LevelSize(LevelSizeError),
    /// The classic Linux wheel has fixed sizes, so `ticks_per_wheel` would have no effect.
    #[error("ticks_per_wheel is {ticks_per_wheel}, but LinuxClassic has fixed sizes")]
    FixedSize {
        /// The requested number of ticks.
        ticks_per_wheel: usize,
    },
    /// One turn of the wheel is longer than 2^63 nanoseconds (292 years).
    #[error(
        "a tick of {tick_duration:?} in a wheel of {ticks_per_wheel} ticks: \
         expected a turn of at most 292 years"
    )]
    TurnTooLong {
        /// The requested tick.
        tick_duration: Duration,
        /// The requested number of ticks, rounded up to a power of two.
        ticks_per_wheel: usize,
    },
    /// Without an executor nothing refuses a job, so `on_refusal` would have no effect.
    #[error("a policy for refused jobs, but no executor")]
    NoExecutor,
    /// The limit of pending timeouts is zero.
    #[error("the limit of pending timeouts must be greater than zero")]
    NoPendingAllowed,
    /// The thread's name contains a zero byte.
    #[error("the thread name {name:?} contains a zero byte")]
    ThreadName {
        /// The requested name.
        name: String,
    },
    /// The system did not start the worker thread.
    #[error("the worker thread cannot be started")]
    ThreadStart {
        /// The system's error.
        source: std::io::Error,
    },
    /// The clock counts suspends, and the system gave the worker no timer that does. That takes two free file
    /// descriptors.
    #[cfg(all(target_os = "linux", feature = "boottime", not(any(loom, shuttle))))]
    #[error("the worker needs two free file descriptors to sleep on a clock that counts suspends")]
    Sleep {
        /// The system's error.
        source: std::io::Error,
    },
}

/// Why a timer did not stop, or has not stopped yet.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// use wheelwork::{HashedWheelTimer, StopError};
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let (sender, result) = mpsc::channel();
/// let inside = timer.clone();
/// timer.new_timeout(move || sender.send(inside.stop().unwrap_err()).unwrap(), Duration::ZERO)?;
/// assert_eq!(result.recv()?, StopError::FromWorker);
/// assert!(timer.stop()?.is_empty()); // the timer went on until now
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// A task on the worker called `stop`. The worker would wait for itself. The timer goes on: stop it
    /// from another thread, or with [`stop_async`](crate::HashedWheelTimer::stop_async).
    #[error("stop was called by a task on the timer's own worker: call it on another thread")]
    FromWorker,
    /// The timer had not ended at the end of the limit. It is closed and accepts no more timeouts. Call `stop` or
    /// `stop_timeout` again to get the unprocessed ones.
    #[error("the timer has not stopped within {limit:?}: its thread {thread:?} {}", state(task))]
    StillRunning {
        /// The limit that the caller gave.
        limit: Duration,
        /// The name of the worker's thread; see [`Builder::thread_name`](crate::timer::Builder::thread_name).
        thread: String,
        /// The task that the worker is running, or is handing to an executor that blocks. `None` if it was busy with
        /// none just after the limit.
        task: Option<BusyTask>,
    },
    /// This process was forked from the one that has the worker's thread.
    #[error("the timer's worker is in process {process}: stop it there, not in a forked child")]
    Forked {
        /// The process that has the worker's thread.
        process: u32,
    },
}

/// A task that keeps the worker busy.
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use wheelwork::{HashedWheelTimer, StopError};
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let (begun, has_begun) = mpsc::channel();
/// let (release, released) = mpsc::channel::<()>();
/// let hangs = move || {
///     begun.send(()).unwrap();
///     let _ = released.recv();
/// };
/// timer.new_timeout(hangs, Duration::ZERO)?;
/// has_begun.recv()?;
/// let error = timer.stop_timeout(Duration::from_millis(10)).unwrap_err();
/// let StopError::StillRunning { task: Some(task), .. } = error else { panic!("{error}") };
/// assert!(task.type_name.ends_with("{{closure}}") && task.since < timer.now());
/// # drop(release);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BusyTask {
    /// The name of its type, as of [`std::any::type_name`]. The name of a closure contains its place in the code.
    pub type_name: &'static str,
    /// When it began, by the timer's clock. The worker reads the clock once in 64 tasks, so this may be the time at
    /// which an earlier task began.
    pub since: Instant,
}

fn state(task: &Option<BusyTask>) -> String {
    match task {
        Some(task) => format!("is busy with a task of the type {}", task.type_name),
        None => "is about to end".to_owned(),
    }
}
