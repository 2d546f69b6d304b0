//! Why a timeout was not accepted, or cannot be rescheduled. A refused task comes back inside its error.

use crate::base::refused::Refused;
use std::fmt;

/// Why a timeout was not accepted. The task is inside.
///
/// `?` turns it into a `Box<dyn Error + Send + Sync>` for every task type. It also turns it into a
/// [`RefusalReason`], which drops the task.
///
/// The default for `T` serves functions that take a boxed closure.
///
/// # Examples
///
/// ```
/// # use std::time::{Duration, Instant};
/// # use wheelwork::{HashedWheelTimer, RefusalReason, ScheduleError, Timeout};
/// type Boxed = Box<dyn FnOnce() + Send>;
///
/// fn schedule(timer: &HashedWheelTimer, task: Boxed) -> Result<Timeout, ScheduleError> {
///     timer.new_timeout(task, Duration::from_secs(30))
/// }
///
/// let timer = HashedWheelTimer::new()?;
/// timer.stop()?;
/// let refused = schedule(&timer, Box::new(|| ())).unwrap_err();
/// assert_eq!(refused.reason(), RefusalReason::Stopped);
/// let task: Boxed = refused.into_task(); // to schedule it elsewhere
/// # drop(task);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(thiserror::Error)]
#[error("{reason}")]
pub struct ScheduleError<T = Box<dyn FnOnce() + Send>> {
    reason: RefusalReason,
    task: Refused<T>,
}

/// Why a timeout was not accepted: a [`ScheduleError`] without its task.
///
/// # Examples
///
/// ```
/// # use std::time::{Duration, Instant};
/// use wheelwork::{HashedWheelTimer, RefusalReason, Timeout};
///
/// /// `?` keeps the reason and drops the task.
/// fn remind(timer: &HashedWheelTimer) -> Result<Timeout, RefusalReason> {
///     Ok(timer.new_timeout(|| println!("tea"), Duration::from_secs(300))?)
/// }
///
/// let timer = HashedWheelTimer::new()?;
/// timer.stop()?;
/// assert_eq!(remind(&timer).unwrap_err(), RefusalReason::Stopped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The timer was stopped.
    #[error("the timer is stopped")]
    Stopped,
    /// The number of pending timeouts has reached the limit that the builder set, or the timer has its
    /// greatest number of chunks: 2^26, with 62 slots each.
    #[error("the limit of {limit} pending timeouts is reached")]
    LimitReached {
        /// The limit.
        limit: usize,
    },
    /// The period of a periodic timeout is zero.
    #[error("the period must be greater than zero")]
    ZeroPeriod,
}

impl<T> ScheduleError<T> {
    pub(crate) fn new(reason: RefusalReason, task: T) -> Self {
        Self { reason, task: task.into() }
    }

    pub(crate) fn map<U>(self, task_of: impl FnOnce(T) -> U) -> ScheduleError<U> {
        ScheduleError::new(self.reason, task_of(self.into_task()))
    }

    /// Returns the refused task.
    pub fn into_task(self) -> T {
        self.task.into_inner()
    }

    /// The reason, without the task.
    pub fn reason(&self) -> RefusalReason {
        self.reason
    }
}

impl<T> From<ScheduleError<T>> for RefusalReason {
    fn from(error: ScheduleError<T>) -> Self {
        error.reason
    }
}

impl<T> fmt::Debug for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// Why a timeout could not be rescheduled. Its deadline is unchanged.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// use wheelwork::RescheduleError;
///
/// let timeout = timer.new_timeout(|| (), Duration::from_secs(30))?;
/// timeout.cancel();
/// assert_eq!(timeout.reschedule(Duration::from_secs(60)), Err(RescheduleError::Cancelled));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RescheduleError {
    /// The task has run or is running.
    #[error("the timeout has expired")]
    Expired,
    /// The timeout was cancelled.
    #[error("the timeout is cancelled")]
    Cancelled,
    /// The timer was stopped.
    #[error("the timer is stopped")]
    Stopped,
}
