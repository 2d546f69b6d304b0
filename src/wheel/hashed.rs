//! The hashed wheel: one ring of buckets with rounds, scheme 6 of Varghese and Lauck.
//!
//! A *round* is one turn of the wheel. The low bits of a timeout's tick are its bucket, and the
//! other bits are its round. A bucket may hold timeouts of several rounds.
//!
//! Invariants:
//! 1. Entries lie at or after `current_tick`, and at most `FARTHEST_ROUND` rounds after its round.
//! 2. A bucket's `earliest` is not after the tick of any entry in it.
//! 3. Within a bucket, the entries of one tick are in the order of insertion.
//! 4. If a bucket is not `mixed`, all of its entries have the same tick, its `earliest`.

use super::bucket::{Bucket, FARTHEST_ROUND};
use super::confirm::{Confirm, Standing};
use super::earliest::{Earliest, NOTHING};
use super::key::Key;
use super::structure::{self, Batch, Exact, Placement, TokenWheel, Unlimited};
use super::sweep::{SweepPosition, sweep_bucket};
use super::token::{Due, Token};
use super::values::Wheel;
use std::collections::TryReserveError;
use std::fmt;

/// One ring of buckets, with rounds.
///
/// Modelled on Netty's `HashedWheelTimer` and scheme 6 of Varghese and Lauck (1987). It is exact.
/// `insert` and `next_expiry` are O(1), `remove` is O(1) amortised. But an `insert` that is earlier than all others of
/// many buckets also writes a word for each power of two of their number. Values of several rounds in one bucket never
/// hide each other. But whenever something in a bucket is due, all of its entries are checked. So a timeout of many
/// turns costs many checks.
///
/// It allocates its buckets up front, 41 bytes each. An entry takes about 8 bytes besides the
/// value.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::Wheel;
///
/// let mut wheel = Wheel::hashed(64)?;
/// let far = wheel.insert(10_000, "far");
/// wheel.insert(3, "near");
/// assert_eq!(wheel.remaining_rounds(far), Some(156)); // 10,000 / 64
/// assert_eq!(wheel.next_expiry(), Some(3));
///
/// let mut fired = Vec::new();
/// wheel.expire(5, |_, expired| fired.push((expired.deadline, expired.value)));
/// assert_eq!(fired, [(3, "near")]);
/// assert_eq!(wheel.remove(far), Some("far"));
/// assert!(wheel.is_empty());
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
pub struct Hashed {
    buckets: Vec<Bucket<u16>>,
    /// See `bucket`.
    spare: Bucket<u16>,
    earliest: Earliest,
    /// Whether a bucket may hold entries of several ticks.
    mixed: Vec<bool>,
    /// ticks_per_wheel - 1.
    slot_mask: u64,
    /// log2 of ticks_per_wheel: a tick's round is `tick >> round_shift`.
    round_shift: u32,
    /// The next tick to expire.
    current_tick: u64,
    sweep_position: SweepPosition,
}

impl Hashed {
    /// `ticks_per_wheel` must be a power of two.
    pub(crate) fn new(ticks_per_wheel: usize) -> Result<Self, TryReserveError> {
        debug_assert!(ticks_per_wheel.is_power_of_two());
        let mut buckets = Vec::new();
        buckets.try_reserve_exact(ticks_per_wheel)?;
        let mut mixed = Vec::new();
        mixed.try_reserve_exact(ticks_per_wheel)?;
        let earliest = Earliest::new(ticks_per_wheel)?;
        buckets.resize_with(ticks_per_wheel, Bucket::default);
        mixed.resize(ticks_per_wheel, false);
        Ok(Self {
            buckets,
            spare: Bucket::default(),
            earliest,
            mixed,
            slot_mask: ticks_per_wheel as u64 - 1,
            round_shift: ticks_per_wheel.trailing_zeros(),
            current_tick: 0,
            sweep_position: SweepPosition::default(),
        })
    }

    /// Takes all due timeouts out of a mixed bucket.
    fn take_from_mixed(
        &mut self,
        (tick, now): (u64, u64),
        batch: &mut Batch,
        mut later: impl FnMut(Due),
    ) {
        let (bucket, shift) = ((tick & self.slot_mask) as usize, self.round_shift);
        let tick_in = |round: u64| (round << shift) | bucket as u64;
        let last = (now - bucket as u64) >> shift;
        let current = self.current_round();
        let Self { buckets, spare, .. } = self;
        let rounds = (tick >> shift, last);
        buckets[bucket].take_rounds(spare, current, rounds, batch, |round, token| {
            later(Due { tick: tick_in(round), token });
        });
        self.recompute(bucket);
    }

    #[cold]
    fn take_all(&mut self, mut later: impl FnMut(Due)) {
        let (mut batch, last) = (Batch::default(), NOTHING - 1);
        while self.earliest.least() != NOTHING {
            let tick = self.earliest.least();
            self.take_from_mixed((tick, last), &mut batch, &mut later);
            batch.take_all(&mut self.spare, |token, _| later(Due { tick, token }));
        }
    }

    /// Recomputes `earliest` and `mixed` of a bucket from its entries.
    fn recompute(&mut self, bucket: usize) {
        let rounds = self.buckets[bucket].rounds(self.current_round());
        let tick = |(first, _)| (first << self.round_shift) | bucket as u64;
        let earliest = rounds.map_or(NOTHING, tick);
        self.earliest.set(bucket, earliest);
        self.mixed[bucket] = rounds.is_some_and(|(first, last)| first != last);
    }

    fn current_round(&self) -> u64 {
        self.current_tick >> self.round_shift
    }
}

impl TokenWheel for Hashed {
    /// O(1), apart from growth of the bucket, and from the levels that `Earliest::lower` climbs.
    #[inline]
    fn insert(&mut self, tick: u64, token: Token) {
        let tick = tick.max(self.current_tick).min(self.reach());
        let bucket = (tick & self.slot_mask) as usize;
        let Self { buckets, spare, round_shift, .. } = self;
        buckets[bucket].file(spare, token, (tick >> *round_shift) as u16);
        let before = self.earliest.lower(bucket, tick);
        if before != tick && before != NOTHING {
            self.mixed[bucket] = true;
        }
    }

    /// The last tick of the farthest round that a bucket can count. Tick `NOTHING` never comes, so it
    /// has no bucket.
    #[inline]
    fn reach(&self) -> u64 {
        let round = self.current_round().saturating_add(FARTHEST_ROUND);
        let first = round.saturating_mul(self.buckets.len() as u64);
        first.saturating_add(self.slot_mask).min(NOTHING - 1)
    }

    /// Visits only buckets in which something is due, and each only once, even if several of its
    /// rounds are due. A bucket that is not mixed becomes the batch as a whole, so a million
    /// timeouts of one tick are never copied.
    fn take_next(
        &mut self,
        now: u64,
        batch: &mut Batch,
        mut later: impl FnMut(Due),
    ) -> Option<u64> {
        let now = now.min(NOTHING - 1);
        if now < self.current_tick {
            return None;
        }
        if now >= self.reach() {
            self.take_all(&mut later);
        }
        if self.earliest.least() > now {
            self.current_tick = now + 1;
            return None;
        }
        let tick = self.earliest.least();
        let bucket = (tick & self.slot_mask) as usize;
        if self.mixed[bucket] {
            self.take_from_mixed((tick, now), batch, later);
        } else {
            let due = std::mem::take(&mut self.buckets[bucket]);
            std::mem::replace(batch, due).leave(&mut self.spare);
            self.earliest.set(bucket, NOTHING);
        }
        Some(tick)
    }

    /// O(1).
    fn next_expiry(&self) -> Option<u64> {
        Some(self.earliest.least()).filter(|&tick| tick != NOTHING)
    }

    fn current_tick(&self) -> u64 {
        self.current_tick
    }

    fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    fn sweep(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let mut position = self.sweep_position;
        let ended = position.resume(self.buckets.len(), budget, |bucket, rest, budget| {
            let (checked, rest) = sweep_bucket(&mut self.buckets[bucket], rest, budget, &mut keep);
            if checked > 0 && rest.is_none() {
                self.recompute(bucket);
            }
            (checked, rest)
        });
        self.sweep_position = position;
        ended
    }

    fn placement(&self, tick: u64, token: Token) -> Option<Placement> {
        let bucket = (tick.max(self.current_tick) & self.slot_mask) as usize;
        self.buckets[bucket].contains(token).then_some(Placement { level: 1, bucket })
    }
}

impl Exact for Hashed {
    fn confirm_tick(&mut self, tick: u64, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        let bucket = (tick & self.slot_mask) as usize;
        let round = (tick >> self.round_shift) as u16;
        if self.buckets[bucket].confirm(round, tick, confirm) {
            self.recompute(bucket);
        }
    }
}

impl Unlimited for Hashed {}

impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        structure::debug("Hashed", self, f)
    }
}

/// Netty's limit.
pub(crate) const MAX_TICKS_PER_WHEEL: usize = 1 << 30;

/// The number of ticks in a turn was zero or above 2^30, or memory for the buckets was refused.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Wheel, WheelSizeError};
///
/// let refused: WheelSizeError = Wheel::<u32, _>::hashed(0).unwrap_err();
/// assert_eq!(refused.ticks_per_wheel, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", size_error(*ticks_per_wheel))]
#[non_exhaustive]
pub struct WheelSizeError {
    /// The requested number of ticks.
    pub ticks_per_wheel: usize,
}

fn size_error(ticks: usize) -> String {
    if (1..=MAX_TICKS_PER_WHEEL).contains(&ticks) {
        format!("cannot allocate {ticks} buckets")
    } else {
        format!("a wheel of {ticks} ticks: expected 1 to 1073741824 (2^30)")
    }
}

impl<T> Wheel<T, Hashed> {
    /// A [`Hashed`] wheel of `ticks_per_wheel` buckets, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// If the size is zero or above 2^30, or if memory for the buckets is refused.
    pub fn hashed(ticks_per_wheel: usize) -> Result<Self, WheelSizeError> {
        let error = WheelSizeError { ticks_per_wheel };
        if !(1..=MAX_TICKS_PER_WHEEL).contains(&ticks_per_wheel) {
            return Err(error);
        }
        Hashed::new(ticks_per_wheel.next_power_of_two()).map(Self::on).map_err(|_| error)
    }

    /// The number of times that the pointer will still pass the bucket of `key` before the pass
    /// that expires it: `(deadline - current_tick) / ticks_per_wheel`, as in Netty.
    pub fn remaining_rounds(&self, key: Key) -> Option<u64> {
        let ahead = self.deadline(key)?.saturating_sub(self.current_tick());
        Some(ahead / self.ticks_per_wheel() as u64)
    }

    /// The bucket of `key`: `max(deadline, current_tick) & (ticks_per_wheel - 1)`. `None` if its
    /// value has left the wheel, is more than 65,535 rounds ahead, or is in no such bucket for another reason that
    /// [`placement`](Wheel::placement) names. O(n) for n entries in the bucket.
    pub fn bucket(&self, key: Key) -> Option<usize> {
        self.placement(key).map(|placement| placement.bucket)
    }

    /// The number of buckets.
    pub fn ticks_per_wheel(&self) -> usize {
        self.structure().bucket_count()
    }
}
