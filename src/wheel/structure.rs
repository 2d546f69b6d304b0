//! What every wheel's structure does. The public wheels and the timer's worker know no more of it.
//!
//! A structure deals in [`Token`]s and knows nothing of what they stand for: a token comes out at
//! the first `take_due` at or after its tick. Whoever owns the deadlines may find then that the
//! deadline has moved on, and insert the token again; that is how the timer's `reschedule` gets by
//! without touching the wheel.

use super::bucket::Bucket;
use std::fmt;

/// The tokens of a whole bucket.
pub(crate) type Batch = Bucket<u16>;

/// The structure that a [`Wheel`](super::Wheel) runs on. Only this crate's own implement it.
pub trait Structure: Core {}

impl<C: Core> Structure for C {}

/// A structure that takes any delay: all but the simple wheel.
pub trait Unlimited: Structure {}

/// Names a slot, and which use of the slot is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) version: u16,
}

/// A token that has come out of a structure, and the tick in which it does.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub(crate) tick: u64,
    pub(crate) token: Token,
}

/// Where a timeout lies in a wheel. Levels are counted from 1, the finest; a wheel that has no
/// levels is all level 1. Buckets are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The level, from 1.
    pub level: usize,
    /// The bucket within the level, from 0.
    pub bucket: usize,
}

/// Tick `u64::MAX` never comes.
pub trait Core: fmt::Debug {
    /// Files a token under `tick`, or under the current tick if that is later.
    fn insert(&mut self, tick: u64, token: Token);

    /// Takes out everything due up to and including tick `now`: in the order of ticks, and what was
    /// filed under the same tick in the order of insertion. A `now` before the current tick does
    /// nothing.
    fn take_due(&mut self, now: u64, due: &mut Vec<Due>);

    /// If what is due up to `now` begins with a bucket in which everything is due in the same tick,
    /// swaps that bucket for `empty`, and returns the tick. Otherwise `take_due` has to be called,
    /// and it is called after this in any case.
    fn take_whole_bucket(&mut self, _now: u64, _empty: &mut Batch) -> Option<u64> {
        None
    }

    /// A tick before which nothing is due; early if what it was for is dead, never late.
    fn next_expiry(&self) -> Option<u64>;

    /// The next tick to expire.
    fn current_tick(&self) -> u64;

    /// The number of buckets that a walk over the structure visits.
    fn bucket_count(&self) -> usize;

    /// Walks on over about `budget` entries, from where the last call ended, and drops those that
    /// `keep` denies. Returns true when that was the last bucket; the next call begins a new walk.
    fn reclaim(&mut self, budget: usize, keep: impl FnMut(Token) -> bool) -> bool;

    /// Where a token that was filed under `tick` lies; `None` if it is in no bucket.
    fn placement(&self, tick: u64, token: Token) -> Option<Placement>;
}

/// The position of a walk over the buckets, kept between calls of `reclaim`.
#[derive(Clone, Copy, Default)]
pub(super) struct Walk {
    at: usize,
}

impl Walk {
    /// `visit` is told a bucket and returns how many entries that held.
    pub(super) fn go_on(
        &mut self,
        buckets: usize,
        budget: usize,
        mut visit: impl FnMut(usize) -> usize,
    ) -> bool {
        let mut looked_at = 0;
        while self.at < buckets {
            if looked_at >= budget {
                return false;
            }
            looked_at += 1 + visit(self.at);
            self.at += 1;
        }
        self.at = 0;
        true
    }
}

/// What there is to say of a structure.
pub(super) fn debug(name: &str, core: &impl Core, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name)
        .field("buckets", &core.bucket_count())
        .field("current_tick", &core.current_tick())
        .field("next_expiry", &core.next_expiry())
        .finish_non_exhaustive()
}
