//! What the operations on a shard answer.

use super::slot::Phase;

/// What an operation asks of the worker, once the lock is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Nothing,
    /// A timeout may be due sooner than it intends to wake.
    Deadline,
    /// The queue is long, or much in the wheel is dead: soon, whatever is due.
    Attention,
}

/// Why a timeout cannot be armed or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    Full,
    Phase(Phase),
}

/// What stands behind a record that has come out of the wheel.
pub(crate) enum Claim<P> {
    /// Nothing: it was cancelled, or another record stands for it now.
    Stale,
    /// It has been pushed back to this time: to be filed again.
    NotYet(u64),
    Due(Claimed<P>),
}

/// A timeout that is due: Running, and pinned for the runner.
pub(crate) struct Claimed<P> {
    pub(crate) payload: P,
    pub(crate) deadline: u64,
}

/// What a cancel found.
pub(crate) enum Cancel<P> {
    /// It won: here is what would have run. The caller's pin is gone.
    Won(P, Ask),
    /// It is running, and will not be armed again; true if it would have been.
    Denied(bool),
    Lost,
}
