//! What is said of an idle connection, and what is answered.

use super::pulse::{Block, Reading};
use crate::sync::Arc;
use std::fmt;
use std::time::Duration;

/// What a connection has lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdleKind {
    /// Nothing was read.
    Reader,
    /// Nothing was written.
    Writer,
    /// Nothing was read or written.
    All,
    /// Its timer: that has been stopped, and the connection is no longer watched. Each connection
    /// that was watched then is reported once, and the answer does not matter. A limit of pending
    /// timeouts is no cause. One thread's 2^28 are, if the manager's own timeout has to be replaced
    /// there because an executor has dropped its job.
    TimerStopped,
}

impl IdleKind {
    /// The kinds that have a duration; as numbers, they are 0, 1 and 2.
    pub(super) const SILENCES: [Self; 3] = [Self::Reader, Self::Writer, Self::All];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::All => "all",
            Self::TimerStopped => "timer_stopped",
        }
    }
}

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
    pub(super) block: Arc<Block>,
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
        let pulse = self.seat.block.pulse(self.seat.number);
        let Reading { paused, since } = pulse.reading();
        match since.get(self.event.kind as usize) {
            Some(&since) => since <= self.since && !paused,
            // The end of the timer is told to the active and the paused as well.
            None => !pulse.is_abandoned(),
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
