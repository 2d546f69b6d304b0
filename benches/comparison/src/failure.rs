//! How the measurement of one rival can fail, without ending the run.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// `code` is the exit code, or minus the signal.
    #[error("crashed ({code}): {message}")]
    Crashed { code: i32, message: String },
    #[error("not done after {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl Failure {
    /// The metric and value that stand for it in the table.
    pub fn figure(&self) -> (&'static str, f64) {
        match self {
            Self::Crashed { code, .. } => ("crashed", f64::from(*code)),
            Self::TimedOut(limit) => ("timed_out", limit.as_secs_f64()),
        }
    }
}
