//! A timeout that `stop` returns. Its task and its deadline stay in its slot, so a stop moves only a handle,
//! and an `Unprocessed` is two words.

use super::handle::Timeout;
use super::payload::Erased;
use super::task::{Task, TimerTask, is_of};
use crate::intake::Emptied;
use std::fmt;
use std::time::Instant;

/// A timeout that had not expired when its timer was stopped, with its task.
///
/// Run it, take the task out, or drop it. Dropping it drops the task without calling
/// [`TimerTask::cancelled`], because the timeout was returned, not cancelled. To save tasks of a type of yours beyond
/// the end of the program, take them out with [`downcast`](Self::downcast).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::HashedWheelTimer;
/// # use wheelwork::task::{Next, Run, TimerTask};
/// struct Remind { user: u64 }
///
/// impl TimerTask for Remind {
///     fn run(self, _run: &Run<'_>) -> Next<Self> {
///         Next::done()
///     }
/// }
///
/// let timer = HashedWheelTimer::new()?;
/// timer.new_timeout(Remind { user: 7 }, Duration::from_secs(3600))?;
/// timer.new_timeout(|| println!("of no use later"), Duration::from_secs(1))?;
/// for unprocessed in timer.stop()? {
///     let due = unprocessed.deadline();
///     match unprocessed.downcast() {
///         Ok(Remind { user }) => println!("user {user} is still to be reminded at {due:?}"),
///         Err(other) => other.run(),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct Unprocessed(pub(crate) Emptied<Erased>);

impl Unprocessed {
    /// The instant at which it would have expired. To save it beyond the end of the process, convert it
    /// to wall-clock time, as `examples/graceful_shutdown.rs` does. A timeout that never expires has the
    /// end of the timer's time, 584 years after its start.
    pub fn deadline(&self) -> Instant {
        self.timeout().gate().time.instant_at(self.0.pin().slot().deadline())
    }

    /// The handle that `new_timeout` returned. It is neither expired nor cancelled.
    pub fn timeout(&self) -> &Timeout {
        Timeout::of(self.0.pin())
    }

    /// Runs the task once, now, on this thread. The timeout does not go on, since its timer is
    /// stopped. A panic of the task reaches the caller.
    pub fn run(self) {
        let (task, timeout) = self.take();
        let _no_more = task.0.run(timeout.pin());
    }

    /// Returns the task, for example to schedule it in another timer. A periodic task goes on there, and
    /// is due immediately if it was due before.
    pub fn into_task(self) -> Task {
        self.take().0
    }

    /// Whether the task is of type `T`: whether [`downcast`](Self::downcast) would succeed.
    pub fn is<T: TimerTask>(&self) -> bool {
        self.0.read(is_of::<T>)
    }

    /// Returns the task itself if it is of type `T`.
    ///
    /// # Errors
    ///
    /// The same timeout, if its task is of another type.
    pub fn downcast<T: TimerTask>(self) -> Result<T, Self> {
        if self.is::<T>() {
            Ok(self.into_task().downcast().expect("of this type"))
        } else {
            Err(self)
        }
    }

    /// Cancels a timeout that no caller will collect.
    pub(crate) fn cancel(self) {
        self.timeout().cancel_returned();
        let (task, timeout) = self.take();
        timeout.tell_cancelled(task.0);
    }

    fn take(self) -> (Task, Timeout) {
        let (task, pin) = self.0.take();
        (Task(task), Timeout::from(pin))
    }
}

impl fmt::Debug for Unprocessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unprocessed").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
