//! Tokens in the order of their ticks, and within a tick in the order of arrival.

use super::token::{Due, Token};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// By tick, then by the number of the arrival.
    tokens: BTreeMap<(u64, u64), Token>,
    arrivals: u64,
    /// The tick of the first token. A wheel asks for it at each step.
    next_tick: Option<u64>,
}

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn push(&mut self, Due { tick, token }: Due) {
        self.arrivals += 1;
        self.tokens.insert((tick, self.arrivals), token);
        self.find_next_tick();
    }

    #[inline]
    pub(super) fn next_tick(&self) -> Option<u64> {
        self.next_tick
    }

    /// Whether a token waits for this tick.
    #[cold]
    pub(super) fn holds(&self, tick: u64) -> bool {
        self.tokens.range((tick, 0)..=(tick, u64::MAX)).next().is_some()
    }

    pub(super) fn pop(&mut self) -> Option<Due> {
        let ((tick, _), token) = self.tokens.pop_first()?;
        self.find_next_tick();
        Some(Due { tick, token })
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(Token) -> bool) {
        self.tokens.retain(|_, token| keep(*token));
        self.find_next_tick();
    }

    fn find_next_tick(&mut self) {
        self.next_tick = self.tokens.first_key_value().map(|(&(tick, _), _)| tick);
    }
}
