//! A cascade: levels of buckets, each coarser than the one below. Timeouts are moved down from level to level. The
//! *window* of a level spans all of its buckets. A timeout goes to the finest level whose window reaches it. A further
//! level is made when a timeout needs it. A [`Layout`] determines where the windows begin. There are three layouts:
//! Kafka's, that of the classic Linux timers, and a single level for the simple wheel.
//!
//! A bucket *expires* at its first tick. Then its timeouts are filed again and land in a finer
//! level, or are due if it is a bucket of the finest. The *clock* is the last tick that has expired or
//! is expiring.
//!
//! Time goes from one bucket with entries to the next, never tick by tick. So empty ticks and empty
//! buckets cost nothing. At each of these stops the clock shows the expiration of that *bucket*,
//! not now. So after a stall, a timeout that is moved down lands in the bucket of its own
//! tick, and the order of ticks holds.
//!
//! When no expired bucket is left, the clock goes on to the current tick. Entries that were taken out of
//! expired buckets and are not yet due are refiled only then: once, however far the time has
//! jumped. Each goes to the level where it would lie if time had gone through every bucket: the
//! coarsest level whose bucket for its tick has not expired yet. (A finer level may reach it too.
//! But a younger timeout of the same tick may still wait in a coarser level, and would be moved
//! down first, because the coarsest level goes first.)
//!
//! Moving down never needs a separate wake-up. It happens when the next timeout is due, because
//! `next_expiry` returns the tick of a timeout, not that of its coarse bucket.

use super::confirm::{Confirm, Standing};
use super::earliest::NOTHING;
use super::level::{Arrival, Level, PARTS};
use super::structure::{self, Batch, Exact, Placement, TokenWheel};
use super::sweep::SweepPosition;
use super::token::{Due, Token};
use std::alloc::{Layout as Memory, handle_alloc_error};
use std::collections::TryReserveError;
use std::fmt;
use std::marker::PhantomData;

/// Between two moves, memory for this many entries is kept.
const IDLE_CAPACITY: usize = 4096;

/// The rules of a cascade's levels.
pub trait Layout {
    /// The structure's name in debug output.
    const NAME: &'static str;

    /// The number of ticks after the clock that the levels reach.
    const REACH: u64 = NOTHING;

    /// Whether a level's window begins at the clock rounded down to the level's unit, instead of at the clock.
    const IS_ALIGNED: bool = true;
}

/// A structure of levels between which timeouts are moved down.
pub struct Cascade<L> {
    levels: Vec<Level>,
    /// The next tick to expire: one after the clock. In a pass, the tick that expires: the clock itself.
    current_tick: u64,
    sweep_position: SweepPosition,
    /// Entries that are being moved down and are due by now. Empty between two moves, and kept so
    /// that its memory is used again.
    moving: Vec<(Token, u64)>,
    /// Entries that will be moved down when the clock shows the current tick.
    later: Vec<(Token, u64)>,
    layout: PhantomData<L>,
}

impl<L: Layout> Cascade<L> {
    /// A cascade of these levels, the finest first. Further ones are made when a timeout is out of their reach.
    pub(super) fn new(
        levels: impl IntoIterator<Item = Result<Level, TryReserveError>>,
    ) -> Result<Self, TryReserveError> {
        Ok(Self {
            levels: levels.into_iter().collect::<Result<_, _>>()?,
            current_tick: 0,
            sweep_position: SweepPosition::default(),
            moving: Vec::new(),
            later: Vec::new(),
            layout: PhantomData,
        })
    }

    pub(super) fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Makes the level above the coarsest one.
    #[cold]
    fn make_level(&mut self) {
        let made = self.levels[self.levels.len() - 1].overflow();
        // Aborts as a growing vector does when memory runs out.
        self.levels.push(made.unwrap_or_else(|_| handle_alloc_error(Memory::new::<Level>())));
    }

    /// Moves the clock. Goes up from the finest level until an aligned window stays where it is.
    fn advance(&mut self, clock: u64) {
        for level in &mut self.levels {
            if L::IS_ALIGNED && clock - level.begin < level.unit {
                return;
            }
            level.begin = if L::IS_ALIGNED { level.start_of(clock) } else { clock };
        }
    }

    /// The next tick at which a bucket expires.
    fn first_stop(&self) -> Option<u64> {
        self.levels.iter().filter_map(Level::first_expiration).min()
    }

    /// Moves the clock to `tick`, at which one or more buckets expire. The coarsest bucket goes
    /// first, since its timeouts are the oldest. Returns whether any timeout is due in this tick.
    ///
    /// A timeout that is due at this stop lands in the finest level's bucket that expires next.
    fn stop_at(&mut self, tick: u64, now: u64, batch: &mut Batch) -> bool {
        self.advance(tick);
        self.current_tick = tick;
        let Self { levels, moving, later, .. } = self;
        for level in (1..levels.len()).rev() {
            if levels[level].first_expiration() == Some(tick) {
                levels[level].take_first(|token, due| {
                    let list = if due <= now { &mut *moving } else { &mut *later };
                    list.push((token, due));
                });
                file_moved(&mut levels[..level], moving, tick);
            }
        }
        let due = levels[0].earliest() == tick;
        if due {
            levels[0].take_first(|token, _| batch.push(token, 0));
        }
        due
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

    /// The level of a part of a bucket, and its number in that level. `part` counts through all levels.
    fn locate(&self, mut part: usize) -> (usize, usize) {
        let mut level = 0;
        while part >= PARTS * self.levels[level].size() {
            part -= PARTS * self.levels[level].size();
            level += 1;
        }
        (level, part)
    }
}

/// Files timeouts where they would lie if they had always been in these levels: each in the coarsest
/// level whose bucket for its tick has not expired by `clock`.
fn file_moved(levels: &mut [Level], moved: &mut Vec<(Token, u64)>, clock: u64) {
    for (token, tick) in moved.drain(..) {
        let waits = |level: &Level| level.start_of(tick) > clock;
        let level = levels.iter().rposition(waits).unwrap_or(0);
        levels[level].file(tick, token, Arrival::MovedDown);
    }
    moved.shrink_to(IDLE_CAPACITY);
}

impl<L: Layout> TokenWheel for Cascade<L> {
    /// O(m) for m levels, apart from growth of the bucket.
    #[inline]
    fn insert(&mut self, tick: u64, token: Token) {
        let tick = tick.max(self.current_tick).min(self.reach());
        let level = loop {
            match self.levels.iter().position(|level| level.reaches(tick)) {
                Some(level) => break level,
                None => self.make_level(),
            }
        };
        self.levels[level].file(tick, token, Arrival::Direct);
    }

    fn reach(&self) -> u64 {
        self.levels[0].begin.saturating_add(L::REACH)
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
        self.advance(now);
        self.current_tick = now + 1;
        file_moved(&mut self.levels, &mut self.later, now);
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
    /// past the sweep. The last step also checks those that wait for the end of the pass.
    fn sweep(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let (mut position, parts) = (self.sweep_position, PARTS * self.bucket_count());
        let ended = position.resume(parts, budget, |unit, rest, budget| {
            let (level, part) = self.locate(parts - 1 - unit);
            self.levels[level].sweep(part, rest, budget, &mut keep)
        });
        self.sweep_position = position;
        if ended {
            self.later.retain(|&(token, _)| keep(token));
        }
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
