//! How a node is.

use std::time::Duration;

/// How a [`Jobs`](crate::Jobs) is, for a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether it works.
    pub condition: Condition,
    /// How long ago the store was asked for the last beat that it has answered. Every third of the liveness
    /// is usual. `None` without handlers.
    pub last_beat: Option<Duration>,
    /// Whether it hears what other nodes tell. If not for long, jobs that come from elsewhere are found
    /// by the beats, and jobs that others cancel cost a query before they begin. `None` without handlers.
    pub listening: Option<bool>,
}

impl Health {
    /// Whether it works, and begins what is due.
    pub fn is_well(&self) -> bool {
        self.condition == Condition::Working
    }
}

/// What a [`Jobs`](crate::Jobs) can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// It works.
    Working,
    /// The store has not answered for so long that other nodes may have taken over, or it takes no ends of
    /// runs, such as with a disk that is full. No handler begins until that is over. A
    /// [`Redb`](crate::Redb) that has had an error of its disk must be opened again, in a new process.
    CutOff,
    /// It was stopped.
    Stopped,
    /// A part of it has panicked, or the runtime of its handlers has ended. It has given its jobs back as
    /// far as it could. Nothing but a new [`Jobs`](crate::Jobs) helps.
    Died {
        /// What has happened.
        reason: String,
    },
}
