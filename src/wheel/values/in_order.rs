//! A filing whose tokens come out exactly in their ticks, and within a tick in the order of insertion. They come out in
//! *passes*: the expiry of everything that is due up to a tick. The caller may stop a pass after any token, and insert
//! others before it goes on. The structure knows the last tick of its pass, so this tick does not change.
//!
//! Two kinds of tokens wait *apart*, in a sorted map:
//! - A structure reaches only a certain number of ticks ahead. A token that is due later would come out at the end of
//!   its reach, after a younger one of its tick. It waits until its tick comes into reach.
//! - During a pass, the structure is given only ticks after the pass. A token that is filed for an earlier tick waits
//!   until this tick is expired.
//!
//! During a pass, a structure that is late is given nothing. It counts delays from its own time, which is that of
//! the end of the pass only when the pass has ended. To tell it the time before would make overdue what the pass has
//! not expired yet.
//!
//! Invariant: the tokens of a tick that wait apart are younger than those in the filing.

use crate::wheel::earliest::NOTHING;
use crate::wheel::filing::Filing;
use crate::wheel::sorted::Sorted;
use crate::wheel::structure::TokenWheel;
use crate::wheel::token::{Due, Token};

#[derive(Debug)]
pub(in crate::wheel) struct InOrder<W> {
    pub(in crate::wheel) filing: Filing<W>,
    apart: Sorted,
    /// The next token of the filing, if it was popped and one that waits apart comes before it.
    next: Option<Due>,
    /// The pass that has begun and not ended.
    pass: Option<Pass>,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    /// The last tick of this pass.
    now: u64,
    /// The tick that is being expired. At first, the tick at which the pass began.
    tick: u64,
    /// The last time that was told.
    told: u64,
}

impl<W: TokenWheel> InOrder<W> {
    pub(in crate::wheel) fn new(wheel: W) -> Self {
        Self { filing: Filing::new(wheel), apart: Sorted::default(), next: None, pass: None }
    }

    /// Tells the structure the time. Until a pass ends, its last tick is the current one.
    #[inline]
    pub(in crate::wheel) fn tell(&mut self, now: u64) {
        match &mut self.pass {
            None => self.filing.wheel.tell(now),
            Some(pass) => pass.told = now.max(pass.told),
        }
    }

    /// Files a token. One that is overdue in a pass belongs to the tick that is being expired.
    #[inline]
    pub(in crate::wheel) fn insert(&mut self, tick: u64, token: Token) {
        if let Some(pass) = self.pass.filter(|pass| tick <= pass.now || W::IS_LATE) {
            return self.apart.push(Due { tick: tick.max(pass.tick), token });
        }
        // After the last tick, an overdue token has no tick left in which it could come out.
        let tick = if self.filing.current_tick() == NOTHING { NOTHING } else { tick };
        // During a pass, the structure can reach a tick whose older tokens still wait apart.
        let may_be_apart = self.apart.next_tick().is_some_and(|next| next <= tick);
        if tick > self.filing.wheel.reach() || may_be_apart && self.apart.holds(tick) {
            self.apart.push(Due { tick, token });
        } else {
            self.filing.insert(tick, token);
        }
    }

    /// Pops the next token that is due up to `now`. An unfinished pass comes first. `None` ends the pass.
    #[inline]
    pub(in crate::wheel) fn pop(&mut self, now: u64) -> Option<Due> {
        // Nothing comes before the other tokens of the tick that is being expired.
        if let Some(Pass { tick, .. }) = self.pass {
            if let Some(token) = self.filing.agenda.pop_of(tick) {
                self.filing.entries -= 1;
                return Some(Due { tick, token });
            }
        }
        self.pop_otherwise(now)
    }

    #[inline(never)]
    fn pop_otherwise(&mut self, now: u64) -> Option<Due> {
        let now = now.min(NOTHING - 1);
        loop {
            let current = self.filing.current_tick();
            let pass = *self.pass.get_or_insert(Pass { now, tick: current, told: now });
            if let Some(due) = self.pop_up_to(pass.now) {
                self.pass = Some(Pass { tick: due.tick, ..pass });
                return Some(due);
            }
            self.end_pass(now);
            if pass.now >= now {
                return None;
            }
        }
    }

    /// Pops the next token up to `now`. Of those of one tick, the filing's come first.
    #[inline]
    fn pop_up_to(&mut self, now: u64) -> Option<Due> {
        let next = self.next.take().or_else(|| self.filing.pop(now));
        let apart = self.apart.next_tick().filter(|&tick| tick <= now);
        if apart.is_none() || next.is_some_and(|next| Some(next.tick) <= apart) {
            return next;
        }
        self.next = next;
        self.apart.pop()
    }

    /// Files the tokens that have come into reach, and those that a structure was not given during the pass. `now` is the
    /// time of the next pass.
    fn end_pass(&mut self, now: u64) {
        self.pass.take().into_iter().for_each(|pass| self.filing.wheel.tell(pass.told.min(now)));
        while self.apart.next_tick().is_some_and(|tick| tick <= self.filing.wheel.reach()) {
            let Some(Due { tick, token }) = self.apart.pop() else { return };
            self.filing.insert(tick, token);
        }
    }

    /// Whether a pass has begun and not ended.
    pub(super) fn is_passing(&self) -> bool {
        self.pass.is_some()
    }

    /// The next tick to expire. During a pass, the tick that is being expired.
    pub(super) fn current_tick(&self) -> u64 {
        self.pass.map_or_else(|| self.filing.current_tick(), |pass| pass.tick)
    }

    /// A tick before which no token is due. Until a pass has ended, it is not after the last tick of that pass.
    pub(in crate::wheel) fn next_expiry(&self) -> Option<u64> {
        let filed = [self.apart.next_tick(), self.filing.next_expiry()];
        let passing = [self.next.map(|due| due.tick), self.pass.map(|pass| pass.now)];
        let next = filed.into_iter().chain(passing).flatten().min();
        next.filter(|&tick| tick != NOTHING)
    }

    /// The number of entries that a sweep reaches. Those on the agenda are left to the pass: if they counted, each
    /// removal during the pass of a dead batch would sweep in vain.
    pub(in crate::wheel) fn entries(&self) -> usize {
        self.filing.entries() - self.filing.agenda.len() + self.apart.len()
    }

    /// Sweeps as [`Filing::sweep`] does. The last step also checks all tokens that wait apart.
    #[cold]
    pub(in crate::wheel) fn sweep(
        &mut self,
        budget: usize,
        mut keep: impl FnMut(Token) -> bool,
    ) -> bool {
        let ended = self.filing.sweep(budget, &mut keep);
        if ended {
            self.apart.retain(keep);
        }
        ended
    }
}
