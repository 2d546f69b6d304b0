//! The wheel of the values that are not due in the present tick.
//!
//! A removed value leaves a *dead* entry. A value whose deadline has moved on keeps its entry under the
//! previous tick, and is filed again when that tick comes.

use super::entry::Entry;
use crate::wheel::slab::Slab;
use crate::wheel::{Filing, Hierarchical, Standing, Token, is_sweep_worth_it};

/// A level of so many buckets has 2 KiB. Three levels reach 32,767 ticks.
const BUCKETS: usize = 32;

/// Up to this many dead entries are never worth a sweep. Most queues have as many buckets.
const DEAD_ALLOWED: usize = 3 * BUCKETS;

pub(super) struct Distant(Filing<Hierarchical>);

impl Distant {
    /// An empty wheel whose present tick is `tick`. `None` if memory is refused.
    pub(super) fn starting_at(tick: u64) -> Option<Self> {
        let wheel = Hierarchical::with_buckets(BUCKETS).ok()?;
        let mut new = Self(Filing::new(wheel));
        new.advance(tick, |_| Standing::Dead);
        Some(new)
    }

    /// Whether the wheel accepts a value of this tick. It refuses those up to the present tick.
    #[inline]
    pub(super) fn accepts(&self, tick: u64) -> bool {
        tick >= self.0.current_tick()
    }

    #[inline]
    pub(super) fn file(&mut self, tick: u64, token: Token) {
        self.0.insert(tick, token);
    }

    /// A tick before which no value here is due. `None` if there is no entry.
    pub(super) fn next_tick(&self) -> Option<u64> {
        self.0.next_expiry()
    }

    /// Moves the present to `tick`. `leave` gets each entry up to that tick, and says whether its value
    /// leaves the wheel.
    pub(super) fn advance(&mut self, tick: u64, mut leave: impl FnMut(Token) -> Standing) {
        while let Some(due) = self.0.pop(tick) {
            if let Standing::Later(later) = leave(due.token) {
                self.0.insert_in_pass(later, due.token, tick);
            }
        }
    }

    /// Sweeps the dead entries out if that is worth its cost. Called when an entry has died.
    #[inline]
    pub(super) fn sweep_if_worth_it<T>(&mut self, values: &Slab<Entry<T>>) {
        if is_sweep_worth_it(self.0.entries(), values.used(), DEAD_ALLOWED) {
            let is_live = |token: Token| {
                values.get(token.index).is_some_and(|entry| entry.is_named_by(token))
            };
            self.0.sweep(usize::MAX, is_live);
        }
    }
}
