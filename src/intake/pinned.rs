//! A pointer to the chunk of a pinned slot. A handle has this pointer instead of a counted reference,
//! because the two read-modify-writes of a count would take a third of a schedule and cancel.
//!
//! Invariants:
//! 1. The owner of a `PinnedChunk` has a pin on one of the chunk's slots, or its live pin, or has a Free
//!    slot that it has reserved or not given back yet, until the last use of the pointer. The last use may
//!    give the slot back (`Chunk::give_back`).
//! 2. A chunk is not dropped before all of its slots were given back (see the rule of lifetime in `chunk`).

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
