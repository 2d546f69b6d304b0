//! Timeouts so far away that no bucket can hold them.
//!
//! An ordered map, O(log n): in the hashed wheel for what is more than 65,535 turns ahead, which is
//! 38 days by default; in the two Linux wheels for what is beyond their last level. Each moves to a
//! bucket as soon as one can hold it, before any nearer timeout of the same tick can be filed there,
//! so that within a tick the order of insertion holds.

use super::structure::{Due, Token};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Far {
    /// By tick, then in the order of insertion.
    tokens: BTreeMap<(u64, u64), Token>,
    inserted: u64,
}

impl Far {
    pub(super) fn insert(&mut self, tick: u64, token: Token) {
        self.inserted += 1;
        self.tokens.insert((tick, self.inserted), token);
    }

    /// The earliest tick here.
    pub(super) fn next(&self) -> Option<u64> {
        self.tokens.first_key_value().map(|(&(tick, _), _)| tick)
    }

    /// Takes the earliest, if its tick is not after `last`.
    pub(super) fn take(&mut self, last: u64) -> Option<Due> {
        self.next().filter(|&tick| tick <= last)?;
        self.tokens.pop_first().map(|((tick, _), token)| Due { tick, token })
    }

    /// Drops what `keep` denies, and returns how many there were.
    pub(super) fn reclaim(&mut self, mut keep: impl FnMut(Token) -> bool) -> usize {
        let before = self.tokens.len();
        self.tokens.retain(|_, &mut token| keep(token));
        before
    }
}
