//! A pointer to the chunk of a pinned slot. A handle has this pointer instead of a counted reference,
//! because the two read-modify-writes of a count would take a third of a schedule and cancel.
//!
//! Invariants:
//! 1. The owner of a `PinnedChunk` has a pin on one of the chunk's slots, or its live pin, or has a Free
//!    slot that it has reserved or not given back yet, until the last use of the pointer. The last use may
//!    give the slot back (`Chunk::give_back`).
//! 2. A chunk is dropped only after all of its slots were given back. The worker drops it when it is
//!    empty and in the pool. If the timer has ended before, the chunk is orphaned, and the thread that
//!    gives back its last slot drops it (see `chunk`). The end orphans all chunks in the lists of their
//!    arenas. A chunk that is added later is orphaned by its first owner. The lists' locks order the two,
//!    and the timer is closed before its end, so an owner that comes later finds it closed. Every timer has
//!    an end, since its worker owns an `Ending`. A unit test without a worker keeps the registry until all
//!    handles are gone and all threads have given back what they have collected.

use super::chunk::Chunk;
use std::ops::Deref;
use std::ptr::NonNull;

/// A pointer to a chunk with a pinned slot. See the invariants in the head.
pub(crate) struct PinnedChunk<P>(NonNull<Chunk<P>>);

// SAFETY: it gives shared access to a chunk, which is `Sync` if the payload is `Send`, and does not
// drop it.
unsafe impl<P: Send> Send for PinnedChunk<P> {}
// SAFETY: as above.
unsafe impl<P: Send> Sync for PinnedChunk<P> {}

impl<P> PinnedChunk<P> {
    /// The caller has a pin, and keeps invariant 1.
    #[inline]
    pub(crate) fn new(chunk: &Chunk<P>) -> Self {
        Self(NonNull::from(chunk))
    }
}

impl<P> Deref for PinnedChunk<P> {
    type Target = Chunk<P>;

    #[inline]
    fn deref(&self) -> &Chunk<P> {
        // SAFETY: by invariant 1, one of the chunk's slots was not given back. So by invariant 2, the
        // chunk was not dropped.
        unsafe { self.0.as_ref() }
    }
}
