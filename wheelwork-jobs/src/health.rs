//! The health of a node.

use std::time::Duration;

/// The health of a [`Jobs`](crate::Jobs), for a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether it works.
    pub condition: Condition,
    /// How long ago the store was asked for the last beat that it has answered. Up to a third of the liveness
    /// is usual. `None` without handlers.
    pub last_beat: Option<Duration>,
    /// Whether it receives the notices of other nodes. While it does not, only the beats find jobs that come from
    /// elsewhere, and each job costs a query before it begins, because somebody may have cancelled it. `None` without
    /// handlers.
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
    /// The store has not answered for so long that other nodes may have taken over, or it cannot
    /// store the ends of runs, for example because its disk is full. No handler begins until that is over. A
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
