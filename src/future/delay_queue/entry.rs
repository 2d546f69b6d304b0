//! The slab of a queue's values.

use super::DelayKey;
use crate::base::slab::{Slab, Slot};
use crate::wheel::Token;

pub(super) struct Entry<T> {
    /// `None` while the slot is free.
    pub(super) value: Option<T>,
    /// In nanoseconds after the timer's start.
    pub(super) deadline: u64,
    /// The number of the insertion. Never used again, so an old key finds nothing.
    pub(super) sequence: u64,
    /// Tells the wheel's entries for this slot apart. Only the latest is live. Outlives the value.
    filing: u32,
    /// Whether the value is in the wheel. Otherwise it is among the near ones.
    pub(super) is_distant: bool,
}

impl<T> Entry<T> {
    pub(super) fn key(&self, index: u32) -> DelayKey {
        DelayKey { sequence: self.sequence, index }
    }

    /// A token for a new entry in the wheel. The entry before it is dead.
    pub(super) fn new_filing(&mut self, index: u32) -> Token {
        self.filing = self.filing.wrapping_add(1);
        self.is_distant = true;
        Token { index, version: self.filing as u16 }
    }

    /// Whether the wheel's entry with this token is live. Rarely, a dead one with the same 16 bits seems
    /// to be live. This does no harm: its value goes where its deadline says.
    pub(super) fn is_named_by(&self, token: Token) -> bool {
        self.is_distant && self.filing as u16 == token.version && self.value.is_some()
    }
}

impl<T> Slot for Entry<T> {
    fn fresh(version: u32) -> Self {
        Self { value: None, deadline: 0, sequence: 0, filing: version, is_distant: false }
    }

    fn version(&self) -> u32 {
        self.filing
    }

    fn link(&self) -> u16 {
        self.deadline as u16
    }

    fn set_link(&mut self, link: u16) {
        self.deadline = u64::from(link);
    }
}

impl<T> Slab<Entry<T>> {
    pub(super) fn live(&self, key: DelayKey) -> Option<&Entry<T>> {
        self.get(key.index).filter(|e| e.sequence == key.sequence && e.value.is_some())
    }

    pub(super) fn live_mut(&mut self, key: DelayKey) -> Option<&mut Entry<T>> {
        self.get_mut(key.index).filter(|e| e.sequence == key.sequence && e.value.is_some())
    }
}
