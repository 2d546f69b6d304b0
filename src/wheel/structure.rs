//! What every wheel's structure does. The public wheels and the timer's worker know no more of it.
//!
//! A structure deals in [`Token`]s and knows nothing of what they stand for: a token comes out in
//! its tick. Whoever owns the deadlines may find then that the deadline has moved on, and insert
//! the token again; so the timer's `reschedule` need not touch the wheel.
//!
//! No step takes longer than one bucket, or than the budget that its caller gives.

use super::bucket::Bucket;
use super::confirm::{Confirm, Next, Standing};
use super::token::{Due, Token};
use std::fmt;

/// The tokens that are due in one tick.
pub(crate) type Batch = Bucket<u16>;

/// Far timeouts that a structure moves into its buckets in one step, since each costs O(log n).
pub(super) const LET_IN: usize = 1 << 12;

/// The structure that a [`Wheel`](super::Wheel) runs on. Only this crate's own implement it.
pub trait Structure: TokenWheel {}

impl<W: TokenWheel> Structure for W {}

/// A structure that takes any delay: all but the simple wheel.
pub trait Unlimited: Structure {}

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
pub trait TokenWheel: fmt::Debug {
    /// Files a token under `tick`, or under the current tick if that is later.
    fn insert(&mut self, tick: u64, token: Token);

    /// Moves what is due in the earliest tick up to `now` into `batch`, which is empty, in the order
    /// of insertion, and returns that tick. `later` is told of tokens that lay beside those and are
    /// due by `now` in later ticks. Returns `None` when nothing is left that is due: the current tick
    /// is then the one after `now`. A `now` before the current tick does nothing.
    fn take_next(&mut self, now: u64, batch: &mut Batch, later: impl FnMut(Due)) -> Option<u64>;

    /// A tick before which nothing is due; early if the entry is dead, never late.
    fn next_expiry(&self) -> Option<u64>;

    /// The next tick to expire.
    fn current_tick(&self) -> u64;

    /// The number of buckets that a sweep visits.
    fn bucket_count(&self) -> usize;

    /// Sweeps on over about `budget` entries, from where the last call ended, and drops those that
    /// `keep` denies. Returns true when that was the last; the next call begins a new sweep.
    fn sweep(&mut self, budget: usize, keep: impl FnMut(Token) -> bool) -> bool;

    /// Where a token that was filed under `tick` lies; `None` if it is in no bucket.
    fn placement(&self, tick: u64, token: Token) -> Option<Placement>;
}

/// A structure that expires each token in the very tick it was filed under.
pub(crate) trait Exact: TokenWheel {
    /// Moves some of what is far into the buckets, if they can hold it; true if there is more.
    fn let_in(&mut self) -> bool;

    /// Looks at the entries of the earliest tick, which is `tick`, until one stands, and drops those
    /// that do not.
    fn confirm_tick(&mut self, tick: u64, confirm: &mut Confirm<impl FnMut(Due) -> Standing>);

    /// Finds the earliest entry that stands, if it is not after tick `last`: makes `next_expiry`
    /// exact up to there.
    ///
    /// Entries that are dead are dropped on the way, and those that are due later are filed again,
    /// so each is met at most once for each time that it was cancelled or pushed back. It costs no
    /// more than to come to each of these ticks would.
    fn confirm_next(
        &mut self,
        last: u64,
        budget: usize,
        check: impl FnMut(Due) -> Standing,
    ) -> Next {
        if self.let_in() {
            return Next::Unknown;
        }
        let mut confirm = Confirm::new(budget, check);
        while let Some(tick) = self.next_expiry().filter(|&tick| tick <= last) {
            self.confirm_tick(tick, &mut confirm);
            for Due { tick, token } in std::mem::take(&mut confirm.later) {
                self.insert(tick, token);
            }
            if let Some(due) = confirm.found {
                return Next::At(due);
            }
            if confirm.is_done() {
                return Next::Unknown;
            }
        }
        Next::Later
    }
}

/// The position of a sweep, kept between calls of `sweep`. It visits one unit after the other: a
/// bucket, a part of one, or what is far.
#[derive(Clone, Copy, Default)]
pub(super) struct SweepPosition {
    unit: usize,
    /// Where in the unit it goes on; `None` if the unit has not been begun.
    rest: Option<usize>,
}

impl SweepPosition {
    /// `visit` is told a unit, where it goes on there, and how many entries it may look at. It
    /// returns how many those were, and where the unit goes on, if it does.
    pub(super) fn resume(
        &mut self,
        units: usize,
        budget: usize,
        mut visit: impl FnMut(usize, Option<usize>, usize) -> (usize, Option<usize>),
    ) -> bool {
        let mut looked_at = 0;
        while self.unit < units {
            if looked_at >= budget {
                return false;
            }
            let (looked, rest) = visit(self.unit, self.rest, budget - looked_at);
            looked_at += 1 + looked;
            self.rest = rest;
            self.unit += usize::from(rest.is_none());
        }
        self.unit = 0;
        true
    }
}

/// What there is to say of a structure.
pub(super) fn debug(
    name: &str,
    structure: &impl TokenWheel,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.debug_struct(name)
        .field("buckets", &structure.bucket_count())
        .field("current_tick", &structure.current_tick())
        .field("next_expiry", &structure.next_expiry())
        .finish_non_exhaustive()
}
