//! A pass of the public wheels: the expiry of everything that is due up to a tick. The caller may stop it after
//! any value, and insert, move and remove values before it goes on. A structure knows the last tick of its pass,
//! so this tick does not change.
//!
//! Meanwhile the structure is given only ticks after the pass. A token that is
//! filed for an earlier tick waits here, in the order of ticks. It is younger than all tokens of that tick
//! that are in the filing, so it comes after them.

use super::in_order::InOrder;
use crate::wheel::sorted::Sorted;
use crate::wheel::structure::TokenWheel;
use crate::wheel::token::{Due, Token};

#[derive(Debug)]
pub(super) struct Pass {
    /// The last tick of this pass.
    now: u64,
    /// The tick of the token that was popped last. At first, the tick at which the pass began.
    tick: u64,
    /// Tokens that were filed during the pass, and are due in it.
    filed: Sorted,
    /// The next token of the filing, if it was popped to compare its tick with those in `filed`.
    next: Option<Due>,
}

impl Pass {
    /// A pass from the tick `current` up to `now`. Tick `u64::MAX` never comes.
    pub(super) fn new(current: u64, now: u64) -> Self {
        Self { now: now.min(u64::MAX - 1), tick: current, filed: Sorted::default(), next: None }
    }

    /// The last tick of this pass.
    pub(super) fn last_tick(&self) -> u64 {
        self.now
    }

    /// The tick that is being expired.
    pub(super) fn tick(&self) -> u64 {
        self.tick
    }

    /// Accepts a token that is due in this pass. An overdue one is due in the tick that is being expired.
    /// Returns false if `tick` is after the pass.
    pub(super) fn accepts(&mut self, tick: u64, token: Token) -> bool {
        let is_due = tick <= self.now;
        if is_due {
            self.filed.push(Due { tick: tick.max(self.tick), token });
        }
        is_due
    }

    /// Pops the next token. `None` at the end of the pass.
    #[inline]
    pub(super) fn pop(&mut self, filing: &mut InOrder<impl TokenWheel>) -> Option<Due> {
        let next = self.next.take().or_else(|| filing.pop(self.now));
        let due = if self.filed.is_empty() { next } else { self.earlier(next) }?;
        self.tick = due.tick;
        Some(due)
    }

    /// Keeps the later one of `next` and the first of `filed`, and returns the other.
    fn earlier(&mut self, next: Option<Due>) -> Option<Due> {
        let filed = self.filed.next_tick();
        match next {
            Some(next) if filed.is_none_or(|tick| next.tick <= tick) => Some(next),
            later => {
                self.next = later;
                self.filed.pop()
            }
        }
    }

    /// A tick of this pass, not after that of the next token here.
    pub(super) fn next_tick(&self) -> u64 {
        let next = self.next.map(|due| due.tick);
        next.into_iter().chain(self.filed.next_tick()).min().unwrap_or(self.now)
    }
}
