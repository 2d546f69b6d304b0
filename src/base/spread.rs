//! Spreads threads over shards: the number of processors, and each thread's shard.

use crate::base::sync::thread_local;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of processors that this process may use, rounded up to a power of two. A model has one.
pub(crate) fn core_count() -> usize {
    if cfg!(any(loom, shuttle)) { 1 } else { num_cpus::get().next_power_of_two() }
}

/// The calling thread's shard among `count`, a power of two. Threads are numbered in the order of
/// their first call.
#[inline]
pub(crate) fn shard_of_this_thread(count: usize) -> usize {
    const UNNUMBERED: usize = usize::MAX;
    // Relaxed: the numbers only have to be distinct.
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
