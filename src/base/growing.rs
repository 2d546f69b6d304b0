//! A table that any thread can grow. No place is ever moved, so no thread waits while another grows it.
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
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn each_number_has_its_own_place_which_does_not_move() {
        let table = Growing::<Cell<usize>>::new();
        assert!(table.iter().next().is_none());
        let first = std::ptr::from_ref(table.make(0));
        for n in (0..100).rev().chain([1000]) {
            table.make(n).set(n + 1);
        }
        assert_eq!(std::ptr::from_ref(table.make(0)), first);
        assert!((0..100).chain([1000]).all(|n| table.make(n).get() == n + 1));
        assert!(table.iter().all(|(n, _)| !(127..511).contains(&n)), "other blocks were not made");
        let set = table.iter().filter(|(_, place)| place.get() > 0);
        assert!(
            set.map(|(n, place)| (n, place.get())).eq((0..100).chain([1000]).map(|n| (n, n + 1)))
        );
    }

    #[test]
    fn the_last_chunk_has_a_place() {
        let (block, offset) = locate((1 << 26) / 64 - 1);
        assert!(block < BLOCKS && offset < 1 << block);
    }
}
