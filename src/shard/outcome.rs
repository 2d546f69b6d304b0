//! The outcomes of operations on a shard.

use super::slot::Phase;

/// Whether an operation has to wake the worker, once the lock is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    No,
    /// If it sleeps beyond the deadline of the timeout.
    ForDeadline,
    /// Whatever is due: the queue is long, or much in the wheel is dead.
    Now,
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
    /// Nothing: the timeout was cancelled, or has another record by now.
    Dead,
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
    Won(P, Wake),
    /// It is running, and will not be armed again; true if it would have been.
    Denied(bool),
    Lost,
}
