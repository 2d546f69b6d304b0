//! How threads are spread over shards.

use crate::base::sync::thread_local;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// At most 16 shards, so that a token's 32 bits can name 2^28 slots in each.
const MAX_SHARDS: usize = 16;

/// Enough that the threads of a server seldom meet; a power of two. A model has one, so that its
/// threads do meet.
pub(crate) fn shard_count() -> usize {
    if cfg!(loom) { 1 } else { (2 * num_cpus::get()).next_power_of_two().min(MAX_SHARDS) }
}

/// The calling thread's shard among `count`, a power of two. Threads are numbered as they come.
#[inline]
pub(crate) fn shard_of_this_thread(count: usize) -> usize {
    const UNNUMBERED: usize = usize::MAX;
    // Relaxed: each number is given once, and that is all.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(UNNUMBERED) };
    }
    let mut mine = MINE.with(Cell::get);
    if mine == UNNUMBERED {
        mine = NEXT.fetch_add(1, Ordering::Relaxed);
        MINE.with(|number| number.set(mine));
    }
    mine & (count - 1)
}
