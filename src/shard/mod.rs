//! Where other threads hand in: admission, the pending queues, cancels, and closing.
//!
//! Threads are spread over shards, so that producers on different threads touch different locks
//! and different memory; the worker visits all shards. A timeout stays in the shard of the thread
//! that scheduled it, and so do two timeouts of one thread, in the order it scheduled them.

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

/// Bits of a token that name a slot: the others name one of at most 16 shards (`spread`).
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
