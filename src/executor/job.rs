//! An expired timeout on its way to where it runs.

use crate::base::logging::warning;
use crate::timeout::{Task, Timeout};

/// An expired timeout that an [`Executor`](super::Executor) has to run.
#[derive(Debug)]
#[must_use = "a job that is dropped does not run"]
pub struct Job {
    task: TaskCell,
    timeout: Timeout,
}

struct TaskCell(Option<Task>);

impl std::fmt::Debug for TaskCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TimerTask")
    }
}

impl Job {
    pub(crate) fn new(task: Task, timeout: Timeout) -> Self {
        Self { task: TaskCell(Some(task)), timeout }
    }

    /// Runs the task on this thread, unless a periodic timeout was cancelled while the job waited.
    /// A panic of the task is caught and counted.
    pub fn run(mut self) {
        let Some(task) = self.task.0.take() else { return };
        if self.timeout.is_withdrawn() {
            return self.timeout.tell_cancelled(task);
        }
        self.timeout.run(task);
        self.timeout.end_run();
    }

    /// The timeout that has expired.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(task) = self.task.0.take() {
            self.timeout.abandon();
            warning!("an executor dropped the job of {:?} without running it", self.timeout);
            self.timeout.tell_cancelled(task);
        }
    }
}
