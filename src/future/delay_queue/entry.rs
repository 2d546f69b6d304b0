//! The slab of a queue's values.

use super::DelayKey;
use crate::wheel::Token;
use crate::wheel::slab::{Slab, Slot};

pub(super) struct Entry<T> {
    /// `None` while the slot is free.
    pub(super) value: Option<T>,
    /// In nanoseconds after the timer's start.
    pub(super) deadline: u64,
    /// The number of the insertion. Never used again, so an old key finds nothing.
    pub(super) sequence: u64,
    /// Tells the tokens for this slot apart. Only the latest is live. Outlives the value.
    filing: u32,
    pub(super) place: Place,
}

/// Where a value waits. See the head of `order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    New,
    Near,
    Distant,
}

impl<T> Entry<T> {
    pub(super) fn key(&self, index: u32) -> DelayKey {
        DelayKey { sequence: self.sequence, index }
    }

    /// A token for a value that is new. The token before it is dead.
    #[inline]
    pub(super) fn new_filing(&mut self, index: u32) -> Token {
        self.filing = self.filing.wrapping_add(1);
        self.place = Place::New;
        Token { index, version: self.filing as u16 }
    }

    /// Whether this token is live, of a new value or of an entry in the wheel. Rarely, a dead one with the
    /// same 16 bits seems to be live. This does no harm: its value goes where its deadline says.
    pub(super) fn is_named_by(&self, token: Token) -> bool {
        let named = self.filing as u16 == token.version && self.value.is_some();
        named && self.place != Place::Near
    }
}

impl<T> Slot for Entry<T> {
    fn fresh(version: u32) -> Self {
        Self { value: None, deadline: 0, sequence: 0, filing: version, place: Place::Near }
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
