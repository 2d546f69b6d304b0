//! One level of a wheel that cascades: a ring of buckets that each span the same number of ticks.
//!
//! At any time a bucket holds timeouts of one span only, so the buckets stand in the order of their
//! ticks, and the one with the earliest timeout is the one to be visited first.
//!
//! A bucket has two parts. What is moved down into it lay in a coarser level before, so it was
//! inserted before anything of the same tick that came here directly: it goes first. (The window of
//! a level slides, so a timeout can be filed directly while an older one of its tick still waits
//! above.)

use super::bucket::{Bucket, earlier};
use super::earliest::{Earliest, NOTHING};
use super::structure::Token;
use std::collections::TryReserveError;

/// How a timeout comes into a level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Direct,
    MovedDown,
}

/// An entry remembers its tick.
#[derive(Default)]
struct TwoParts {
    moved_down: Bucket<u64>,
    direct: Bucket<u64>,
}

pub(super) struct Level {
    buckets: Vec<TwoParts>,
    /// For each bucket the earliest tick of anything in it.
    earliest: Earliest,
    /// Ticks that a bucket spans.
    unit: u64,
    /// If both the unit and the number of buckets are powers of two: log2 of the unit.
    shift: Option<u32>,
}

impl Level {
    pub(super) fn new(size: usize, unit: u64) -> Result<Self, TryReserveError> {
        let mut buckets = Vec::new();
        buckets.try_reserve_exact(size)?;
        buckets.resize_with(size, TwoParts::default);
        let powers = size.is_power_of_two() && unit.is_power_of_two();
        let shift = powers.then(|| unit.trailing_zeros());
        Ok(Self { buckets, earliest: Earliest::new(size)?, unit, shift })
    }

    pub(super) fn size(&self) -> usize {
        self.buckets.len()
    }

    #[inline]
    pub(super) fn file(&mut self, tick: u64, token: Token, arrival: Arrival) {
        let bucket = self.bucket_of(tick);
        let parts = &mut self.buckets[bucket];
        match arrival {
            Arrival::Direct => parts.direct.push(token, tick),
            Arrival::MovedDown => parts.moved_down.push(token, tick),
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

    /// The earliest tick of anything here, or `NOTHING`.
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.earliest.least()
    }

    /// The expiration of the first bucket with anything in it: its first tick.
    #[inline]
    pub(super) fn first_expiration(&self) -> Option<u64> {
        let earliest = self.earliest.least();
        (earliest != NOTHING).then(|| self.start_of(earliest))
    }

    /// Empties the first bucket, in the order of insertion.
    pub(super) fn take_first(&mut self, mut taken: impl FnMut(Token, u64)) {
        let bucket = self.bucket_of(self.earliest.least());
        let TwoParts { moved_down, direct } = &mut self.buckets[bucket];
        moved_down.take_all(&mut taken);
        direct.take_all(&mut taken);
        self.earliest.set(bucket, NOTHING);
    }

    /// Drops what `keep` denies, and returns how many entries the bucket held.
    pub(super) fn reclaim(&mut self, bucket: usize, mut keep: impl FnMut(Token) -> bool) -> usize {
        let TwoParts { moved_down, direct } = &mut self.buckets[bucket];
        let before = moved_down.len() + direct.len();
        if before == 0 {
            return 0;
        }
        let mut next = None;
        for part in [moved_down, direct] {
            part.retain(|token, tick| {
                let kept = keep(token);
                if kept {
                    next = earlier(next, tick);
                }
                kept
            });
        }
        self.earliest.set(bucket, next.unwrap_or(NOTHING));
        before
    }

    /// The bucket that a token lies in.
    pub(super) fn find(&self, token: Token) -> Option<usize> {
        let holds =
            |parts: &TwoParts| parts.moved_down.contains(token) || parts.direct.contains(token);
        self.buckets.iter().position(holds)
    }
}
