//! A timeout that `stop` returns.

use super::erased::Erased;
use super::handle::Timeout;
use super::task::Task;
use std::fmt;
use std::time::Instant;

/// A timeout that had not expired when its timer was stopped, with its task.
///
/// Run it, take the task out, or drop both.
pub struct Unprocessed {
    task: Erased,
    timeout: Timeout,
    deadline: Instant,
}

impl Unprocessed {
    pub(crate) fn new(task: Erased, timeout: Timeout, deadline: Instant) -> Self {
        Self { task, timeout, deadline }
    }

    /// The instant at which it would have expired.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The handle that `new_timeout` returned. It is neither expired nor cancelled.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// Runs the task once, now, on this thread. The timeout does not go on, since its timer is
    /// stopped. A panic of the task reaches the caller.
    pub fn run(self) {
        let _no_more = self.task.run(self.timeout.place());
    }

    /// Returns the task, for example to schedule it in another timer.
    pub fn into_task(self) -> Task {
        Task(self.task)
    }
}

impl Unprocessed {
    /// Cancels a timeout that nobody will collect.
    pub(crate) fn cancel(self) {
        self.timeout.unreturn();
        self.timeout.tell_cancelled(self.task);
    }
}

impl fmt::Debug for Unprocessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprocessed").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
