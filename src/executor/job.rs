//! An expired timeout on its way to the thread that runs it.

use crate::base::logging::warning;
use crate::intake::Runner;
use crate::time::Jobs;
use crate::timeout::{Erased, Timeout, run_elsewhere};
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
    runner: Runner<Erased>,
}

impl Job {
    pub(crate) fn new(task: Erased, runner: Runner<Erased>) -> Self {
        let job = Self { task: Some(task), runner };
        job.timeout().gate().time.job_begins();
        job
    }

    /// Runs the task on this thread. A panic of the task is caught and counted.
    ///
    /// If a cancel returned true while the job waited, the task does not run. This happens only to a
    /// timeout that is periodic or has gone on before.
    pub fn run(mut self) {
        let Some(task) = self.task.take() else { return };
        Jobs::run_one(|| {
            if !self.runner.withdraw() {
                return run_elsewhere(&mut self.runner, task);
            }
            let timer = &self.runner.pin().chunk().timer;
            timer.count(|counts| counts.by_others.withdrawn.add_shared(1));
            self.timeout().tell_cancelled(task);
        });
    }

    /// The expired timeout.
    pub fn timeout(&self) -> &Timeout {
        Timeout::of(self.runner.pin())
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("timeout", self.timeout()).finish_non_exhaustive()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.runner.abandon();
            let chunk = self.runner.pin().chunk();
            chunk.timer.count(|counts| counts.of(chunk.internal).abandoned.add_shared(1));
            warning!("an executor dropped the job of {:?} without running it", self.timeout());
            Jobs::run_one(|| self.timeout().tell_cancelled(task));
        }
        self.timeout().gate().time.job_ends(); // after a run too, since `run` drops the job
    }
}
