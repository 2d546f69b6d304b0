//! The traits that every wheel's structure implements. The public wheels and the timer's worker use
//! nothing else of a structure.
//!
//! A structure holds [`Token`]s under ticks, and hands each token out in its tick. It does not know
//! what a token stands for, nor its deadline. If the owner of the deadlines finds that a deadline
//! has moved on, it inserts the token again. So the timer's `reschedule` need not touch the wheel.
//!
//! A structure may reach only a certain number of ticks ahead. A token that is filed under a later tick
//! comes out at the end of this reach. Its owner inserts it again then.
//!
//! No step takes longer than reading one bucket, or than the budget that its caller gives.

use super::bucket::Bucket;
use super::confirm::{Confirm, NextLive, Standing};
use super::earliest::NOTHING;
use super::token::{Due, Token};
use std::fmt;

/// The tokens that are due in one tick.
pub(crate) type Batch = Bucket<u16>;

/// The structure of a [`Wheel`](super::Wheel). Only types of this crate implement it.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Structure, Wheel};
///
/// /// Empties any wheel, and returns the values in the order of their ticks.
/// fn drain<T, S: Structure>(wheel: &mut Wheel<T, S>) -> Vec<T> {
///     let mut values = Vec::new();
///     while let Some(tick) = wheel.next_expiry() {
///         wheel.expire(tick, |_, expired| values.push(expired.value));
///     }
///     values
/// }
///
/// let mut wheel = Wheel::linux();
/// wheel.insert(70, "second");
/// wheel.insert(7, "first");
/// assert_eq!(drain(&mut wheel), ["first", "second"]);
/// assert!(drain(&mut Wheel::<&str, _>::hashed(512)?).is_empty());
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
pub trait Structure: TokenWheel {}

impl<W: TokenWheel> Structure for W {}

/// A structure that accepts any delay: every one except the simple wheel's.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Unlimited, Wheel};
///
/// fn schedule_all<S: Unlimited>(wheel: &mut Wheel<u64, S>, deadlines: &[u64]) {
///     for &deadline in deadlines {
///         wheel.insert(deadline, deadline); // cannot fail
///     }
/// }
///
/// let mut wheel = Wheel::hashed(512)?;
/// schedule_all(&mut wheel, &[5, 1_000_000]);
/// assert_eq!(wheel.len(), 2);
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
pub trait Unlimited: Structure {}

/// The place of a timeout in a wheel. Levels are counted from 1, the finest. A wheel without levels
/// has only level 1. Buckets are counted from 0.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Hierarchical, Wheel};
///
/// let mut wheel = Wheel::hierarchical(16)?;
/// let key = wheel.insert(100, ());
/// let place = |wheel: &Wheel<_, Hierarchical>| wheel.placement(key).map(|at| (at.level, at.bucket));
/// assert_eq!(place(&wheel), Some((2, 6)));
/// wheel.expire(96, |_, _| ()); // it moves down
/// assert_eq!(place(&wheel), Some((1, 4)));
/// # Ok::<(), wheelwork::wheel::LevelSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Placement {
    /// The level, from 1.
    pub level: usize,
    /// The bucket within the level, from 0.
    pub bucket: usize,
}

/// A structure that holds tokens under ticks. Tick `u64::MAX` never comes.
pub trait TokenWheel: fmt::Debug {
    /// Whether a token may come out after its tick, by more the longer its delay was when it was filed.
    const IS_LATE: bool = false;

    /// Files a token under `tick`, or under the current tick if `tick` is overdue. If `tick` is out of
    /// reach, files it under the last tick in reach.
    fn insert(&mut self, tick: u64, token: Token);

    /// The last tick in reach.
    fn reach(&self) -> u64 {
        NOTHING
    }

    /// Tells the current tick before an insertion. Only a structure whose lateness depends on it does anything.
    fn tell(&mut self, _now: u64) {}

    /// Finds the earliest tick up to `now` in which tokens are due. Moves these tokens into
    /// `batch`, and returns the tick. `batch` must be empty.
    ///
    /// The same bucket may hold other tokens that are due by `now`, in later ticks. These go to
    /// `later`.
    ///
    /// Returns `None` if no other token is due. The current tick is then the one after `now`. A `now`
    /// before the current tick does nothing.
    ///
    /// If an exact structure reaches no tick after `now`, all tokens are due. They all go to `later`. The
    /// reach then counts from `now`, also for tokens that are inserted again in this pass.
    fn take_next(&mut self, now: u64, batch: &mut Batch, later: impl FnMut(Due)) -> Option<u64>;

    /// A tick before which no token is due. It is too early if its entry is dead, but it is never
    /// too late.
    fn next_expiry(&self) -> Option<u64>;

    /// The next tick to expire.
    fn current_tick(&self) -> u64;

    /// The number of buckets that a sweep visits.
    fn bucket_count(&self) -> usize;

    /// Continues the sweep where the last call ended: checks about `budget` entries and drops those
    /// that `keep` denies. Returns true at the end of the sweep. The next call begins a new one.
    fn sweep(&mut self, budget: usize, keep: impl FnMut(Token) -> bool) -> bool;

    /// The place of a token that was filed under `tick`. `None` if the token is in no bucket.
    fn placement(&self, tick: u64, token: Token) -> Option<Placement>;
}

/// A structure that expires each token exactly in the tick it was filed under, and the tokens of one
/// tick in the order of insertion, if that tick was in reach. The timer runs on no others.
pub(crate) trait Exact: TokenWheel {
    /// Checks the entries of `tick`, which is the earliest tick, until it finds a live one. Drops
    /// the dead ones.
    fn confirm_tick(&mut self, tick: u64, confirm: &mut Confirm<impl FnMut(Due) -> Standing>);

    /// Finds the earliest live entry up to tick `last`. This makes `next_expiry` exact up to
    /// `last`.
    ///
    /// On the way, dead entries are dropped and entries that are due later are refiled. So each
    /// cancel and each reschedule costs at most one check. The search costs no more than it would
    /// to expire these ticks.
    fn confirm_next(
        &mut self,
        last: u64,
        budget: usize,
        check: impl FnMut(Due) -> Standing,
    ) -> NextLive {
        let mut confirm = Confirm::new(budget, (self.current_tick(), self.reach()), check);
        while let Some(tick) = self.next_expiry().filter(|&tick| tick <= last) {
            self.confirm_tick(tick, &mut confirm);
            for Due { tick, token } in std::mem::take(&mut confirm.later) {
                self.insert(tick, token);
            }
            if let Some(due) = confirm.found {
                return NextLive::At(due);
            }
            if confirm.is_done() {
                return NextLive::Unknown;
            }
        }
        NextLive::Later
    }
}

/// The debug output of a structure.
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
