//! An expired timeout on its way to the thread that runs it.

use crate::base::logging::warning;
use crate::timeout::{Erased, Timeout};
use std::fmt;

/// An expired timeout that an [`Executor`](super::Executor) has to run.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::{HashedWheelTimer, executor::Job};
/// let (sender, jobs) = mpsc::channel::<Job>();
/// let timer = HashedWheelTimer::builder()
///     .tick_duration(Duration::from_millis(1))
///     .executor(move |job| sender.send(job).map_err(|refused| refused.0))
///     .build()?;
/// let timeout = timer.new_timeout(|| println!("here"), Duration::ZERO)?;
/// let job = jobs.recv()?;
/// assert_eq!(job.timeout(), &timeout);
/// job.run();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a job that is dropped does not run"]
pub struct Job {
    task: Option<Erased>,
    /// The pin of this handle is the live pin, since the job is the runner.
    timeout: Timeout,
}

impl Job {
    pub(crate) fn new(task: Erased, timeout: Timeout) -> Self {
        timeout.context().time.job_begins();
        Self { task: Some(task), timeout }
    }

    /// Runs the task on this thread. A panic of the task is caught and counted.
    ///
    /// If a cancel returned true while the job waited, the task does not run. This happens only to a
    /// timeout that is periodic or has gone on before.
    pub fn run(mut self) {
        let Some(task) = self.task.take() else { return };
        if self.timeout.is_withdrawn() {
            return self.timeout.tell_cancelled(task);
        }
        self.timeout.context().time.jobs().run_one(|| self.timeout.run().on_executor(task));
    }

    /// The expired timeout.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.timeout.abandon();
            warning!("an executor dropped the job of {:?} without running it", self.timeout);
            self.timeout.tell_cancelled(task);
        }
        self.timeout.context().time.job_ends(); // after a run too, since `run` drops the job
    }
}
