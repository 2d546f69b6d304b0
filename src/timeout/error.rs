//! Why a timeout cannot be rescheduled.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RescheduleError {
    /// The task has run or is running.
    #[error("the timeout has expired: expected a pending one")]
    Expired,
    /// The timeout was cancelled.
    #[error("the timeout is cancelled: expected a pending one")]
    Cancelled,
    /// The timer was stopped.
    #[error("the timer is stopped: expected a running one")]
    Stopped,
}
