//! The wheel of the values that are not due in the present tick.
//!
//! A removed value leaves a *dead* entry. A value whose deadline has moved on keeps its entry under the
//! former tick, and is filed again when that tick comes.

use super::entry::Entry;
use crate::base::slab::Slab;
use crate::wheel::{Agenda, Due, Hierarchical, Token, TokenWheel};

/// A level of so many buckets has 2 KiB. Three levels reach 32,767 ticks.
const BUCKETS: usize = 32;

/// Up to this many dead entries are never worth a sweep.
const DEAD_ALLOWED: usize = 64;

pub(super) struct Distant {
    wheel: Hierarchical,
    agenda: Agenda,
    /// The number of dead entries in the wheel.
    dead: usize,
}

impl Distant {
    /// An empty wheel whose present tick is `tick`. `None` if memory is refused.
    pub(super) fn starting_at(tick: u64) -> Option<Self> {
        let wheel = Hierarchical::with_buckets(BUCKETS).ok()?;
        let mut new = Self { wheel, agenda: Agenda::default(), dead: 0 };
        new.advance(tick, |_, _| None);
        Some(new)
    }

    /// Whether the wheel accepts a value of this tick. It refuses those up to the present tick.
    #[inline]
    pub(super) fn accepts(&self, tick: u64) -> bool {
        tick >= self.wheel.current_tick()
    }

    #[inline]
    pub(super) fn file(&mut self, tick: u64, token: Token) {
        self.wheel.insert(tick, token);
    }

    /// A tick before which no value here is due. `None` if there is no entry.
    pub(super) fn next_tick(&self) -> Option<u64> {
        self.wheel.next_expiry()
    }

    /// Moves the present to `tick`. `leave` gets each entry up to that tick. It returns the tick of a
    /// value that must be filed again.
    pub(super) fn advance(
        &mut self,
        tick: u64,
        mut leave: impl FnMut(Token, &mut usize) -> Option<u64>,
    ) {
        if !self.accepts(tick) {
            return;
        }
        while let Some(Due { token, .. }) = self.agenda.pop(&mut self.wheel, tick) {
            if let Some(later) = leave(token, &mut self.dead) {
                self.wheel.insert(later, token);
            }
        }
        self.agenda.clear();
    }

    /// Counts an entry as dead. Sweeps the dead ones out if they outnumber the values and the buckets.
    #[inline]
    pub(super) fn bury<T>(&mut self, values: &Slab<Entry<T>>) {
        self.dead += 1;
        // A sweep visits every bucket and every entry. So it waits until it can drop as many.
        if self.dead > DEAD_ALLOWED + values.used() {
            self.sweep(values);
        }
    }

    #[cold]
    fn sweep<T>(&mut self, values: &Slab<Entry<T>>) {
        if self.dead > values.used() + self.wheel.bucket_count() {
            let is_live = |token: Token| {
                values.get(token.index).is_some_and(|entry| entry.is_named_by(token))
            };
            self.wheel.sweep(usize::MAX, is_live);
            self.dead = 0;
        }
    }
}
