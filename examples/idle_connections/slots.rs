//! Connections by key. A key outlives its connection without harm: each slot counts its tenants, so
//! a message or an event for a closed connection does not reach the next one in the same slot.

use mio::Token;

const HALF: u32 = usize::BITS / 2;

/// A slot and its tenant's generation, packed so that it serves as a mio token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(usize);

impl Key {
    fn new(index: usize, generation: usize) -> Self {
        Self((generation << HALF) | index)
    }

    fn index(self) -> usize {
        self.0 & ((1 << HALF) - 1)
    }
}

impl From<Key> for Token {
    fn from(key: Key) -> Self {
        Self(key.0)
    }
}

impl From<Token> for Key {
    fn from(token: Token) -> Self {
        Self(token.0)
    }
}

struct Slot<T> {
    generation: usize,
    tenant: Option<T>,
}

pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The key that the next `insert` returns.
    pub(crate) fn next_key(&self) -> Key {
        match self.free.last() {
            Some(&index) => Key::new(index, self.slots[index].generation),
            None => Key::new(self.slots.len(), 0),
        }
    }

    pub(crate) fn insert(&mut self, tenant: T) -> Key {
        let key = self.next_key();
        match self.free.pop() {
            Some(index) => self.slots[index].tenant = Some(tenant),
            None => self.slots.push(Slot { generation: 0, tenant: Some(tenant) }),
        }
        key
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slot(key)?.tenant.as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slot(key)?;
        let tenant = slot.tenant.take()?;
        // Half a word, as it is packed into a key; a wrap needs 2^32 tenants on 64 bits.
        slot.generation = (slot.generation + 1) & ((1 << HALF) - 1);
        self.free.push(key.index());
        Some(tenant)
    }

    fn slot(&mut self, key: Key) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(key.index())?;
        (Key::new(key.index(), slot.generation) == key).then_some(slot)
    }
}
