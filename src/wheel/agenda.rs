//! The agenda: the tokens that are due, in the order of ticks.
//!
//! Most of them come out of the structure in this order, one bucket after the other. After a stall,
//! two kinds of timeouts have to wait for their turn:
//! - Timeouts that were pushed back. They come out at their previous tick, but are due at a later
//!   tick that has come too.
//! - Timeouts that share a bucket with earlier ones. They come out with these, but are due at a
//!   later tick.
//!
//! A caller may stop in the middle of a tick. The next `pop` continues there.

use super::sorted::Sorted;
use super::structure::{Batch, TokenWheel};
use super::token::{Due, Token};

#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The tokens that are due in `tick`. `popped` counts those that were popped.
    batch: Batch,
    tick: u64,
    popped: usize,
    /// Tokens that wait for their turn.
    waiting: Sorted,
}

impl Agenda {
    /// The tick of the next token here.
    pub(super) fn next_tick(&self) -> Option<u64> {
        let batch = self.batch.get(self.popped).map(|_| self.tick);
        batch.into_iter().chain(self.waiting.next_tick()).min()
    }

    /// Pops the next token that is due up to `now`. Returns `None` if there is none.
    #[inline]
    pub(crate) fn pop(&mut self, structure: &mut impl TokenWheel, now: u64) -> Option<Due> {
        if self.waiting.is_empty() {
            if let Some(token) = self.batch.get(self.popped) {
                self.popped += 1;
                return Some(Due { tick: self.tick, token });
            }
        }
        self.pop_otherwise(structure, now)
    }

    fn pop_otherwise(&mut self, structure: &mut impl TokenWheel, now: u64) -> Option<Due> {
        while self.batch.get(self.popped).is_none() && self.refill(structure, now) {}
        let tick = self.next_tick()?;
        match self.batch.get(self.popped).filter(|_| tick == self.tick) {
            Some(token) => {
                self.popped += 1;
                Some(Due { tick, token })
            }
            None => self.waiting.pop(),
        }
    }

    /// Takes the next batch. Returns false if the structure has no more due tokens.
    #[cold]
    fn refill(&mut self, structure: &mut impl TokenWheel, now: u64) -> bool {
        let Self { batch, waiting, .. } = self;
        batch.clear();
        self.popped = 0;
        let next = structure.take_next(now, batch, |due| waiting.push(due));
        self.tick = next.unwrap_or_default();
        next.is_some()
    }

    /// Whether no token of a batch waits here, so that the structure has handed out no later tick.
    pub(super) fn has_no_batch(&self) -> bool {
        self.batch.get(self.popped).is_none()
    }

    /// Pushes a token that is due in a later tick, which has come too.
    pub(crate) fn push(&mut self, tick: u64, token: Token) {
        self.waiting.push(Due { tick, token });
    }

    /// Frees most of the memory. All tokens were popped.
    pub(super) fn free(&mut self) {
        self.batch.clear();
        self.popped = 0;
    }
}

#[cfg(test)]
mod tests;
