//! What is due in one pass, in the order of ticks.
//!
//! Mostly it comes out of the wheel as it is: bucket by bucket, or as a list after a stall. But a
//! timeout that was pushed back comes out at its former tick, and after a stall its new tick may be
//! due as well: it then waits here for its turn among the others.

use crate::wheel::{Batch, Core, Due, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Default)]
pub(crate) struct Agenda {
    /// A bucket in which all is due in this tick, and how much of it has been popped.
    batch: Batch,
    tick: u64,
    popped: usize,
    /// What the wheel had due after its whole buckets.
    list: Vec<Due>,
    listed: usize,
    /// The wheel has nothing more that is due in this pass.
    complete: bool,
    /// Tick, order of arrival, token.
    moved: BinaryHeap<Reverse<(u64, u64, Token)>>,
    arrivals: u64,
}

impl Agenda {
    /// What comes next of all that is due up to `now`, in this pass.
    #[inline]
    pub(crate) fn pop(&mut self, wheel: &mut impl Core, now: u64) -> Option<Due> {
        if self.moved.is_empty() {
            if let Some(token) = self.batch.get(self.popped) {
                self.popped += 1;
                return Some(Due { tick: self.tick, token });
            }
        }
        self.pop_otherwise(wheel, now)
    }

    fn pop_otherwise(&mut self, wheel: &mut impl Core, now: u64) -> Option<Due> {
        let next = match self.peek() {
            None if !self.complete => self.refill(wheel, now),
            next => next,
        };
        if self.moved.is_empty() {
            self.advance();
            return next;
        }
        self.pop_earlier(next)
    }

    fn peek(&self) -> Option<Due> {
        match self.batch.get(self.popped) {
            Some(token) => Some(Due { tick: self.tick, token }),
            None => self.list.get(self.listed).copied(),
        }
    }

    /// Goes past what `peek` has shown.
    fn advance(&mut self) {
        if self.batch.get(self.popped).is_some() {
            self.popped += 1;
        } else {
            self.listed += 1;
        }
    }

    #[cold]
    fn refill(&mut self, wheel: &mut impl Core, now: u64) -> Option<Due> {
        self.batch.clear();
        self.popped = 0;
        if let Some(tick) = wheel.take_whole_bucket(now, &mut self.batch) {
            self.tick = tick;
        } else {
            wheel.take_due(now, &mut self.list);
            self.complete = true;
        }
        self.peek()
    }

    fn pop_earlier(&mut self, next: Option<Due>) -> Option<Due> {
        let tick = next.map_or(u64::MAX, |due| due.tick);
        match self.moved.peek() {
            Some(&Reverse((moved, _, token))) if moved < tick => {
                self.moved.pop();
                Some(Due { tick: moved, token })
            }
            _ => {
                self.advance();
                next
            }
        }
    }

    /// Has it come up again at a later tick of this pass.
    pub(crate) fn postpone(&mut self, tick: u64, token: Token) {
        self.arrivals += 1;
        self.moved.push(Reverse((tick, self.arrivals, token)));
    }

    /// Empties the agenda for the next pass, and keeps memory for `capacity` at most.
    pub(crate) fn clear(&mut self, capacity: usize) {
        self.batch.clear();
        self.popped = 0;
        self.list.clear();
        self.list.shrink_to(capacity);
        self.listed = 0;
        self.complete = false;
        self.moved = BinaryHeap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Hashed;

    fn token(index: u32) -> Token {
        Token { index, version: 0 }
    }

    fn filled(ticks: &[u64]) -> Hashed {
        let mut wheel = Hashed::new(8).unwrap();
        ticks.iter().for_each(|&tick| wheel.insert(tick, token(tick as u32 * 10)));
        wheel
    }

    /// After those of that tick which the wheel had, and in the order in which they came up.
    #[test]
    fn what_was_moved_to_one_tick_comes_last_and_in_order() {
        let (mut wheel, mut agenda) = (filled(&[4, 4, 6]), Agenda::default());
        for index in [3, 1, 2] {
            agenda.postpone(4, token(index));
        }
        let popped = std::iter::from_fn(|| agenda.pop(&mut wheel, 100));
        let order: Vec<_> = popped.map(|due| (due.tick, due.token.index)).collect();
        assert_eq!(order, [(4, 40), (4, 40), (4, 3), (4, 1), (4, 2), (6, 60)]);
    }

    /// In ticks 1 and 2 a timeout is found to have been pushed back, to 9 and 4.
    fn order(wheel: &mut Hashed, now: u64) -> Vec<(u64, u32)> {
        let mut agenda = Agenda::default();
        let mut order = Vec::new();
        while let Some(Due { tick, token }) = agenda.pop(wheel, now) {
            match token.index {
                10 if tick == 1 => agenda.postpone(9, token),
                20 if tick == 2 => agenda.postpone(4, token),
                index => order.push((tick, index)),
            }
        }
        order
    }

    #[test]
    fn what_was_moved_comes_in_its_turn() {
        let expected = [(3, 30), (4, 20), (5, 50), (9, 10)];
        assert_eq!(order(&mut filled(&[1, 2, 3, 5]), 7), expected);
        assert_eq!(order(&mut filled(&[1, 2, 3, 5]), 100), expected, "after a stall");
        // Tick 10 lies in the bucket of tick 2, which is therefore not taken whole.
        let mut wheel = filled(&[1, 2, 3, 5, 10]);
        assert_eq!(order(&mut wheel, 7), expected);
        assert_eq!(order(&mut wheel, 10), [(10, 100)]);
    }
}
