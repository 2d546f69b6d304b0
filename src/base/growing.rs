//! A table that any thread can grow. No place is ever moved, so a thread that uses the blocks that exist waits for
//! nobody. Threads that need the same new block wait for the one that makes it.
//!
//! Each block has twice as many places as the one before it. The table keeps its blocks until it is dropped.

use std::sync::OnceLock;

/// Enough for the blocks of 64 chunks: a timer has at most 2^26 chunks.
const BLOCKS: usize = 21;

/// See the head.
pub(crate) struct Growing<T> {
    blocks: [OnceLock<Box<[T]>>; BLOCKS],
}

/// The block of a place, and the offset in that block.
fn locate(at: usize) -> (usize, usize) {
    let block = (at + 1).ilog2();
    (block as usize, at + 1 - (1 << block))
}

impl<T: Default> Growing<T> {
    pub(crate) fn new() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS] }
    }

    /// The place of this number. Makes its block if that does not exist.
    pub(crate) fn make(&self, at: usize) -> &T {
        let (block, offset) = locate(at);
        let make = || (0..1 << block).map(|_| T::default()).collect();
        &self.blocks[block].get_or_init(make)[offset]
    }

    /// All places that exist, each with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(block, places)| {
            let first = (1 << block) - 1;
            let places = places.get().into_iter().flatten().enumerate();
            places.map(move |(offset, place)| (first + offset, place))
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
