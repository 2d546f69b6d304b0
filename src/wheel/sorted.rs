//! Tokens in the order of their ticks, and within a tick in the order of arrival.

use super::token::{Due, Token};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// By tick, then by the number of the arrival.
    tokens: BTreeMap<(u64, u64), Token>,
    arrivals: u64,
}

impl Sorted {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn push(&mut self, Due { tick, token }: Due) {
        self.arrivals += 1;
        self.tokens.insert((tick, self.arrivals), token);
    }

    #[inline]
    pub(super) fn next_tick(&self) -> Option<u64> {
        self.tokens.first_key_value().map(|(&(tick, _), _)| tick)
    }

    pub(super) fn pop(&mut self) -> Option<Due> {
        self.tokens.pop_first().map(|((tick, _), token)| Due { tick, token })
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(Token) -> bool) {
        self.tokens.retain(|_, token| keep(*token));
    }
}
