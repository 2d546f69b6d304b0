//! A chunked slab: values in slots with stable indices. A free slot is used again.
//!
//! The slots lie in chunks of 64 instead of one growing vector, for three reasons. Growth never
//! copies existing slots. The memory for n slots is n slots, where a doubling vector wastes up to
//! half. All but 32 empty chunks, or as many as were reserved, give their memory back, and one used slot keeps one
//! chunk.
//!
//! A value has a [`Key`], with a *generation* that tells the uses of its slot apart, and [`Token`]s, with the number
//! of a *filing*. Only the latest token is live. A free slot has the next of both numbers. A chunk that gives its memory
//! back stores numbers newer than those of all its slots. When the chunk is allocated again, its slots start with these.
//!
//! A chunk is in one of three states:
//!
//! - **open**: it has memory and a free slot. It is in the list of open chunks.
//! - **full**: all of its slots are used. It is in no list.
//! - **gone**: its memory was given back. It is in the vector `gone`. It can also stay in the list of
//!   open chunks. It is unlinked when it would become the front of the list.

use crate::base::prefetch::prefetch;
use crate::wheel::key::Key;
use crate::wheel::token::Token;

/// The number of slots in one chunk. With smaller chunks, a slot that outlives a burst would keep less
/// memory, but there would be more allocations.
const CHUNK: usize = 64;

/// The end of the list of open chunks.
const NO_CHUNK: u32 = u32::MAX;

/// The most chunks of a slab. The greatest index names no slot.
pub(crate) const MOST_CHUNKS: usize = u32::MAX as usize / CHUNK;

/// The number of chunks without a used slot that keep their memory for later use, unless more are reserved.
const EMPTY_KEPT: usize = 32;

/// The end of a chunk's free list.
const NONE: u8 = CHUNK as u8;

/// One enum with all numbers, so that the compiler puts its tag beside them.
pub(crate) enum Slot<T> {
    /// The next free slot of its chunk is `link`.
    Free {
        generation: u32,
        filing: u16,
        link: u8,
    },
    Used {
        generation: u32,
        filing: u16,
        value: T,
    },
}

impl<T> Slot<T> {
    fn numbers(&self) -> (u32, u16) {
        let (Self::Free { generation, filing, .. } | Self::Used { generation, filing, .. }) = *self;
        (generation, filing)
    }
}

struct Chunk<T> {
    /// `None` while the chunk is gone.
    slots: Option<Box<[Slot<T>; CHUNK]>>,
    /// The first free slot, which links to the next. `NONE` if the chunk is full or gone.
    free: u8,
    used: u8,
    /// The generation and the filing that this chunk's slots start with when it is allocated again.
    first: (u32, u16),
    /// The next chunk in the list of open chunks, if this one is in the list.
    next_open: u32,
}

pub(crate) struct Slab<T> {
    chunks: Vec<Chunk<T>>,
    /// The front of the list of open chunks, or `NO_CHUNK`. It is never a gone chunk.
    open: u32,
    /// Chunks whose memory was given back.
    gone: Vec<u32>,
    /// The number of chunks that have memory and no used slot.
    empty: usize,
    /// The number of such chunks that keep their memory.
    empty_kept: usize,
    used: usize,
    most_chunks: usize,
}

impl<T> Slab<T> {
    /// A slab of at most `most_chunks` chunks. Allocates nothing.
    pub(crate) fn with_limit(most_chunks: usize) -> Self {
        Self {
            chunks: Vec::new(),
            open: NO_CHUNK,
            gone: Vec::new(),
            empty: 0,
            empty_kept: EMPTY_KEPT,
            used: 0,
            most_chunks,
        }
    }

    /// Allocates memory so that there are `slots` slots, at most the limit, and keeps it.
    pub(crate) fn reserve(&mut self, slots: usize) {
        let chunks = slots.div_ceil(CHUNK).min(self.most_chunks);
        self.empty_kept = self.empty_kept.max(chunks);
        self.chunks.reserve(chunks.saturating_sub(self.chunks.len()));
        while self.chunks.len() - self.gone.len() < chunks {
            let at = self.add_chunk(); // a gone one may still be in the list of open chunks
            self.allocate(at);
        }
    }

    /// The number of values.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Stores a value. `None` if the limit is reached. O(1).
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Option<(Key, Token)> {
        if self.open == NO_CHUNK {
            self.open_chunk()?;
        }
        let at = self.open;
        let chunk = self.chunks.get_mut(at as usize)?;
        let index = at * CHUNK as u32 + u32::from(chunk.free);
        let slot = &mut chunk.slots.as_mut()?[usize::from(chunk.free % NONE)];
        let Slot::Free { generation, filing, link } = *slot else { return None };
        *slot = Slot::Used { generation, filing, value };
        chunk.free = link;
        self.empty -= usize::from(chunk.used == 0);
        chunk.used += 1;
        self.used += 1;
        if link == NONE {
            let next = chunk.next_open;
            self.open = next_with_memory(&self.chunks, next);
        }
        Some((Key { index, generation }, Token { index, version: filing }))
    }

    /// Takes a value out. From then on, its key and its tokens find nothing.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let (at, offset) = split(key.index);
        let chunk = self.chunks.get_mut(at)?;
        let slot = &mut chunk.slots.as_mut()?[offset];
        let filing = match *slot {
            Slot::Used { generation, filing, .. } if generation == key.generation => filing,
            _ => return None,
        };
        let free = Slot::Free {
            generation: key.generation.wrapping_add(1),
            filing: filing.wrapping_add(1),
            link: chunk.free,
        };
        let Slot::Used { value, .. } = std::mem::replace(slot, free) else { return None };
        if chunk.free == NONE {
            chunk.next_open = self.open;
            self.open = at as u32;
        }
        chunk.free = offset as u8;
        chunk.used -= 1;
        self.used -= 1;
        if chunk.used == 0 {
            self.empty += 1;
            if self.empty > self.empty_kept {
                self.give_back(at);
            }
        }
        Some(value)
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.at(key.index).filter(|(current, _)| *current == key).map(|(_, value)| value)
    }

    /// The value of a key, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let Slot::Used { generation, value, .. } = self.slot_mut(key.index)? else { return None };
        (*generation == key.generation).then_some(value)
    }

    /// The value in a slot, with its key.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<(Key, &T)> {
        let Slot::Used { generation, value, .. } = self.slot(index)? else { return None };
        Some((Key { index, generation: *generation }, value))
    }

    /// The value in a slot, to change it.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        let Slot::Used { value, .. } = self.slot_mut(index)? else { return None };
        Some(value)
    }

    /// The live token of the value in a slot.
    pub(crate) fn token(&self, index: u32) -> Option<Token> {
        let Slot::Used { filing: version, .. } = *self.slot(index)? else { return None };
        Some(Token { index, version })
    }

    /// A new token of the value in a slot. The tokens before it are dead.
    pub(crate) fn refile(&mut self, index: u32) -> Option<Token> {
        let Slot::Used { filing, .. } = self.slot_mut(index)? else { return None };
        *filing = filing.wrapping_add(1);
        Some(Token { index, version: *filing })
    }

    /// The value that a live token names, with its key.
    #[inline]
    pub(crate) fn named_by(&self, token: Token) -> Option<(Key, &T)> {
        let named = self.at(token.index)?;
        (self.token(token.index) == Some(token)).then_some(named)
    }

    /// Prefetches a slot.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        self.slot(index).into_iter().for_each(prefetch);
    }

    /// All values, each with its key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (0..self.chunks.len() * CHUNK).filter_map(|index| self.at(index as u32))
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let (at, offset) = split(index);
        Some(&self.chunks.get(at)?.slots.as_ref()?[offset])
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        let (at, offset) = split(index);
        Some(&mut self.chunks.get_mut(at)?.slots.as_mut()?[offset])
    }

    /// Allocates a gone chunk again, or adds a new one. Called when no chunk is open.
    #[cold]
    fn open_chunk(&mut self) -> Option<()> {
        let has_room = self.chunks.len() < self.most_chunks;
        let at = self.gone.pop().or_else(|| has_room.then(|| self.add_chunk()))?;
        self.allocate(at);
        Some(())
    }

    /// Adds a chunk without memory.
    fn add_chunk(&mut self) -> u32 {
        let chunk = Chunk { slots: None, free: NONE, used: 0, first: (0, 0), next_open: NO_CHUNK };
        self.chunks.push(chunk);
        self.chunks.len() as u32 - 1
    }

    /// Allocates the memory of a chunk that is not in the list of open chunks, and opens it.
    fn allocate(&mut self, at: u32) {
        let chunk = &mut self.chunks[at as usize];
        chunk.slots = fresh_slots(chunk.first);
        chunk.free = 0;
        chunk.next_open = self.open;
        self.open = at;
        self.empty += 1;
    }

    #[cold]
    fn give_back(&mut self, at: usize) {
        let chunk = &mut self.chunks[at];
        let slots = chunk.slots.take();
        let numbers = slots.iter().flat_map(|slots| slots.iter().map(Slot::numbers));
        let newest = numbers.fold((0, 0), |last, next| (last.0.max(next.0), last.1.max(next.1)));
        chunk.first = (newest.0.wrapping_add(1), newest.1.wrapping_add(1));
        chunk.free = NONE;
        self.empty -= 1;
        self.gone.push(at as u32);
        self.open = next_with_memory(&self.chunks, self.open);
    }
}

/// The first chunk that has memory, in the list of open chunks from `at` on.
fn next_with_memory<T>(chunks: &[Chunk<T>], mut at: u32) -> u32 {
    while let Some(Chunk { slots: None, next_open, .. }) = chunks.get(at as usize) {
        at = *next_open;
    }
    at
}

/// The slots of a new chunk, each linked to the next. Always `Some`: the count matches the array.
fn fresh_slots<T>((generation, filing): (u32, u16)) -> Option<Box<[Slot<T>; CHUNK]>> {
    let slots = (1..=NONE).map(|link| Slot::Free { generation, filing, link });
    slots.collect::<Box<[_]>>().try_into().ok()
}

#[inline]
fn split(index: u32) -> (usize, usize) {
    (index as usize / CHUNK, index as usize % CHUNK)
}

#[cfg(test)]
mod tests;
