//! A cascade: levels of buckets, each coarser than the one below. Timeouts are moved down from
//! level to level. A [`Layout`] says which level a timeout goes to. There are three layouts:
//! Kafka's, that of the classic Linux timers, and a single level for the simple wheel.
//!
//! A bucket *expires* at its first tick. Then its timeouts are filed again and land in a finer
//! level, or run if it is a bucket of the finest. The *clock* is the last tick that has expired or
//! is expiring.
//!
//! Time goes from one bucket with entries to the next, never tick by tick. So empty ticks and empty
//! buckets cost nothing. At each of these stops the clock shows the expiration of that *bucket*,
//! not the present. So after a stall, a timeout that is moved down lands in the bucket of its own
//! tick, and the order of ticks holds.
//!
//! When no expired bucket is left, the clock goes on to the present. Entries that were taken out of
//! expired buckets and are not yet due are refiled only then: once, however far the time has
//! jumped. Each goes to the level where it would lie if time had gone through every bucket: the
//! coarsest level whose bucket for its tick has not expired yet. (A finer level may reach it too.
//! But a younger timeout of the same tick may still wait in a coarser level, and would be moved
//! down first, because the coarsest level goes first.)
//!
//! Moving down never needs a wake-up of its own. It happens when the next timeout is due, because
//! `next_expiry` returns the tick of a timeout, not that of its coarse bucket.

use super::confirm::{Confirm, Standing};
use super::earliest::NOTHING;
use super::level::{Arrival, Level, PARTS};
use super::structure::{self, Batch, Exact, Placement, SweepPosition, TokenWheel};
use super::token::{Due, Token};
use std::alloc::{Layout as Memory, handle_alloc_error};
use std::collections::TryReserveError;
use std::fmt;

/// Between two moves, memory for this many entries is kept.
const IDLE_CAPACITY: usize = 4096;

/// The sizes of a cascade's levels, and the rule that picks a timeout's level.
pub(super) trait Layout {
    /// The structure's name in debug output.
    const NAME: &'static str;

    /// The number of buckets of a level, and the number of ticks in a bucket.
    fn level(&self, level: usize) -> (usize, u64);

    /// The level of a timeout due at `tick`, which is in reach and not before the clock. The level
    /// need not exist yet.
    fn place(&mut self, tick: u64) -> usize;

    /// Moves the clock to `clock`.
    fn advance(&mut self, clock: u64);

    /// The last tick that the levels reach at the present clock.
    fn last_in_reach(&self) -> u64 {
        NOTHING
    }
}

/// A structure of levels between which timeouts are moved down.
pub(super) struct Cascade<L> {
    layout: L,
    levels: Vec<Level>,
    /// The next tick to expire: one after the layout's clock. In a pass, the tick that expires: the clock itself.
    current_tick: u64,
    sweep_position: SweepPosition,
    /// Entries that are being moved down and are due by now. Empty between two moves, and kept so
    /// that its memory is used again.
    moving: Vec<(Token, u64)>,
    /// Entries that will be moved down when the clock shows the present.
    later: Vec<(Token, u64)>,
}

impl<L: Layout> Cascade<L> {
    /// A cascade with `levels` levels. More are made on demand.
    pub(super) fn new(layout: L, levels: usize) -> Result<Self, TryReserveError> {
        let made = (0..levels).map(|level| {
            let (size, unit) = layout.level(level);
            Level::new(size, unit)
        });
        let levels = made.collect::<Result<_, _>>()?;
        let (moving, later) = (Vec::new(), Vec::new());
        let sweep_position = SweepPosition::default();
        Ok(Self { layout, levels, current_tick: 0, sweep_position, moving, later })
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
            // Aborts as a growing vector does when memory runs out.
            self.levels.push(made.unwrap_or_else(|_| handle_alloc_error(Memory::new::<Level>())));
        }
    }

    /// The next tick at which a bucket expires.
    fn first_stop(&self) -> Option<u64> {
        self.levels.iter().filter_map(Level::first_expiration).min()
    }

    /// Moves the clock to `tick`, at which one or more buckets expire. The coarsest bucket goes
    /// first, since its timeouts are the oldest. Returns whether any timeout is due in this tick.
    fn stop_at(&mut self, tick: u64, now: u64, batch: &mut Batch) -> bool {
        self.layout.advance(tick);
        self.current_tick = tick;
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

    /// Files a timeout where it would lie if it had always been in the levels: in the coarsest
    /// level whose bucket for its tick has not expired by `clock`.
    fn file_moved(&mut self, tick: u64, token: Token, clock: u64) {
        let waits = |level: &Level| level.start_of(tick) > clock;
        let level = self.levels.iter().rposition(waits).unwrap_or(0);
        self.levels[level].file(tick, token, Arrival::MovedDown);
    }

    /// Moves down the first bucket of a level. A timeout that is due at this stop lands in the
    /// finest level's bucket that expires next.
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

    /// Refiles the entries in `later`. The clock shows the present, `now`.
    fn move_the_rest_down(&mut self, now: u64) {
        let mut later = std::mem::take(&mut self.later);
        for (token, tick) in later.drain(..) {
            self.file_moved(tick, token, now);
        }
        later.shrink_to(IDLE_CAPACITY);
        self.later = later;
    }

    /// Goes from the coarsest level to the finest, since its timeouts are the oldest of their tick.
    #[cold]
    fn take_all(&mut self, mut later: impl FnMut(Due)) {
        for level in self.levels.iter_mut().rev() {
            while level.earliest() != NOTHING {
                level.take_first(|token, tick| later(Due { tick, token }));
            }
        }
    }

    /// The level of a bucket, and its number in that level. `bucket` counts through all levels.
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
    /// O(m) for m levels, apart from growth of the bucket.
    #[inline]
    fn insert(&mut self, tick: u64, token: Token) {
        let tick = tick.max(self.current_tick).min(self.reach());
        self.file(tick, token, Arrival::Direct);
    }

    fn reach(&self) -> u64 {
        self.layout.last_in_reach()
    }

    /// O(m) for each bucket that expires. A timeout is moved down at most m - 1 times.
    fn take_next(&mut self, now: u64, batch: &mut Batch, later: impl FnMut(Due)) -> Option<u64> {
        let now = now.min(NOTHING - 1);
        if now < self.current_tick {
            return None;
        }
        if now >= self.reach() {
            self.take_all(later);
        }
        while let Some(tick) = self.first_stop().filter(|&tick| tick <= now) {
            if self.stop_at(tick, now, batch) {
                return Some(tick);
            }
        }
        self.layout.advance(now);
        self.current_tick = now + 1;
        self.move_the_rest_down(now);
        None
    }

    /// O(m).
    fn next_expiry(&self) -> Option<u64> {
        let earliest = self.levels.iter().map(Level::earliest).min();
        earliest.filter(|&tick| tick != NOTHING)
    }

    fn current_tick(&self) -> u64 {
        self.current_tick
    }

    fn bucket_count(&self) -> usize {
        self.levels.iter().map(Level::size).sum()
    }

    /// Goes from the coarsest level to the finest. Entries move in the same direction, so none slips
    /// past the sweep.
    fn sweep(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let (mut position, parts) = (self.sweep_position, PARTS * self.bucket_count());
        let ended = position.resume(parts, budget, |unit, rest, budget| {
            let part = parts - 1 - unit;
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
    fn confirm_tick(&mut self, tick: u64, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        if let Some(level) = self.levels.iter_mut().find(|level| level.earliest() == tick) {
            level.confirm(confirm);
        }
    }
}

impl<L: Layout> fmt::Debug for Cascade<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        structure::debug(L::NAME, self, f)
    }
}

/// Defines a structure: a cascade of a layout, under a name that users can write.
macro_rules! cascade {
    ($(#[$doc:meta])* $name:ident, $layout:ty) => {
        $(#[$doc])*
        pub struct $name($crate::wheel::cascade::Cascade<$layout>);

        impl $crate::wheel::structure::TokenWheel for $name {
            #[inline]
            fn insert(&mut self, tick: u64, token: $crate::wheel::Token) {
                self.0.insert(tick, token);
            }

            #[inline]
            fn reach(&self) -> u64 {
                self.0.reach()
            }

            #[inline]
            fn take_next(
                &mut self,
                now: u64,
                batch: &mut $crate::wheel::Batch,
                later: impl FnMut($crate::wheel::Due),
            ) -> Option<u64> {
                self.0.take_next(now, batch, later)
            }

            #[inline]
            fn next_expiry(&self) -> Option<u64> {
                self.0.next_expiry()
            }

            #[inline]
            fn current_tick(&self) -> u64 {
                self.0.current_tick()
            }

            fn bucket_count(&self) -> usize {
                self.0.bucket_count()
            }

            fn sweep(
                &mut self,
                budget: usize,
                keep: impl FnMut($crate::wheel::Token) -> bool,
            ) -> bool {
                self.0.sweep(budget, keep)
            }

            fn placement(
                &self,
                tick: u64,
                token: $crate::wheel::Token,
            ) -> Option<$crate::wheel::Placement> {
                self.0.placement(tick, token)
            }
        }

        impl $crate::wheel::structure::Exact for $name {
            fn confirm_tick(
                &mut self,
                tick: u64,
                confirm: &mut $crate::wheel::confirm::Confirm<
                    impl FnMut($crate::wheel::Due) -> $crate::wheel::Standing,
                >,
            ) {
                self.0.confirm_tick(tick, confirm);
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

pub(super) use cascade;
