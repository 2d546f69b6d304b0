//! A cancel that gives the task back.

use super::handle::Timeout;
use super::task::Task;
use crate::intake::Cancel;

impl Timeout {
    /// Cancels the timeout as [`cancel`](Self::cancel) does, and returns its task instead of dropping it.
    /// The task's callback ([`TimerTask::cancelled`](crate::TimerTask::cancelled)) is not called.
    ///
    /// Use it if a value lies in the task, such as a request that is to be answered after all.
    /// [`Task::downcast`] returns a task of a type of yours. A task of any type can be scheduled again.
    ///
    /// `None` if this call did not end the timeout while it was pending:
    ///
    /// | the timeout | the task |
    /// |---|---|
    /// | runs | is in its run, and no further run starts. If it asks for one, it goes to `cancelled` then |
    /// | waits in an executor for a further run | goes to `cancelled` on the executor, without that run |
    /// | waits in an executor for its first run | goes to that run, as above |
    /// | has run, or was cancelled | is gone |
    /// | was returned by [`stop`](crate::HashedWheelTimer::stop) | is in the [`Unprocessed`](crate::Unprocessed) |
    ///
    /// So a type whose value must not be lost also implements [`cancelled`](crate::TimerTask::cancelled).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, Next, Run, TimerTask};
    /// struct Refuse { request: String }
    ///
    /// impl TimerTask for Refuse {
    ///     fn run(self, _run: &Run<'_>) -> Next<Self> {
    ///         println!("too late for {}", self.request);
    ///         Next::done()
    ///     }
    /// }
    ///
    /// let timer = HashedWheelTimer::new()?;
    /// let refuse = Refuse { request: "GET /".to_owned() };
    /// let deadline = timer.new_timeout(refuse, Duration::from_secs(30))?;
    ///
    /// let task = deadline.cancel_and_take().expect("in time");
    /// let Refuse { request } = task.downcast().expect("of this type");
    /// assert_eq!(request, "GET /");
    /// assert!(deadline.is_cancelled() && deadline.cancel_and_take().is_none());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn cancel_and_take(&self) -> Option<Task> {
        match self.pin().cancel() {
            Cancel::Won { payload, filed } => {
                self.count_cancelled(filed);
                Some(Task(payload))
            }
            Cancel::Denied(_) | Cancel::Lost => None,
        }
    }
}
