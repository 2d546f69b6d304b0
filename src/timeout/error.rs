//! Why a timeout keeps its deadline.

/// Why a timeout keeps its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RescheduleError {
    /// Its task has run or is running.
    #[error("the timeout has expired: expected a pending one")]
    Expired,
    /// It has been cancelled.
    #[error("the timeout is cancelled: expected a pending one")]
    Cancelled,
    /// The timer has been stopped.
    #[error("the timer is stopped: expected a running one")]
    Stopped,
}
