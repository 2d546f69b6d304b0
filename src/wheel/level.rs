//! One level of a cascade: a ring of buckets that each span the same number of ticks, and the window of ticks that it
//! reaches.
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
use super::sweep::sweep_bucket;
use super::token::{Due, Token};
use std::collections::TryReserveError;

/// The number of parts of a bucket.
pub(super) const PARTS: usize = 2;

/// How a timeout came to its level. This picks the part of the bucket.
#[derive(Clone, Copy)]
pub(super) enum Arrival {
    MovedDown,
    Direct,
}

pub(super) struct Level {
    /// The parts of all buckets, those of one bucket side by side. The mark of an entry is its tick.
    parts: Vec<Bucket<u64>>,
    /// See `bucket`.
    spare: Bucket<u64>,
    /// The earliest tick in each bucket.
    earliest: Earliest,
    /// The first tick of the level's window.
    pub(super) begin: u64,
    /// The number of ticks in the window. `u64::MAX` if it reaches every tick.
    span: u64,
    /// The number of ticks that a bucket spans.
    pub(super) unit: u64,
    /// log2 of the unit, if both the unit and the number of buckets are powers of two.
    shift: Option<u32>,
}

impl Level {
    pub(super) fn new(size: usize, unit: u64) -> Result<Self, TryReserveError> {
        let mut parts = Vec::new();
        parts.try_reserve_exact(PARTS * size)?;
        parts.resize_with(PARTS * size, Bucket::default);
        let powers = size.is_power_of_two() && unit.is_power_of_two();
        let shift = powers.then(|| unit.trailing_zeros());
        let (spare, earliest) = (Bucket::default(), Earliest::new(size)?);
        let span = unit.saturating_mul(size as u64);
        Ok(Self { parts, spare, earliest, begin: 0, span, unit, shift })
    }

    pub(super) fn reaching_every_tick(self) -> Self {
        Self { span: u64::MAX, ..self }
    }

    /// The next coarser level. It has as many buckets, and each spans as many ticks as this level.
    pub(super) fn overflow(&self) -> Result<Self, TryReserveError> {
        let mut above = Self::new(self.size(), self.span)?;
        above.begin = above.start_of(self.begin);
        Ok(above)
    }

    #[inline]
    pub(super) fn reaches(&self, tick: u64) -> bool {
        tick - self.begin < self.span || self.span == u64::MAX
    }

    #[inline]
    pub(super) fn size(&self) -> usize {
        self.parts.len() / PARTS
    }

    #[inline]
    pub(super) fn file(&mut self, tick: u64, token: Token, arrival: Arrival) {
        let bucket = self.bucket_of(tick);
        let part = PARTS * bucket + arrival as usize;
        self.parts[part].file(&mut self.spare, token, tick);
        self.earliest.lower(bucket, tick);
    }

    #[inline]
    fn bucket_of(&self, tick: u64) -> usize {
        let size = self.size() as u64;
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
        for part in &mut self.parts[PARTS * bucket..][..PARTS] {
            part.take_all(&mut self.spare, &mut taken);
        }
        self.earliest.set(bucket, NOTHING);
    }

    /// Sweeps one part of a bucket; see [`SweepPosition::resume`](super::sweep::SweepPosition::resume).
    pub(super) fn sweep(
        &mut self,
        part: usize,
        rest: Option<usize>,
        budget: usize,
        keep: impl FnMut(Token) -> bool,
    ) -> (usize, Option<usize>) {
        let (checked, rest) = sweep_bucket(&mut self.parts[part], rest, budget, keep);
        if checked > 0 && rest.is_none() {
            self.recompute_earliest(part / PARTS);
        }
        (checked, rest)
    }

    /// Checks the entries of the earliest tick until it finds a live one. Drops the dead ones
    /// before it.
    pub(super) fn confirm(&mut self, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        let tick = self.earliest.least();
        let bucket = self.bucket_of(tick);
        let mut parts = self.parts[PARTS * bucket..][..PARTS].iter_mut();
        if parts.all(|part| part.confirm(tick, tick, confirm)) {
            self.recompute_earliest(bucket);
        }
    }

    /// Recomputes the earliest tick of a bucket from its entries.
    fn recompute_earliest(&mut self, bucket: usize) {
        let parts = &self.parts[PARTS * bucket..][..PARTS];
        let earliest = parts.iter().flat_map(Bucket::marks).min();
        self.earliest.set(bucket, earliest.unwrap_or(NOTHING));
    }

    /// Searches all buckets for a token.
    pub(super) fn find(&self, token: Token) -> Option<usize> {
        let part = self.parts.iter().position(|part| part.contains(token))?;
        Some(part / PARTS)
    }
}
