//! The agenda: the tokens that are due, in the order of ticks.
//!
//! Most of them come out of the structure in this order, one bucket after the other. After a stall,
//! two kinds of timeouts have to wait for their turn:
//! - Timeouts that were pushed back. They come out at their former tick, but are due at a later
//!   tick that has come too.
//! - Timeouts that share a bucket with earlier ones. They come out with these, but are due at a
//!   later tick.
//!
//! A caller may stop in the middle of a tick. The next `pop` continues there.

use super::structure::{Batch, TokenWheel};
use super::token::{Due, Token};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The tokens that are due in `tick`. `popped` counts those that were popped.
    batch: Batch,
    tick: u64,
    popped: usize,
    /// Tokens that wait for their turn, by tick, in the order of arrival. No list is empty.
    waiting: BTreeMap<u64, VecDeque<Token>>,
}

impl Agenda {
    /// The token that comes `distance` after the next one, if both are of one tick.
    #[inline]
    pub(crate) fn ahead(&self, distance: usize) -> Option<Token> {
        self.batch.get(self.popped + distance)
    }

    /// The tick of the next token here.
    pub(super) fn next_tick(&self) -> Option<u64> {
        let batch = self.batch.get(self.popped).map(|_| self.tick);
        batch.into_iter().chain(self.waiting.keys().next().copied()).min()
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
        let next = self.batch.get(self.popped);
        let before = |tick: u64| next.is_none() || tick < self.tick;
        if let Some(mut waiting) = self.waiting.first_entry().filter(|first| before(*first.key())) {
            let (tick, token) = (*waiting.key(), waiting.get_mut().pop_front()?);
            if waiting.get().is_empty() {
                waiting.remove();
            }
            return Some(Due { tick, token });
        }
        self.popped += usize::from(next.is_some());
        next.map(|token| Due { tick: self.tick, token })
    }

    /// Takes the next batch. Returns false if the structure has no more due tokens.
    #[cold]
    fn refill(&mut self, structure: &mut impl TokenWheel, now: u64) -> bool {
        let Self { batch, waiting, .. } = self;
        batch.clear();
        self.popped = 0;
        let next = structure.take_next(now, batch, |due| wait(waiting, due));
        self.tick = next.unwrap_or_default();
        next.is_some()
    }

    /// Requeues `token` for a later tick that has come too.
    pub(crate) fn postpone(&mut self, tick: u64, token: Token) {
        wait(&mut self.waiting, Due { tick, token });
    }

    /// Forgets all tokens, and frees most of the memory.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.popped = 0;
        self.waiting.clear();
    }
}

fn wait(waiting: &mut BTreeMap<u64, VecDeque<Token>>, Due { tick, token }: Due) {
    waiting.entry(tick).or_default().push_back(token);
}

#[cfg(test)]
mod tests;
