//! A pointer to the chunk of a pinned slot. Handles have it instead of a counted reference, whose two
//! read-modify-writes would cost a third of a schedule and cancel.
//!
//! Invariants:
//! 1. Whoever has a `PinnedChunk` has a pin on one of the chunk's slots, or its live pin, until its
//!    last use of the pointer. The last use may be to give the slot back (`Chunk::give_back`).
//! 2. A chunk is dropped only after all of its slots were given back: by the worker, which takes it
//!    from the pool when it is empty, or, if the timer has ended before, by whoever gives back its last
//!    slot (see `chunk`).

use super::chunk::Chunk;
use std::ops::Deref;
use std::ptr::NonNull;

/// See the head.
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
        // SAFETY: by invariant 1 one of the chunk's slots is not given back, so by invariant 2 the
        // chunk is there.
        unsafe { self.0.as_ref() }
    }
}
