//! One level of a cascade: a ring of buckets that each span the same number of ticks.
//!
//! At any time, all timeouts of a bucket belong to one span. So the bucket with the earliest
//! timeout is the next one to visit.
//!
//! A bucket has two parts: `moved_down` comes first, then `direct`. A timeout that was moved down
//! lay in a coarser level before. So it is older than every timeout of the same tick that came to
//! this level directly. (The window of a level slides. So a timeout can be filed directly while an
//! older one of the same tick still waits in a coarser level.)

use super::bucket::Bucket;
use super::confirm::{Confirm, Standing};
use super::earliest::{Earliest, NOTHING};
use super::token::{Due, Token};
use std::collections::TryReserveError;

/// The number of parts of a bucket.
pub(super) const PARTS: usize = 2;

/// How a timeout came to its level. This picks the part of the bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Direct,
    MovedDown,
}

/// A bucket. The mark of an entry is its tick.
#[derive(Default)]
struct TwoParts {
    moved_down: Bucket<u64>,
    direct: Bucket<u64>,
}

pub(super) struct Level {
    buckets: Vec<TwoParts>,
    /// See `bucket`.
    spare: Bucket<u64>,
    /// The earliest tick in each bucket.
    earliest: Earliest,
    /// The number of ticks that a bucket spans.
    unit: u64,
    /// log2 of the unit, if both the unit and the number of buckets are powers of two.
    shift: Option<u32>,
}

impl Level {
    pub(super) fn new(size: usize, unit: u64) -> Result<Self, TryReserveError> {
        let mut buckets = Vec::new();
        buckets.try_reserve_exact(size)?;
        buckets.resize_with(size, TwoParts::default);
        let powers = size.is_power_of_two() && unit.is_power_of_two();
        let shift = powers.then(|| unit.trailing_zeros());
        let (spare, earliest) = (Bucket::default(), Earliest::new(size)?);
        Ok(Self { buckets, spare, earliest, unit, shift })
    }

    pub(super) fn size(&self) -> usize {
        self.buckets.len()
    }

    #[inline]
    pub(super) fn file(&mut self, tick: u64, token: Token, arrival: Arrival) {
        let bucket = self.bucket_of(tick);
        let parts = &mut self.buckets[bucket];
        match arrival {
            Arrival::Direct => parts.direct.file(&mut self.spare, token, tick),
            Arrival::MovedDown => parts.moved_down.file(&mut self.spare, token, tick),
        }
        self.earliest.lower(bucket, tick);
    }

    #[inline]
    fn bucket_of(&self, tick: u64) -> usize {
        let size = self.buckets.len() as u64;
        match self.shift {
            Some(shift) => ((tick >> shift) & (size - 1)) as usize,
            None => ((tick / self.unit) % size) as usize,
        }
    }

    /// The first tick of the bucket that `tick` falls into.
    #[inline]
    pub(super) fn start_of(&self, tick: u64) -> u64 {
        match self.shift {
            Some(shift) => (tick >> shift) << shift,
            None => tick - tick % self.unit,
        }
    }

    /// The earliest tick in this level, or `NOTHING`.
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.earliest.least()
    }

    /// The expiration of the first bucket that is not empty. A bucket expires at its first tick.
    #[inline]
    pub(super) fn first_expiration(&self) -> Option<u64> {
        let earliest = self.earliest.least();
        (earliest != NOTHING).then(|| self.start_of(earliest))
    }

    /// Empties the first bucket, in the order of insertion.
    pub(super) fn take_first(&mut self, mut taken: impl FnMut(Token, u64)) {
        let bucket = self.bucket_of(self.earliest.least());
        let TwoParts { moved_down, direct } = &mut self.buckets[bucket];
        moved_down.take_all(&mut self.spare, &mut taken);
        direct.take_all(&mut self.spare, &mut taken);
        self.earliest.set(bucket, NOTHING);
    }

    /// Checks at most `budget` entries in one part of a bucket, from the end to the front, and
    /// drops those that `keep` denies. It checks the entries before `rest`, or the last ones if
    /// that is `None`. Returns the number of checked entries, and the next `rest`, or `None` at the
    /// end of the part.
    pub(super) fn sweep(
        &mut self,
        part: usize,
        rest: Option<usize>,
        budget: usize,
        keep: impl FnMut(Token) -> bool,
    ) -> (usize, Option<usize>) {
        let number = part / PARTS;
        let TwoParts { moved_down, direct } = &mut self.buckets[number];
        let bucket = if part % PARTS == 0 { moved_down } else { direct };
        let len = bucket.len();
        let end = rest.map_or(len, |rest| rest.min(len));
        if end == 0 {
            return (0, None);
        }
        let begin = bucket.retain_before(end, budget, keep);
        if begin == 0 {
            self.recompute_earliest(number);
        }
        (end - begin, Some(begin).filter(|&begin| begin > 0))
    }

    /// Checks the entries of the earliest tick until it finds a live one. Drops the dead ones
    /// before it.
    pub(super) fn confirm(&mut self, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        let tick = self.earliest.least();
        let number = self.bucket_of(tick);
        let TwoParts { moved_down, direct } = &mut self.buckets[number];
        if moved_down.confirm(tick, tick, confirm) && direct.confirm(tick, tick, confirm) {
            self.recompute_earliest(number);
        }
    }

    /// Recomputes the earliest tick of a bucket from its entries.
    fn recompute_earliest(&mut self, number: usize) {
        let TwoParts { moved_down, direct } = &self.buckets[number];
        let earliest = moved_down.marks().chain(direct.marks()).min();
        self.earliest.set(number, earliest.unwrap_or(NOTHING));
    }

    /// Searches all buckets for a token.
    pub(super) fn find(&self, token: Token) -> Option<usize> {
        let holds =
            |parts: &TwoParts| parts.moved_down.contains(token) || parts.direct.contains(token);
        self.buckets.iter().position(holds)
    }
}
