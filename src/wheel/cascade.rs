//! The structure of all wheels that have levels and move timeouts down from one to the next.
//!
//! Where a timeout goes is the [`Layout`]'s to say: after Kafka, after the classic Linux timers, or,
//! with a single level, the simple wheel's.
//!
//! Time goes from one bucket with something in it to the next, never tick by tick, so empty ticks
//! and empty buckets cost nothing. At each stop the clock stands at that *bucket's* expiration, not
//! at the present: what is moved down after a stall therefore lands in the bucket of its own tick,
//! and the order of ticks holds. Once nothing is left that has expired, the clock goes on to the
//! present, and only there is filed again what is not due: once, however far the time has jumped. It
//! goes to where it would lie had time gone through every bucket: the coarsest level whose bucket for
//! its tick does not expire yet. (A finer one may reach it; but what came after it may wait above that,
//! and would be moved down before it.)
//!
//! What is farther away than the last level reaches waits in `far`, and is filed before anything of
//! the same tick can be filed directly.
//!
//! Moving down never needs a wake-up. It is caught up on when the next timeout is due, which
//! `next_expiry` names exactly.

use super::confirm::{Confirm, Standing};
use super::earliest::NOTHING;
use super::far::Far;
use super::level::{Arrival, Level, PARTS};
use super::structure::{self, Batch, Exact, LET_IN, Placement, SweepPosition, TokenWheel};
use super::token::{Due, Token};
use std::alloc::{Layout as Memory, handle_alloc_error};
use std::collections::TryReserveError;
use std::fmt;

/// Entries for which memory is kept between two buckets that are moved down.
const IDLE_CAPACITY: usize = 4096;

/// The levels of a wheel, and the level that a timeout goes to.
pub trait Layout {
    /// The structure's name in what is printed of it.
    const NAME: &'static str;

    /// The number of buckets of a level, and the ticks that each spans.
    fn level(&self, level: usize) -> (usize, u64);

    /// The level of a timeout of `tick`, which need not exist yet. `tick` is not before the clock,
    /// and in reach.
    fn place(&mut self, tick: u64) -> usize;

    /// The clock moves to `clock`, the last tick that has expired or is expiring.
    fn advance(&mut self, clock: u64);

    /// The last tick in reach of the levels, as the clock stands.
    fn last_in_reach(&self) -> u64 {
        NOTHING
    }

    /// log2 of the ticks in an era of what is out of reach. Two eras are in reach at any time.
    const ERA: u32 = 0;
}

/// Levels between which timeouts are moved down.
pub struct Cascade<L> {
    layout: L,
    levels: Vec<Level>,
    /// What the levels do not reach, or did not when it came and has not been filed since.
    far: Far,
    /// The last tick that is filed in a level.
    reach: u64,
    /// The next tick to expire: one after the layout's clock.
    current_tick: u64,
    sweep_position: SweepPosition,
    /// What moves down and is due.
    moving: Vec<(Token, u64)>,
    /// What moves down once the clock stands at the present.
    later: Vec<(Token, u64)>,
}

impl<L: Layout> Cascade<L> {
    /// With its first `levels` levels made.
    pub(super) fn new(layout: L, levels: usize) -> Result<Self, TryReserveError> {
        let made = (0..levels).map(|level| {
            let (size, unit) = layout.level(level);
            Level::new(size, unit)
        });
        let levels = made.collect::<Result<_, _>>()?;
        let (far, reach, sweep_position) =
            (Far::new(L::ERA), layout.last_in_reach(), SweepPosition::default());
        let (moving, later) = (Vec::new(), Vec::new());
        Ok(Self { layout, levels, far, reach, current_tick: 0, sweep_position, moving, later })
    }

    pub(super) fn levels(&self) -> usize {
        self.levels.len()
    }

    #[inline]
    fn file(&mut self, tick: u64, token: Token, arrival: Arrival) {
        let level = self.layout.place(tick);
        if level >= self.levels.len() {
            self.make_levels_up_to(level);
        }
        self.levels[level].file(tick, token, arrival);
    }

    #[cold]
    fn make_levels_up_to(&mut self, last: usize) {
        for level in self.levels.len()..=last {
            let (size, unit) = self.layout.level(level);
            let made = Level::new(size, unit);
            // As for any vector that grows.
            self.levels.push(made.unwrap_or_else(|_| handle_alloc_error(Memory::new::<Level>())));
        }
    }

    /// When the next bucket expires, or the first of what is far.
    fn first_stop(&self) -> Option<u64> {
        self.levels.iter().filter_map(Level::first_expiration).chain(self.far.next()).min()
    }

    /// Time stands at `tick`, at which a bucket expires. The coarsest goes first: what is in it is
    /// the oldest. Returns whether anything is due in this tick.
    fn stop_at(&mut self, tick: u64, now: u64, batch: &mut Batch) -> bool {
        self.layout.advance(tick);
        // An era that has begun has to be in the levels.
        let most = if self.far.next() == Some(tick) { usize::MAX } else { LET_IN };
        self.let_in_some(most);
        for level in (1..self.levels.len()).rev() {
            if self.levels[level].first_expiration() == Some(tick) {
                self.move_down(level, now);
            }
        }
        let due = self.levels[0].earliest() == tick;
        if due {
            self.levels[0].take_first(|token, _| batch.push(token, 0));
        }
        due
    }

    /// Files at most `most` far timeouts that are in reach by now.
    fn let_in_some(&mut self, most: usize) {
        let last = self.layout.last_in_reach();
        for _ in 0..most {
            let Some(Due { tick, token }) = self.far.take(last) else { break };
            self.file(tick, token, Arrival::MovedDown);
        }
        self.reach = last.min(self.far.limit());
    }

    /// What has to run now lands in the finest level too, in the bucket that expires next.
    fn move_down(&mut self, level: usize, now: u64) {
        let mut moving = std::mem::take(&mut self.moving);
        let later = &mut self.later;
        self.levels[level].take_first(|token, tick| {
            let list = if tick <= now { &mut moving } else { &mut *later };
            list.push((token, tick));
        });
        for (token, tick) in moving.drain(..) {
            self.file(tick, token, Arrival::MovedDown);
        }
        moving.shrink_to(IDLE_CAPACITY);
        self.moving = moving;
    }

    /// The clock stands at the present.
    fn move_the_rest_down(&mut self, now: u64) {
        let mut later = std::mem::take(&mut self.later);
        for (token, tick) in later.drain(..) {
            let waits = |level: &Level| level.start_of(tick) > now;
            let level = self.levels.iter().rposition(waits).unwrap_or(0);
            self.levels[level].file(tick, token, Arrival::MovedDown);
        }
        later.shrink_to(IDLE_CAPACITY);
        self.later = later;
    }

    /// The level of a bucket, and its place in it, when all are counted through.
    fn locate(&self, mut bucket: usize) -> (usize, usize) {
        let mut level = 0;
        while bucket >= self.levels[level].size() {
            bucket -= self.levels[level].size();
            level += 1;
        }
        (level, bucket)
    }
}

impl<L: Layout> TokenWheel for Cascade<L> {
    /// O(m) for m levels, but for the bucket's growth, and for what is out of reach.
    #[inline]
    fn insert(&mut self, tick: u64, token: Token) {
        let tick = tick.max(self.current_tick);
        if tick > self.reach {
            self.far.insert(tick, token);
        } else {
            self.file(tick, token, Arrival::Direct);
        }
    }

    /// O(m) for each bucket that expires; a timeout is moved down at most m - 1 times.
    fn take_next(&mut self, now: u64, batch: &mut Batch, _: impl FnMut(Due)) -> Option<u64> {
        let now = now.min(NOTHING - 1);
        if now < self.current_tick {
            return None;
        }
        while let Some(tick) = self.first_stop().filter(|&tick| tick <= now) {
            if self.stop_at(tick, now, batch) {
                return Some(tick);
            }
        }
        self.layout.advance(now);
        self.current_tick = now + 1;
        self.move_the_rest_down(now);
        self.let_in_some(LET_IN);
        None
    }

    /// O(m).
    fn next_expiry(&self) -> Option<u64> {
        let earliest = self.levels.iter().map(Level::earliest).chain(self.far.next()).min();
        earliest.filter(|&tick| tick != NOTHING)
    }

    fn current_tick(&self) -> u64 {
        self.current_tick
    }

    fn bucket_count(&self) -> usize {
        self.levels.iter().map(Level::size).sum()
    }

    /// From what is far and the coarsest level to the finest, as the entries move, so that none slips
    /// past the sweep.
    fn sweep(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let (mut position, parts) = (self.sweep_position, PARTS * self.bucket_count());
        let ended = position.resume(1 + parts, budget, |unit, rest, budget| {
            if unit == 0 {
                return self.far.sweep(rest, budget, &mut keep);
            }
            let part = parts - unit;
            let (level, bucket) = self.locate(part / PARTS);
            self.levels[level].sweep(bucket * PARTS + part % PARTS, rest, budget, &mut keep)
        });
        self.sweep_position = position;
        ended
    }

    fn placement(&self, _: u64, token: Token) -> Option<Placement> {
        let found = |(number, level): (usize, &Level)| {
            level.find(token).map(|bucket| Placement { level: number + 1, bucket })
        };
        self.levels.iter().enumerate().find_map(found)
    }
}

impl<L: Layout> Exact for Cascade<L> {
    fn let_in(&mut self) -> bool {
        self.let_in_some(LET_IN);
        self.far.has_come_into_reach(self.layout.last_in_reach())
    }

    fn confirm_tick(&mut self, tick: u64, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        match self.levels.iter_mut().find(|level| level.earliest() == tick) {
            Some(level) => level.confirm(confirm),
            None => self.far.confirm(confirm),
        }
    }
}

impl<L: Layout> fmt::Debug for Cascade<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        structure::debug(L::NAME, self, f)
    }
}
