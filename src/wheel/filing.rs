//! A filing holds all tokens of one owner, and counts their entries. A token is in a bucket of the *structure*; or on
//! the *agenda*, if it is due.
//!
//! An owner files tokens here. It alone knows what a token stands for. If it ends or moves what a
//! token stands for, the entry stays where it is. Such an entry is *dead*, or comes out too early.
//! The owner says so when its token is met, by a [`Standing`].
//!
//! A structure reaches only a certain number of ticks ahead. A token that is due later comes out at the end of its
//! reach, and is filed again. It can then come after a younger one of its tick (see `values/in_order`).
//!
//! The owner also knows how many tokens are live. All other entries are dead, until a sweep drops them (see `sweep`).

use super::agenda::Agenda;
use super::confirm::{NextLive, Standing};
use super::structure::{Exact, TokenWheel};
use super::token::{Due, Token};

#[derive(Debug)]
pub(crate) struct Filing<W> {
    pub(super) wheel: W,
    pub(super) agenda: Agenda,
    /// The number of entries, in the wheel and on the agenda.
    pub(super) entries: usize,
}

impl<W: TokenWheel> Filing<W> {
    pub(crate) fn new(wheel: W) -> Self {
        Self { wheel, agenda: Agenda::default(), entries: 0 }
    }

    /// Files a token under `tick`, or under the current tick if `tick` is overdue. It comes out sooner
    /// if the wheel does not reach that tick.
    #[inline]
    pub(crate) fn insert(&mut self, tick: u64, token: Token) {
        self.entries += 1;
        self.wheel.insert(tick, token);
    }

    /// Pops the next token that is due up to `now`. The tokens come in the order of ticks. `None`
    /// ends the pass; a caller may stop before that, and continue later.
    #[inline]
    pub(crate) fn pop(&mut self, now: u64) -> Option<Due> {
        let due = self.agenda.pop(&mut self.wheel, now)?;
        self.entries -= 1;
        Some(due)
    }

    /// Takes out all tokens of the next tick up to `now` that has any, and returns the tick. `None` ends the
    /// pass.
    pub(crate) fn take_tick(&mut self, now: u64, tokens: &mut Vec<Token>) -> Option<u64> {
        let Due { tick, token } = self.pop(now)?;
        tokens.push(token);
        while self.agenda.next_tick() == Some(tick) {
            tokens.push(self.pop(now)?.token);
        }
        Some(tick)
    }

    /// The number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Files a token in the pass up to `now`, under a tick after that of the token that was popped last. Within
    /// its tick, it has no guaranteed order.
    ///
    /// After a stall, most tokens may be due later in the pass. The wheel takes them in O(1), as long as it has
    /// not handed out a later tick.
    pub(crate) fn insert_in_pass(&mut self, tick: u64, token: Token, now: u64) {
        let Self { wheel, agenda, entries, .. } = self;
        *entries += 1;
        let in_reach = wheel.current_tick() <= tick && tick <= wheel.reach();
        if tick > now || in_reach && agenda.ahead(0).is_none() {
            wheel.insert(tick, token);
        } else {
            agenda.push(tick, token);
        }
    }

    /// A tick before which no token is due. It may be too early, but it is never too late.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.agenda.next_tick().into_iter().chain(self.wheel.next_expiry()).min()
    }

    /// The next tick to expire.
    pub(crate) fn current_tick(&self) -> u64 {
        self.wheel.current_tick()
    }

    /// Continues the sweep where the last call ended: checks about `budget` entries of the wheel and
    /// drops those that `keep` denies. Returns true at the end of the sweep.
    pub(crate) fn sweep(&mut self, budget: usize, mut keep: impl FnMut(Token) -> bool) -> bool {
        let Self { wheel, entries, .. } = self;
        wheel.sweep(budget, |token| {
            let kept = keep(token);
            *entries -= usize::from(!kept);
            kept
        })
    }
}

impl<W: Exact> Filing<W> {
    /// Finds the earliest live entry up to tick `last`, and makes `next_expiry` exact up to `last`.
    /// Drops dead entries and files early ones again on the way. `Unknown` if a pass has not ended.
    pub(crate) fn confirm_next(
        &mut self,
        last: u64,
        budget: usize,
        mut check: impl FnMut(Due) -> Standing,
    ) -> NextLive {
        if self.agenda.next_tick().is_some() {
            return NextLive::Unknown;
        }
        self.agenda.free(); // a pass that stopped at the last token has kept its memory
        let Self { wheel, entries, .. } = self;
        wheel.confirm_next(last, budget, |due| {
            let standing = check(due);
            *entries -= usize::from(standing == Standing::Dead);
            standing
        })
    }
}

#[cfg(test)]
mod tests;
