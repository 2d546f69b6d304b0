//! The table of chunk numbers: which are in use, and the chunks that the worker does not know yet.
//!
//! A thread that makes a chunk takes the lowest free number, and puts the chunk into the place of that number. The
//! worker takes it out when it first meets the number: in the pending queue, or in an entry that catches up. A thread
//! puts a chunk there before it announces any of its slots. So neither waits for the other.
//!
//! When the worker drops a chunk, it gives the number back, and with it what lies in the place.

use super::chunk::{Chunk, MAX_CHUNKS};
use crate::base::growing::Growing;
use crate::base::sync::{Arc, AtomicCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of chunk numbers in one block. A model has few.
const BLOCK: u32 = if cfg!(loom) { 4 } else { u64::BITS };

/// See the head. Its atomics are the standard library's in the loom models too: no race depends on which number a
/// chunk has.
pub(super) struct Table<P> {
    blocks: Growing<OnceLock<Box<Block<P>>>>,
    /// No block before this one has a free number, unless that was given back a moment ago.
    first: AtomicU32,
}

/// Some chunk numbers.
struct Block<P> {
    /// One bit for each number that is in use.
    used: AtomicU64,
    /// The new chunks of these numbers.
    new: [AtomicCell<Option<Arc<Chunk<P>>>>; BLOCK as usize],
}

impl<P> Default for Block<P> {
    fn default() -> Self {
        let new = std::array::from_fn(|_| AtomicCell::new(None));
        Self { used: AtomicU64::new(0), new }
    }
}

impl<P> Table<P> {
    pub(super) fn new() -> Self {
        Self { blocks: Growing::new(), first: AtomicU32::new(0) }
    }

    /// A number for a new chunk. `None` if all are in use.
    pub(super) fn take_number(&self) -> Option<u32> {
        let relaxed = Ordering::Relaxed;
        let mut block = self.first.load(relaxed);
        while block < MAX_CHUNKS / BLOCK {
            let used = &self.block(block).used;
            let free = (!used.load(relaxed)).trailing_zeros();
            if free >= BLOCK {
                let _ = self.first.compare_exchange(block, block + 1, relaxed, relaxed);
                block += 1;
            // Acquire: pairs with the release of `give_back`.
            } else if used.fetch_or(1 << free, Ordering::Acquire) & 1 << free == 0 {
                return Some(block * BLOCK + free);
            }
        }
        None
    }

    fn block(&self, block: u32) -> &Block<P> {
        self.blocks.make(block as usize).get_or_init(Box::default)
    }

    /// Puts a new chunk into the place of its number.
    pub(super) fn put(&self, chunk: Arc<Chunk<P>>) {
        let (block, place) = (chunk.id / BLOCK, chunk.id % BLOCK);
        self.block(block).new[place as usize].store(Some(chunk));
    }

    /// Takes out the new chunk of this number, which is in use or was.
    pub(super) fn take(&self, id: u32) -> Option<Arc<Chunk<P>>> {
        self.block(id / BLOCK).new[(id % BLOCK) as usize].take()
    }

    /// Gives back the number of a dropped chunk.
    pub(super) fn give_back(&self, id: u32) {
        drop(self.take(id));
        let block = id / BLOCK;
        self.block(block).used.fetch_and(!(1 << (id % BLOCK)), Ordering::Release);
        self.first.fetch_min(block, Ordering::Relaxed);
    }

    /// Uses up all numbers.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn use_up(&self) {
        self.first.store(u32::MAX, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
