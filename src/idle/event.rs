//! A report of an idle connection, and the callback's answer.

use super::activity::ActivityBlock;
use super::kind::IdleKind;
use crate::base::sync::Arc;
use std::fmt;
use std::time::Duration;

/// A connection has been silent for its duration.
///
/// # Examples
///
/// Warns at the first report, and closes at the second:
///
/// ```
/// # use wheelwork::idle::{Answer, IdleEvent, IdleKind};
/// fn on_idle(connection: &mut u64, event: IdleEvent) -> Answer {
///     match event.kind {
///         IdleKind::TimerStopped => Answer::StopWatching, // the program ends
///         _ if event.first => {
///             println!("ping {connection}, silent for {:?}", event.silent_for);
///             Answer::KeepWatching
///         }
///         _ => {
///             println!("close {connection}");
///             Answer::StopWatching
///         }
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleEvent {
    /// The kind of silence.
    pub kind: IdleKind,
    /// Whether this is the first report of this kind since the last activity of this kind.
    pub first: bool,
    /// How long this silence has lasted.
    pub silent_for: Duration,
}

/// The callback's answer to a report: whether to keep watching the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Report the connection again when it has been silent for its duration once more.
    KeepWatching,
    /// Stop watching, and drop the value that was given to `watch`. The [`Watch`](super::Watch) handle
    /// stays valid but has no further effect.
    StopWatching,
}

/// One reported connection of a batch. See [`IdleTimeouts::batched`](super::IdleTimeouts::batched).
pub struct Idle<T> {
    /// The value that was given to `watch`.
    pub connection: T,
    event: IdleEvent,
    pub(super) outcome: Outcome,
    pub(super) seat: Seat,
    /// The last activity before the report.
    pub(super) since: u64,
}

/// A connection's place in a shard.
pub(super) struct Seat {
    pub(super) block: Arc<ActivityBlock>,
    pub(super) number: u32,
}

/// The result of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The connection was active before its callback began, so the callback was not called.
    Void,
    Delivered(Answer),
}

impl<T> Idle<T> {
    pub(super) fn new(connection: T, event: IdleEvent, seat: Seat, since: u64) -> Self {
        // The outcome if the callback panics or does not answer.
        let outcome = Outcome::Delivered(Answer::KeepWatching);
        Self { connection, event, outcome, seat, since }
    }

    /// The kind of silence, and its length.
    pub fn event(&self) -> IdleEvent {
        self.event
    }

    /// Whether the connection is still silent and its handle still exists. In a long batch this may
    /// have changed since the batch was put together.
    pub fn is_still_silent(&self) -> bool {
        let activity = self.seat.block.activity(self.seat.number);
        match self.event.kind {
            // The end of the timer is reported for active and paused connections too.
            IdleKind::TimerStopped => !activity.is_abandoned(),
            kind => activity.reading().is_silent_since(kind, self.since),
        }
    }

    /// Sets the answer. Without one, the connection stays watched.
    pub fn answer(&mut self, answer: Answer) {
        self.outcome = Outcome::Delivered(answer);
    }

    pub(super) fn withdraw(&mut self) {
        self.outcome = Outcome::Void;
    }
}

impl<T: fmt::Debug> fmt::Debug for Idle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("connection", &self.connection)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}
