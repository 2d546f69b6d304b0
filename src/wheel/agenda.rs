//! The agenda of one pass: all due timeouts in the order of ticks.
//!
//! Most of them come out of the structure in this order, one bucket after the other. After a stall,
//! two kinds of timeouts have to wait for their turn:
//! - Timeouts that were pushed back. They come out at their former tick, but are due at a later
//!   tick of the same pass.
//! - Timeouts that share a bucket with earlier ones. They come out with these, but are due at a
//!   later tick.

use super::structure::{Batch, TokenWheel};
use super::token::{Due, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The tokens that are due in `tick`. `popped` counts those that were popped.
    batch: Batch,
    tick: u64,
    popped: usize,
    /// Whether the structure has no more due tokens in this pass.
    complete: bool,
    /// Tokens that wait for their turn: tick, order of arrival, token.
    waiting: BinaryHeap<Reverse<(u64, u64, Token)>>,
    arrivals: u64,
}

impl Agenda {
    /// The token that comes `distance` after the next one, if both are of one tick.
    #[inline]
    pub(crate) fn ahead(&self, distance: usize) -> Option<Token> {
        self.batch.get(self.popped + distance)
    }

    /// Pops the next token that is due up to `now`. `None` ends the pass.
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
        while self.peek().is_none() && !self.complete {
            self.refill(structure, now);
        }
        let next = self.peek();
        let tick = next.map_or(u64::MAX, |due| due.tick);
        match self.waiting.peek() {
            Some(&Reverse((waited_for, _, token))) if waited_for < tick => {
                self.waiting.pop();
                Some(Due { tick: waited_for, token })
            }
            _ => {
                self.popped += usize::from(next.is_some());
                next
            }
        }
    }

    fn peek(&self) -> Option<Due> {
        self.batch.get(self.popped).map(|token| Due { tick: self.tick, token })
    }

    #[cold]
    fn refill(&mut self, structure: &mut impl TokenWheel, now: u64) {
        let Self { batch, waiting, arrivals, .. } = self;
        batch.clear();
        let next = structure.take_next(now, batch, |due| wait(waiting, arrivals, due));
        self.popped = 0;
        self.tick = next.unwrap_or_default();
        self.complete = next.is_none();
    }

    /// Requeues `token` for a later tick of this pass.
    pub(crate) fn postpone(&mut self, tick: u64, token: Token) {
        wait(&mut self.waiting, &mut self.arrivals, Due { tick, token });
    }

    /// Empties the agenda for the next pass, and frees most of its memory.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.popped = 0;
        self.complete = false;
        self.waiting = BinaryHeap::new();
    }
}

fn wait(waiting: &mut BinaryHeap<Reverse<(u64, u64, Token)>>, arrivals: &mut u64, due: Due) {
    *arrivals += 1;
    waiting.push(Reverse((due.tick, *arrivals, due.token)));
}

#[cfg(test)]
mod tests;
