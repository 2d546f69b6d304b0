//! The limit of pending timeouts: one counter, which all threads share.
//!
//! Each timeout holds one *permit* while it is pending: from its admission until its run begins, or until it is
//! cancelled or returned. A timeout that goes on after a run, or that belongs to a future, cannot be refused, so
//! it may hold a permit beyond the limit. Then nothing is admitted until enough others have given theirs back.
//!
//! A permit is released before a tally counts that the timeout is no longer pending. So whoever sees that by
//! the counts also finds its permit. All accesses are relaxed: the counts' release and acquire order them.

use crate::base::sync::{AtomicUsize, Ordering::Relaxed};

/// The limit of pending timeouts. See the head.
#[repr(align(128))] // it shares no cache line with data that other threads only read
pub(super) struct Limit {
    most: usize,
    pending: AtomicUsize,
}

impl Limit {
    pub(super) fn new(most: usize) -> Self {
        Self { most, pending: AtomicUsize::new(0) }
    }

    /// Takes a permit, or returns the limit if there is none.
    pub(super) fn acquire(&self) -> Result<(), usize> {
        let more = |pending| (pending < self.most).then(|| pending + 1);
        self.pending.fetch_update(Relaxed, Relaxed, more).map(drop).map_err(|_| self.most)
    }

    /// Takes a permit, even beyond the limit.
    pub(super) fn acquire_beyond(&self) {
        self.pending.fetch_add(1, Relaxed);
    }

    pub(super) fn release(&self, permits: usize) {
        self.pending.fetch_sub(permits, Relaxed);
    }
}

#[cfg(all(test, loom))]
mod model;
