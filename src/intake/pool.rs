//! A pool: chunks without an owner that have free slots for the next one. A timer has one pool for each core (rounded up
//! to a power of two), so that threads seldom meet at one queue, and one for its internal timeouts. A chunk stays with
//! its pool. It is generic over what it holds, `T`, which is a chunk.
//!
//! A pool keeps a few *vacant* chunks, those without a used slot, for the next burst of its threads. Without a thread,
//! it keeps none. A release, by which the worker drops the others (see `worker/sweep_and_release`), is requested once
//! more chunks are vacant than these few plus a quarter of those in the pool; without a thread, from the first one on.
//! The thread that frees a chunk's last slot requests it, or the one that leaves the pool.

use crate::base::sync::{Arc, AtomicUsize, Ordering, SegQueue, fence};

/// The number of vacant chunks that a pool keeps while it has an owner.
pub(super) const VACANT_KEPT: usize = if cfg!(loom) { 0 } else { 16 };

/// See the head.
#[repr(align(128))] // so that the counts of two pools share no cache line
pub(crate) struct Pool<T> {
    chunks: SegQueue<Arc<T>>,
    /// The number of vacant chunks in the pool. It wraps for a moment if a chunk is uncounted before it is counted.
    vacant: AtomicUsize,
    /// The number of owners that take chunks from the pool.
    owners: AtomicUsize,
}

impl<T> Pool<T> {
    pub(super) fn new() -> Self {
        let [vacant, owners] = [0; 2].map(AtomicUsize::new);
        Self { chunks: SegQueue::new(), vacant, owners }
    }

    pub(crate) fn push(&self, chunk: Arc<T>) {
        self.chunks.push(chunk);
    }

    pub(crate) fn pop(&self) -> Option<Arc<T>> {
        self.chunks.pop()
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn clear(&self) {
        while self.pop().is_some() {}
    }

    pub(super) fn add_owner(&self) {
        self.owners.fetch_add(1, Ordering::Relaxed);
    }

    /// The caller considers a release afterwards. The fence pairs with that of `count_vacant`: one of the two threads
    /// sees both counts.
    pub(super) fn remove_owner(&self) {
        self.owners.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The caller considers a release afterwards.
    pub(crate) fn count_vacant(&self) {
        self.vacant.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn uncount_vacant(&self) {
        self.vacant.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the worker should drop vacant chunks.
    pub(crate) fn has_too_many(&self) -> bool {
        self.vacant() > self.kept()
    }

    /// Whether a release is worth its cost: a large pool may have more vacant chunks.
    pub(super) fn is_release_worth_it(&self) -> bool {
        let kept = self.kept();
        self.vacant() > if kept > 0 { kept + self.len() / 4 } else { 0 }
    }

    fn vacant(&self) -> usize {
        usize::try_from(self.vacant.load(Ordering::Relaxed) as isize).unwrap_or(0)
    }

    fn kept(&self) -> usize {
        if self.owners.load(Ordering::Relaxed) > 0 { VACANT_KEPT } else { 0 }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
