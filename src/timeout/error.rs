//! Why a timeout cannot be moved or armed again.

use super::handle::TimerTask;
use std::fmt;

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

/// Why a task could not arm its timeout again. The task is inside.
#[non_exhaustive]
pub enum RearmError {
    /// The timeout was cancelled while its task ran.
    Cancelled {
        /// What was handed in.
        task: Box<dyn TimerTask>,
    },
    /// The task of this timeout is not running.
    NotRunning {
        /// What was handed in.
        task: Box<dyn TimerTask>,
    },
    /// The timer has been stopped.
    Stopped {
        /// What was handed in.
        task: Box<dyn TimerTask>,
    },
}

impl RearmError {
    /// The task that was handed in.
    pub fn into_task(self) -> Box<dyn TimerTask> {
        match self {
            Self::Cancelled { task } | Self::NotRunning { task } | Self::Stopped { task } => task,
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Self::Cancelled { .. } => "the timeout was cancelled while its task ran",
            Self::NotRunning { .. } => "the timeout's task is not running: expected its own run",
            Self::Stopped { .. } => "the timer is stopped: expected a running one",
        }
    }
}

impl fmt::Display for RearmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for RearmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RearmError({:?})", self.text())
    }
}

impl std::error::Error for RearmError {}
