//! The wheel of Linux since 4.8: nine levels, and nothing is moved down.
//!
//! The *clock* is the last tick that has expired. A bucket of level k spans a *unit* of 8^k ticks.
//!
//! Invariants:
//! 1. All timeouts in a bucket of level k expire together, at a multiple of 8^k after the clock. It
//!    is at most 64 units after the clock rounded down to the unit. So the bucket alone determines
//!    the tick.
//! 2. A bucket's bit in `occupied` is set if the bucket has entries.

use super::bucket::Bucket;
use super::earliest::NOTHING;
use super::structure::{self, Batch, Placement, TokenWheel, Unlimited};
use super::sweep::{SweepPosition, sweep_bucket};
use super::token::{Due, Token};
use super::values::Wheel;
use std::fmt;

/// The number of buckets in a level: one for each bit of a bitmap's word.
const SIZE: usize = 64;

/// Each level is 2^3 times coarser than the one below.
const SHIFT: u32 = 3;

const LEVELS: usize = 9;

/// The smallest delay that goes to level `level`: 63, 504, 4032 ... ticks. It is one bucket less
/// than the span of the level below, because the clock may stand inside a bucket.
const fn threshold(level: usize) -> u64 {
    (SIZE as u64 - 1) << (SHIFT * (level as u32 - 1))
}

/// The smallest delay beyond the last level.
const OUT_OF_REACH: u64 = threshold(LEVELS);

/// Nine levels of 64 buckets, each level eight times coarser than the one below. Timeouts are never
/// moved, and long ones are late.
///
/// These are the timers of Linux since 4.8 (2016). A timeout stays in the bucket that it was filed
/// in, and expires with that bucket: **late by one tick, or by at most 8/63 of its delay** (12.7 %,
/// which the kernel calls 12.5 %), and never early. Most timeouts are cancelled, and for those
/// lateness does not matter.
///
/// The wheel counts a delay from the time that it was last told. So tell it the time before an insert or a
/// reschedule, with [`expire`](Wheel::expire) or [`pop`](Wheel::pop). A [`TimedWheel`](super::TimedWheel) does this
/// itself.
///
/// `insert` is O(1) and touches one bucket and one bit. `remove` is O(1) amortised. `next_expiry`
/// reads one bitmap for each level. The 576 buckets take 14 KiB; an entry takes 8 bytes besides the
/// value.
///
/// Timeouts expire in the order of their buckets' ticks. If the deadlines of two timeouts differ by
/// less than their lateness, the later one may expire first. Two timeouts with the same deadline
/// expire in the order of insertion only if they were inserted at the same time, or expire in the
/// same tick.
///
/// **Very long delays**: the levels reach 1,056,964,607 ticks (63 x 2^24 - 1), 12 days at a tick of
/// 1 ms. Linux lets a longer timeout expire early, after 1,040,187,392 ticks (62 x 2^24). (Where
/// its HZ is 100 or less, it has eight levels, and both limits are an eighth of these.) Here a
/// longer timeout waits apart, in a sorted map, until a level reaches it. So there is no limit, and no
/// timeout is early.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Linux, Wheel};
///
/// let mut wheel = Wheel::linux();
/// let key = wheel.insert(1000, "one thousand"); // from 504 on, a bucket spans 64 ticks
/// let place = |wheel: &Wheel<_, Linux>| wheel.placement(key).map(|at| (at.level, at.bucket));
/// assert_eq!(place(&wheel), Some((3, 16)));
/// assert_eq!(wheel.next_expiry(), Some(1024));
/// assert_eq!(wheel.expire(1023, |_, _| ()), 0);
/// assert_eq!(wheel.expire(1024, |_, expired| assert_eq!(expired.deadline, 1000)), 1);
/// ```
pub struct Linux {
    /// The buckets of all levels, the finest level first.
    buckets: Vec<Bucket<()>>,
    /// See `bucket`.
    spare: Bucket<()>,
    /// For each level, one bit for each bucket that has entries.
    occupied: [u64; LEVELS],
    /// The last tick up to which all buckets have been emptied.
    clock: u64,
    /// The next tick to expire.
    current_tick: u64,
    /// Entries that were overdue at their insert, or when the time was told.
    overdue: Bucket<()>,
    sweep_position: SweepPosition,
}

impl Default for Linux {
    fn default() -> Self {
        let mut buckets = Vec::new();
        buckets.resize_with(LEVELS * SIZE, Bucket::default);
        Self {
            buckets,
            spare: Bucket::default(),
            occupied: [0; LEVELS],
            clock: 0,
            current_tick: 0,
            overdue: Bucket::default(),
            sweep_position: SweepPosition::default(),
        }
    }
}

impl Linux {
    /// Files a timeout in the first bucket that expires after `tick`, so it is not early. A tick
    /// exactly on a bucket boundary fires one bucket late, as in the kernel, because the deadline
    /// may lie anywhere in its tick.
    #[inline]
    fn file(&mut self, tick: u64, token: Token) {
        let delay = tick - self.clock;
        let level = (1..LEVELS).find(|&level| delay < threshold(level)).unwrap_or(LEVELS) - 1;
        let number = (tick >> (SHIFT * level as u32)).saturating_add(1);
        let bucket = number as usize % SIZE;
        self.buckets[level * SIZE + bucket].file(&mut self.spare, token, ());
        self.occupied[level] |= 1 << bucket;
    }

    /// The tick at which the first bucket of a level expires.
    #[inline]
    fn first_expiration(&self, level: usize) -> Option<u64> {
        let occupied = self.occupied[level];
        if occupied == 0 {
            return None;
        }
        let shift = SHIFT * level as u32;
        let next = (self.clock >> shift) + 1;
        let ahead = occupied.rotate_right(next as u32).trailing_zeros();
        Some((next + u64::from(ahead)).saturating_mul(1 << shift))
    }

    /// The next tick at which a bucket expires.
    fn next_bucket(&self) -> Option<u64> {
        (0..LEVELS).filter_map(|level| self.first_expiration(level)).min()
    }

    /// Empties the buckets that expire at `tick`. The coarsest goes first: if two timeouts have the
    /// same deadline, the one in the coarser level was inserted first.
    fn take_tick(&mut self, tick: u64, mut taken: impl FnMut(Token)) {
        for level in (0..LEVELS).rev() {
            if self.first_expiration(level) == Some(tick) {
                let bucket = (tick >> (SHIFT * level as u32)) as usize % SIZE;
                let due = &mut self.buckets[level * SIZE + bucket];
                due.take_all(&mut self.spare, |token, ()| taken(token));
                self.occupied[level] &= !(1 << bucket);
            }
        }
        self.clock = tick;
    }
}

impl TokenWheel for Linux {
    const IS_LATE: bool = true;

    /// O(1), apart from growth of the bucket.
    #[inline]
    fn insert(&mut self, tick: u64, token: Token) {
        if tick < self.current_tick {
            self.overdue.push(token, ());
        } else {
            self.file(tick.min(self.reach()), token);
        }
    }

    fn reach(&self) -> u64 {
        self.clock.saturating_add(OUT_OF_REACH - 1)
    }

    /// What is due by `now` becomes overdue, so the clock can go on. Each entry is moved once.
    fn tell(&mut self, now: u64) {
        if now <= self.current_tick || now == NOTHING {
            return;
        }
        let mut overdue = std::mem::take(&mut self.overdue);
        while let Some(tick) = self.next_bucket().filter(|&tick| tick <= now) {
            self.take_tick(tick, |token| overdue.push(token, ()));
        }
        self.overdue = overdue;
        (self.clock, self.current_tick) = (now - 1, now);
    }

    /// Visits each bucket that expires once.
    fn take_next(&mut self, now: u64, batch: &mut Batch, _: impl FnMut(Due)) -> Option<u64> {
        let now = now.min(NOTHING - 1);
        if now < self.current_tick {
            return None;
        }
        let next = self.next_bucket().filter(|&tick| tick <= now);
        if self.overdue.len() > 0 && next.is_none_or(|tick| tick > self.current_tick) {
            self.overdue.take_all(&mut self.spare, |token, ()| batch.push(token, 0));
            return Some(self.current_tick);
        }
        match next {
            Some(tick) => self.take_tick(tick, |token| batch.push(token, 0)),
            None => (self.clock, self.current_tick) = (now, now + 1),
        }
        next
    }

    fn next_expiry(&self) -> Option<u64> {
        let overdue = (self.overdue.len() > 0).then_some(self.current_tick);
        let next = overdue.into_iter().chain(self.next_bucket()).min();
        next.filter(|&tick| tick != NOTHING)
    }

    fn current_tick(&self) -> u64 {
        self.current_tick
    }

    fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    fn sweep(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let mut position = self.sweep_position;
        let ended = position.resume(1 + self.buckets.len(), budget, |unit, rest, budget| {
            let bucket = match unit.checked_sub(1) {
                None => &mut self.overdue,
                Some(number) => &mut self.buckets[number],
            };
            let swept = sweep_bucket(bucket, rest, budget, &mut keep);
            if unit > 0 && bucket.len() == 0 {
                self.occupied[(unit - 1) / SIZE] &= !(1 << ((unit - 1) % SIZE));
            }
            swept
        });
        self.sweep_position = position;
        ended
    }

    fn placement(&self, _: u64, token: Token) -> Option<Placement> {
        let number = self.buckets.iter().position(|bucket| bucket.contains(token))?;
        Some(Placement { level: number / SIZE + 1, bucket: number % SIZE })
    }
}

impl Unlimited for Linux {}

impl fmt::Debug for Linux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        structure::debug("Linux", self, f)
    }
}

impl<T> Wheel<T, Linux> {
    /// An empty [`Linux`] wheel.
    pub fn linux() -> Self {
        Self::on(Linux::default())
    }
}
