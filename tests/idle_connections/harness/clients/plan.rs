//! What the clients do.

use std::time::Duration;

/// How many clients there are, and how they behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) connections: u64,
    /// Whether a client whose connection has ended is replaced by a new one. Then there is no end.
    pub(crate) replaces: bool,
    /// The server closes a connection after this silence.
    pub(crate) idle: Duration,
    /// How long a client talks at most.
    pub(crate) talk: Duration,
    /// How much later than its idle time a close may come: a tick, and the grace.
    pub(crate) tick: Duration,
    pub(crate) grace: Duration,
    pub(crate) seed: u64,
}

impl Plan {
    /// How long after its last write a connection that is still open counts as forgotten.
    pub(crate) fn verdict_after(&self) -> Duration {
        self.idle + self.tick + self.grace
    }
}
