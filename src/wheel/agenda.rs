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
    /// The number of tokens that were not popped.
    pub(super) fn len(&self) -> usize {
        self.batch.len() - self.popped + self.waiting.len()
    }

    /// The tick of the next token here.
    pub(super) fn next_tick(&self) -> Option<u64> {
        let batch = self.ahead(0).map(|_| self.tick);
        batch.into_iter().chain(self.waiting.next_tick()).min()
    }

    /// Pops the next token that is due up to `now`. Returns `None` if there is none.
    #[inline]
    pub(crate) fn pop(&mut self, structure: &mut impl TokenWheel, now: u64) -> Option<Due> {
        if self.waiting.next_tick().is_none() {
            if let Some(token) = self.pop_of(self.tick) {
                return Some(Due { tick: self.tick, token });
            }
        }
        self.pop_otherwise(structure, now)
    }

    /// Pops the next token of the batch, if it is due in `tick`.
    #[inline]
    pub(super) fn pop_of(&mut self, tick: u64) -> Option<Token> {
        let token = self.ahead(0).filter(|_| self.tick == tick)?;
        self.popped += 1;
        Some(token)
    }

    /// The token that comes `distance` tokens after the next one, if the batch has it.
    #[inline]
    pub(super) fn ahead(&self, distance: usize) -> Option<Token> {
        self.batch.get(self.popped + distance)
    }

    #[inline(never)]
    fn pop_otherwise(&mut self, structure: &mut impl TokenWheel, now: u64) -> Option<Due> {
        while self.ahead(0).is_none() && self.refill(structure, now) {}
        let tick = self.next_tick()?;
        match self.pop_of(tick) {
            Some(token) => Some(Due { tick, token }),
            None => self.waiting.pop(),
        }
    }

    /// Takes the next batch. Returns false if the structure has no more due tokens.
    #[cold]
    fn refill(&mut self, structure: &mut impl TokenWheel, now: u64) -> bool {
        self.free();
        let Self { batch, waiting, .. } = self;
        let next = structure.take_next(now, batch, |due| waiting.push(due));
        self.tick = next.unwrap_or_default();
        next.is_some()
    }

    /// Pushes a token that is due in a later tick, which has come too.
    pub(crate) fn push(&mut self, tick: u64, token: Token) {
        self.waiting.push(Due { tick, token });
    }

    /// Forgets the batch, and frees most of its memory. All of its tokens were popped.
    pub(super) fn free(&mut self) {
        self.batch.clear();
        self.popped = 0;
    }
}

#[cfg(test)]
mod tests;
