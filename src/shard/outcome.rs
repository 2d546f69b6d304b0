//! The results of operations on a shard.

use super::slot::Phase;

/// Whether the caller of an operation must wake the worker, after it has released the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    No,
    /// Only if the worker sleeps beyond the timeout's deadline.
    ForDeadline,
    /// In any case: the queue is long, or the wheel needs a sweep.
    Now,
}

/// Why a timeout cannot be admitted or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    Full,
    Phase(Phase),
}

/// The result of claiming a record that has come out of the wheel.
pub(crate) enum Claim<P> {
    /// The record is dead (its timeout was cancelled, or has another record), or the shard is
    /// closed.
    Dead,
    /// The timeout was pushed back to this time. The caller files the record again.
    NotYet(u64),
    Due(Claimed<P>),
}

/// A timeout that is due. It is Running now, and pinned for its runner.
pub(crate) struct Claimed<P> {
    pub(crate) payload: P,
    pub(crate) deadline: u64,
}

/// The result of a cancel.
pub(crate) enum Cancel<P> {
    /// The cancel won, and returns the payload. The caller's pin is gone.
    Won(P, Wake),
    /// The task is running, and its timeout does not go on. True if it is periodic or has gone on
    /// before.
    Denied(bool),
    /// The timeout had ended, or an earlier cancel was denied.
    Lost,
}
