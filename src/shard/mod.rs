//! Shards: where other threads schedule, cancel and move timeouts, and the worker picks them up.
//!
//! Threads are spread over shards, so producers on different threads touch different locks and
//! different memory. The worker visits all shards. A timeout stays in the shard of the thread that
//! scheduled it. All timeouts of one thread are in one shard, in the order it scheduled them.
//!
//! - `slot`: one timeout, its phases, and the word that decides between them
//! - `state`: a shard's contents under its lock, and every decision about a timeout
//! - `pending`: the queue of records that the worker has not taken yet
//! - `drain`: the records that the worker takes in one pass
//! - `dead`: the count of dead entries in the wheel, and when to sweep them
//! - `outcome`: the results of operations on a shard
//! - `alarm`: how a producer wakes the worker, and when it need not
//! - `context`: the state that all handles of one timer share with its worker
//! - `counts`: a shard's part of the metrics
//! - `metrics`: the public snapshot, the worker's counters, the lateness histogram

pub(crate) mod alarm;
pub(crate) mod context;
mod counts;
mod dead;
mod drain;
pub(crate) mod metrics;
#[cfg(all(test, loom))]
mod model;
mod outcome;
mod pending;
mod slot;
mod state;

pub(crate) use counts::Counts;
pub(crate) use drain::Drain;
pub(crate) use outcome::{Cancel, Claim, Claimed, Refusal, Wake};
pub(crate) use pending::Record;
pub(crate) use slot::Phase;
pub(crate) use state::{CATCHING_UP_KEPT, State};

use crate::base::sync::{Mutex, MutexGuard};
use crate::wheel::Token;

/// Bits of a token's index that name a slot. The other bits name one of at most 16 shards
/// (`spread`).
const INDEX_BITS: u32 = 28;

/// The greatest number of slots in one shard.
pub(crate) const SHARD_CAPACITY: usize = 1 << INDEX_BITS;

/// A state under its lock. Aligned to two cache lines, since the processor prefetches them in
/// pairs.
#[repr(align(128))]
pub(crate) struct Shard<P> {
    /// This shard's number, shifted to its position in a token's index.
    base: u32,
    state: Mutex<State<P>>,
}

impl<P> Shard<P> {
    /// `buckets` is this shard's share of the wheel's buckets.
    pub(crate) fn new(number: usize, buckets: usize) -> Self {
        let base = (number as u32) << INDEX_BITS;
        Self { base, state: Mutex::new(State::new(SHARD_CAPACITY, buckets)) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock()
    }

    /// The token under which the wheel holds a record of this shard.
    pub(crate) fn token(&self, record: &Record) -> Token {
        Token { index: self.base | record.index, version: record.version }
    }
}

/// Returns the shard and the slot that a token names.
pub(crate) fn locate(token: Token) -> (usize, u32) {
    ((token.index >> INDEX_BITS) as usize, token.index & (SHARD_CAPACITY as u32 - 1))
}
