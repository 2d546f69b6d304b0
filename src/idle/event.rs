//! What is said of an idle connection, and what is answered.

use super::activity::{ActivityBlock, Reading};
use super::kind::IdleKind;
use crate::base::sync::Arc;
use std::fmt;
use std::time::Duration;

/// A connection has been silent for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleEvent {
    /// Which silence it is.
    pub kind: IdleKind,
    /// Whether it is the first report of this kind since the connection last did what it is said
    /// to lack.
    pub first: bool,
    /// For how long it has been silent in this sense.
    pub silent_for: Duration,
}

/// What shall become of a connection that was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Report it again when it has been silent for as long once more.
    KeepWatching,
    /// It is closed or of no more interest: drop what was given to `watch`. The handle stays valid
    /// and does nothing more.
    StopWatching,
}

/// A connection that is reported, in a batch; see [`IdleTimeouts::batched`](super::IdleTimeouts::batched).
pub struct Idle<T> {
    /// What was given to `watch`.
    pub connection: T,
    event: IdleEvent,
    pub(super) outcome: Outcome,
    pub(super) seat: Seat,
    /// The last activity, on which the report rests.
    since: u64,
}

/// Where a connection sits.
pub(super) struct Seat {
    pub(super) block: Arc<ActivityBlock>,
    pub(super) number: u32,
}

/// What has come of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The connection was active before anybody was told.
    Void,
    Delivered(Answer),
}

impl<T> Idle<T> {
    pub(super) fn new(connection: T, event: IdleEvent, seat: Seat, since: u64) -> Self {
        // Until there is an answer: a callback that panics has not dealt with its connection.
        let outcome = Outcome::Delivered(Answer::KeepWatching);
        Self { connection, event, outcome, seat, since }
    }

    /// What is said of it.
    pub fn event(&self) -> IdleEvent {
        self.event
    }

    /// Whether it has still been silent up to now, and its handle is still there. In a long batch
    /// that may have changed since the batch was put together.
    pub fn is_still_silent(&self) -> bool {
        let activity = self.seat.block.activity(self.seat.number);
        let Reading { paused, since } = activity.reading();
        match since.get(self.event.kind as usize) {
            Some(&since) => since <= self.since && !paused,
            // The end of the timer is told to the active and the paused as well.
            None => !activity.is_abandoned(),
        }
    }

    /// Says what shall become of it. Without an answer it is watched on.
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
