//! What is due in one pass, in the order of ticks.
//!
//! Mostly it is the list as it came out of the wheel. But a timeout that was pushed back comes out
//! at its former tick, and after a stall its new tick may be due as well: it then waits here for
//! its turn among the others.

use crate::wheel::{Due, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Default)]
pub(crate) struct Agenda {
    due: Vec<Due>,
    next: usize,
    /// Tick, order of arrival, token.
    moved: BinaryHeap<Reverse<(u64, u64, Token)>>,
    arrivals: u64,
}

impl Agenda {
    /// Where the wheel puts what is due; only between `clear` and the first `pop`.
    pub(crate) fn list(&mut self) -> &mut Vec<Due> {
        &mut self.due
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Due> {
        if self.moved.is_empty() {
            return self.pop_listed();
        }
        self.pop_earlier()
    }

    #[inline]
    fn pop_listed(&mut self) -> Option<Due> {
        let due = self.due.get(self.next).copied()?;
        self.next += 1;
        Some(due)
    }

    #[cold]
    fn pop_earlier(&mut self) -> Option<Due> {
        let listed = self.due.get(self.next).map_or(u64::MAX, |due| due.tick);
        match self.moved.peek() {
            Some(&Reverse((tick, _, token))) if tick < listed => {
                self.moved.pop();
                Some(Due { tick, token })
            }
            _ => self.pop_listed(),
        }
    }

    /// Has it come up again at a later tick of this pass.
    pub(crate) fn postpone(&mut self, tick: u64, token: Token) {
        self.arrivals += 1;
        self.moved.push(Reverse((tick, self.arrivals, token)));
    }

    /// Empties the agenda, and keeps memory for `capacity` at most.
    pub(crate) fn clear(&mut self, capacity: usize) {
        self.due.clear();
        self.due.shrink_to(capacity);
        self.next = 0;
        self.moved = BinaryHeap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_comes_in_its_turn() {
        let token = |index| Token { index, version: 0 };
        let mut agenda = Agenda::default();
        agenda
            .list()
            .extend([(1, 10), (2, 20), (5, 50)].map(|(t, i)| Due { tick: t, token: token(i) }));
        let mut order = Vec::new();
        while let Some(Due { tick, token }) = agenda.pop() {
            match token.index {
                10 if tick == 1 => agenda.postpone(9, token),
                20 if tick == 2 => agenda.postpone(4, token),
                index => order.push((tick, index)),
            }
        }
        assert_eq!(order, [(4, 20), (5, 50), (9, 10)]);
    }
}
