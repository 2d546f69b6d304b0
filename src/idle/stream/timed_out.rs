//! The error of an idle stream.

use crate::idle::kind::IdleKind;
use std::io;
use std::time::Duration;

/// A stream was idle, or too old: the source of an [`io::Error`] of kind [`TimedOut`](io::ErrorKind::TimedOut).
///
/// # Examples
///
/// ```
/// use wheelwork::idle::TimedOut;
///
/// fn describe(error: &std::io::Error) -> String {
///     match error.get_ref().and_then(|source| source.downcast_ref::<TimedOut>()) {
///         Some(idle) => format!("closed: {:?} idle for {:?}", idle.kind, idle.silent_for),
///         None => format!("failed: {error}"),
///     }
/// }
/// # describe(&std::io::ErrorKind::TimedOut.into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", describe(*kind, *silent_for))]
#[non_exhaustive]
pub struct TimedOut {
    /// The kind of silence, or [`IdleKind::Age`].
    pub kind: IdleKind,
    /// How long the silence had lasted when it was reported, or the age then.
    pub silent_for: Duration,
}

fn describe(kind: IdleKind, silent_for: Duration) -> String {
    let missing = match kind {
        IdleKind::Reader => "nothing was read",
        IdleKind::Writer => "nothing was written",
        IdleKind::WaitingWrite => "a write has waited",
        IdleKind::Both | IdleKind::TimerStopped => "nothing was read or written",
        IdleKind::Age => {
            return format!("open for {silent_for:?}, its maximum age");
        }
    };
    format!("{missing} for {silent_for:?}")
}

impl From<TimedOut> for io::Error {
    fn from(idle: TimedOut) -> Self {
        Self::new(io::ErrorKind::TimedOut, idle)
    }
}
