//! How the measurement of one rival can fail, without ending the run.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
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
    /// Of a child that ended so, and complained with this line.
    pub fn crashed(status: ExitStatus, complaint: Option<&str>) -> Self {
        let signal = || status.signal().map_or(0, |signal| -signal);
        let message = complaint.unwrap_or_default().to_owned();
        Self::Crashed { code: status.code().unwrap_or_else(signal), message }
    }

    /// The metric and value that stand for it in the table.
    pub fn figure(&self) -> (&'static str, f64) {
        match self {
            Self::Crashed { code, .. } => ("crashed", f64::from(*code)),
            Self::TimedOut(limit) => ("timed_out", limit.as_secs_f64()),
        }
    }
}
