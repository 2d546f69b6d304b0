//! Where other threads hand in: admission, the pending queues, cancels, and closing.
//!
//! Threads are spread over shards, so that producers on different threads touch different locks
//! and different memory; the worker visits all shards. A timeout stays in the shard of the thread
//! that scheduled it, and so do two timeouts of one thread, in the order it scheduled them.

mod answer;
mod counts;
mod intake;
#[cfg(all(test, loom))]
mod model;
mod pending;
mod shard;
mod slot;
mod stale;

pub(crate) use answer::{Ask, Cancel, Claim, Claimed, Refusal};
pub(crate) use counts::Counts;
pub(crate) use intake::Intake;
pub(crate) use pending::Record;
pub(crate) use shard::State;
pub(crate) use slot::Phase;

use crate::sync::{Mutex, MutexGuard, thread_local};
use crate::wheel::Token;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// At most 16 shards, so that a token's 32 bits can name 2^28 slots in each.
const MAX_SHARDS: usize = 16;
const INDEX_BITS: u32 = 28;

/// The timeouts that can be pending in one shard.
pub(crate) const SHARD_CAPACITY: usize = 1 << INDEX_BITS;

/// Aligned to two cache lines, which adjacent-line prefetch fetches together.
#[repr(align(128))]
pub(crate) struct Shard<P> {
    /// This shard's number, already in its place in a token.
    base: u32,
    state: Mutex<State<P>>,
}

impl<P> Shard<P> {
    /// `buckets` is this shard's part of the wheel's.
    pub(crate) fn new(number: usize, buckets: usize) -> Self {
        let base = (number as u32) << INDEX_BITS;
        Self { base, state: Mutex::new(State::new(SHARD_CAPACITY, buckets)) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock()
    }

    /// The wheel's name for a record of this shard.
    pub(crate) fn token(&self, record: &Record) -> Token {
        Token { index: self.base | record.index, version: record.version }
    }
}

/// The shard and the slot that a token names.
pub(crate) fn locate(token: Token) -> (usize, u32) {
    ((token.index >> INDEX_BITS) as usize, token.index & (SHARD_CAPACITY as u32 - 1))
}

/// Enough that the threads of a server seldom meet; a power of two. A model has one, so that its
/// threads do meet.
pub(crate) fn shard_count() -> usize {
    if cfg!(loom) { 1 } else { (2 * num_cpus::get()).next_power_of_two().min(MAX_SHARDS) }
}

/// The calling thread's shard among `count`, a power of two. Threads are numbered as they come.
#[inline]
pub(crate) fn home(count: usize) -> usize {
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
