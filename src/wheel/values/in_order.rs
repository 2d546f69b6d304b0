//! A filing whose tokens come out exactly in their ticks, and within a tick in the order of insertion.
//!
//! A structure reaches only so many ticks ahead. A token that is due later comes out at the end of its reach, and is filed
//! again. So it may come after a younger one of its tick. Here such tokens wait apart, in a sorted map, until their tick
//! comes into reach. Until then, nobody can file a younger one under that tick.

use crate::wheel::earliest::NOTHING;
use crate::wheel::filing::Filing;
use crate::wheel::sorted::Sorted;
use crate::wheel::structure::TokenWheel;
use crate::wheel::token::{Due, Token};

#[derive(Debug)]
pub(in crate::wheel) struct InOrder<W> {
    pub(in crate::wheel) filing: Filing<W>,
    /// Tokens that wait apart, because the wheel does not reach their ticks.
    far: Sorted,
}

impl<W: TokenWheel> InOrder<W> {
    pub(in crate::wheel) fn new(wheel: W) -> Self {
        Self { filing: Filing::new(wheel), far: Sorted::default() }
    }

    #[inline]
    pub(in crate::wheel) fn insert(&mut self, tick: u64, token: Token) {
        // During a pass, the wheel can reach a tick whose older tokens still wait apart.
        let is_far = !self.far.is_empty() && self.far.next_tick() <= Some(tick);
        if tick <= self.filing.wheel.reach() && !is_far {
            return self.filing.insert(tick, token);
        }
        self.far.push(Due { tick, token });
    }

    /// Pops the next token, as [`Filing::pop`] does.
    #[inline]
    pub(in crate::wheel) fn pop(&mut self, now: u64) -> Option<Due> {
        self.filing.pop(now).or_else(|| self.pop_far(now))
    }

    /// Pops the next token that waits apart, when the wheel has no more due tokens. If it is not due, files
    /// the tokens that have come into reach.
    fn pop_far(&mut self, now: u64) -> Option<Due> {
        let next = self.far.next_tick()?;
        if next <= now.min(NOTHING - 1) {
            return self.far.pop();
        }
        while self.far.next_tick().is_some_and(|tick| tick <= self.filing.wheel.reach()) {
            let Due { tick, token } = self.far.pop()?;
            self.filing.insert(tick, token);
        }
        None
    }

    /// A tick before which no token is due.
    pub(in crate::wheel) fn next_expiry(&self) -> Option<u64> {
        let next = self.far.next_tick().into_iter().chain(self.filing.next_expiry()).min();
        next.filter(|&tick| tick != NOTHING)
    }

    pub(in crate::wheel) fn entries(&self) -> usize {
        self.filing.entries() + self.far.len()
    }

    /// Sweeps as [`Filing::sweep`] does. The last step also checks all tokens that wait apart.
    pub(in crate::wheel) fn sweep(
        &mut self,
        budget: usize,
        mut keep: impl FnMut(Token) -> bool,
    ) -> bool {
        let ended = self.filing.sweep(budget, &mut keep);
        if ended {
            self.far.retain(keep);
        }
        ended
    }
}
