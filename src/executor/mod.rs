//! Where tasks run: on the worker itself (the default), on a [`ThreadPool`], or on any
//! [`Executor`], which can be a closure.
//!
//! A timer without an executor runs each task on its worker thread, one after the other. So a slow
//! task there delays all others.

// The files:
//   job     an expired timeout on its way to the thread that runs it
//   refusal `OnRefusal`: what becomes of jobs that the executor refuses
//   pool    `ThreadPool`: a fixed number of threads on a bounded queue
//   rayon   a rayon thread pool as an executor
//   tokio   a tokio runtime as an executor
mod job;
#[cfg(all(test, loom))]
pub(crate) mod model;
mod pool;
#[cfg(feature = "rayon")]
mod rayon;
mod refusal;
#[cfg(feature = "tokio")]
mod tokio;

pub use self::job::Job;
pub use self::pool::{PoolError, ThreadPool};
#[cfg(feature = "rayon")]
pub use self::rayon::Rayon;
pub(crate) use self::refusal::Dispatch;
pub use self::refusal::OnRefusal;
#[cfg(feature = "tokio")]
pub use self::tokio::Tokio;

/// Runs expired timeouts.
///
/// The timer's worker thread calls `execute`; a thread that schedules never does. `execute` should hand
/// the job to another thread and return. While it blocks, no other timeout runs, and a stop waits for it.
/// It may refuse a job by returning it. The timer's [`OnRefusal`] policy then applies. A job that is
/// dropped without running counts as abandoned ([`Metrics::abandoned`]), and its timeout as cancelled.
///
/// Every `Fn(Job) -> Result<(), Job> + Send + Sync + 'static` is an executor.
///
/// [`Metrics::abandoned`]: crate::metrics::Metrics::abandoned
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use wheelwork::{HashedWheelTimer, executor::Job};
///
/// // An event loop that takes its expired timeouts from a channel.
/// let (sender, jobs) = mpsc::channel::<Job>();
/// let timer = HashedWheelTimer::builder()
///     .tick_duration(Duration::from_millis(1))
///     .executor(move |job| sender.send(job).map_err(|refused| refused.0))
///     .build()?;
/// timer.new_timeout(|| println!("on the event loop"), Duration::from_millis(5))?;
/// jobs.recv()?.run();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Executor: Send + Sync + 'static {
    /// Runs the job, or hands it to a thread that runs it, or gives it back.
    ///
    /// # Errors
    ///
    /// The job, if the executor refuses it.
    fn execute(&self, job: Job) -> Result<(), Job>;
}

impl<F> Executor for F
where
    F: Fn(Job) -> Result<(), Job> + Send + Sync + 'static,
{
    fn execute(&self, job: Job) -> Result<(), Job> {
        self(job)
    }
}
