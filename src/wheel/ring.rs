//! The ring of buckets with rounds: scheme 6.
//!
//! Invariants:
//! 1. No entry of a bucket lies before `current_tick`, none more than `FARTHEST_ROUND` rounds
//!    after it; whatever does is in `far`.
//! 2. `earliest` of a bucket is not after the tick of any entry in it.
//! 3. Within a bucket, entries of one tick stand in the order of their insertion.

use super::bucket::{Bucket, FARTHEST_ROUND};
use super::earliest::{Earliest, NOTHING};
use super::far::Far;
use super::structure::{self, Batch, Core, Due, Placement, Token, Unlimited, Walk};
use std::collections::TryReserveError;
use std::fmt;

/// One ring of buckets, and for each timeout the rounds that the pointer still has to make.
pub struct Ring {
    buckets: Vec<Bucket<u16>>,
    earliest: Earliest,
    far: Far,
    /// ticks_per_wheel - 1.
    slot_mask: u64,
    /// log2 of ticks_per_wheel: a tick's round is `tick >> round_shift`.
    round_shift: u32,
    /// The next tick to expire.
    current_tick: u64,
    walk: Walk,
}

impl Ring {
    /// `ticks_per_wheel` must be a power of two.
    pub(crate) fn new(ticks_per_wheel: usize) -> Result<Self, TryReserveError> {
        debug_assert!(ticks_per_wheel.is_power_of_two());
        let mut buckets = Vec::new();
        buckets.try_reserve_exact(ticks_per_wheel)?;
        let earliest = Earliest::new(ticks_per_wheel)?;
        buckets.resize_with(ticks_per_wheel, Bucket::default);
        Ok(Self {
            buckets,
            earliest,
            far: Far::default(),
            slot_mask: ticks_per_wheel as u64 - 1,
            round_shift: ticks_per_wheel.trailing_zeros(),
            current_tick: 0,
            walk: Walk::default(),
        })
    }

    /// The bucket of a timeout due at `tick`: an overdue one goes into the current bucket.
    pub(crate) fn bucket_of(&self, tick: u64) -> usize {
        (tick.max(self.current_tick) & self.slot_mask) as usize
    }

    #[inline]
    fn insert_near(&mut self, tick: u64, token: Token) {
        let bucket = (tick & self.slot_mask) as usize;
        self.buckets[bucket].push_in_round(token, tick >> self.round_shift);
        self.earliest.lower(bucket, tick);
    }

    /// The last tick of the farthest round that a bucket can count.
    #[inline]
    fn farthest_tick(&self) -> u64 {
        let round = (self.current_tick >> self.round_shift).saturating_add(FARTHEST_ROUND);
        round.saturating_mul(self.buckets.len() as u64).saturating_add(self.slot_mask)
    }

    /// All that is due lies within a turn: each bucket holds one tick that is due, so going from
    /// least to least visits them in the order of ticks.
    fn take_bucket_by_bucket(&mut self, now: u64, due: &mut Vec<Due>) {
        loop {
            let tick = self.earliest.least();
            if tick > now || tick == NOTHING {
                return;
            }
            let bucket = (tick & self.slot_mask) as usize;
            self.take_bucket(bucket, now, due);
        }
    }

    #[cold]
    fn take_after_stall(&mut self, now: u64, due: &mut Vec<Due>) {
        let before = due.len();
        for bucket in 0..self.buckets.len() {
            if self.buckets[bucket].len() > 0 {
                self.take_bucket(bucket, now, due);
            }
        }
        due.extend(std::iter::from_fn(|| self.far.take(now)));
        due[before..].sort_by_key(|due| due.tick); // stable: keeps the order within a tick
    }

    fn take_bucket(&mut self, bucket: usize, now: u64, due: &mut Vec<Due>) {
        let shift = self.round_shift;
        let tick_in = |round: u64| (round << shift) | bucket as u64;
        // The last round in which this bucket's tick is not after `now`.
        let last = match now.checked_sub(bucket as u64) {
            Some(past) => past >> shift,
            None => return,
        };
        let next =
            self.buckets[bucket].take_due(self.current_tick >> shift, last, |round, token| {
                due.push(Due { tick: tick_in(round), token })
            });
        self.earliest.set(bucket, next.map_or(NOTHING, tick_in));
    }

    /// Returns how many entries the bucket held.
    fn reclaim_bucket(&mut self, bucket: usize, keep: impl FnMut(Token) -> bool) -> usize {
        let before = self.buckets[bucket].len();
        if before > 0 {
            let current = self.current_tick >> self.round_shift;
            let next = self.buckets[bucket].retain_rounds(current, keep);
            let tick = next.map_or(NOTHING, |round| self.tick(bucket, round));
            self.earliest.set(bucket, tick);
        }
        before
    }

    fn tick(&self, bucket: usize, round: u64) -> u64 {
        (round << self.round_shift) | bucket as u64
    }
}

impl Core for Ring {
    /// O(1), but for the bucket's growth, and for what is too far away for a bucket.
    #[inline]
    fn insert(&mut self, tick: u64, token: Token) {
        let tick = tick.max(self.current_tick);
        if tick > self.farthest_tick() {
            self.far.insert(tick, token);
        } else {
            self.insert_near(tick, token);
        }
    }

    /// Buckets in which nothing is due are not touched. If more than a turn lies between what is due
    /// first and `now`, it costs one walk over all buckets and a sort of what is due.
    fn take_due(&mut self, now: u64, due: &mut Vec<Due>) {
        let now = now.min(NOTHING - 1);
        if now < self.current_tick {
            return;
        }
        if let Some(next) = self.next_expiry().filter(|&next| next <= now) {
            let within_a_turn = now - next < self.buckets.len() as u64;
            if within_a_turn && self.far.next().is_none_or(|tick| tick > now) {
                self.take_bucket_by_bucket(now, due);
            } else {
                self.take_after_stall(now, due);
            }
        }
        self.current_tick = now + 1;
        while let Some(Due { tick, token }) = self.far.take(self.farthest_tick()) {
            self.insert_near(tick, token);
        }
    }

    /// A million timeouts of one tick are then a million entries that nobody copies.
    fn take_whole_bucket(&mut self, now: u64, empty: &mut Batch) -> Option<u64> {
        let tick = self.earliest.least();
        let stalled = now.saturating_sub(self.current_tick) >= self.buckets.len() as u64;
        if stalled || tick > now || tick == NOTHING {
            return None;
        }
        let bucket = (tick & self.slot_mask) as usize;
        if !self.buckets[bucket].is_all_of(tick >> self.round_shift) {
            return None;
        }
        std::mem::swap(&mut self.buckets[bucket], empty);
        self.earliest.set(bucket, NOTHING);
        Some(tick)
    }

    /// O(1), but for what is far away.
    fn next_expiry(&self) -> Option<u64> {
        let next = self.earliest.least().min(self.far.next().unwrap_or(NOTHING));
        Some(next).filter(|&tick| tick != NOTHING)
    }

    fn current_tick(&self) -> u64 {
        self.current_tick
    }

    fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    fn reclaim(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let mut walk = self.walk;
        let ended = walk.go_on(self.buckets.len(), budget, |bucket| {
            let far = if bucket == 0 { self.far.reclaim(&mut keep) } else { 0 };
            far + self.reclaim_bucket(bucket, &mut keep)
        });
        self.walk = walk;
        ended
    }

    fn placement(&self, tick: u64, _: Token) -> Option<Placement> {
        let near = tick <= self.farthest_tick();
        near.then(|| Placement { level: 1, bucket: self.bucket_of(tick) })
    }
}

impl Unlimited for Ring {}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        structure::debug("Hashed", self, f)
    }
}
