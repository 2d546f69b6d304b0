//! A chunked slab: slots with stable indices. A released slot is handed out again.
//!
//! The slots lie in chunks of 64 instead of one growing vector, for three reasons. Growth never
//! copies existing slots. The memory for n slots is n slots, where a doubling vector wastes up to
//! half. A chunk without used slots can give its memory back, so one used slot keeps at most one
//! chunk.
//!
//! A slot keeps its content between release and acquire, so its version survives. A chunk that
//! gives its memory back stores a version newer than those of all its slots. Its slots start with
//! that version when the chunk is allocated again.
//!
//! A chunk is in one of three states:
//!
//! - **open**: it has memory and a free slot. It is in the list of open chunks.
//! - **full**: all of its slots are used. It is in no list.
//! - **gone**: its memory was given back. It is in the vector `gone`. It can also stay in the list of
//!   open chunks. It is unlinked when it would become the front of the list.

/// The number of slots in one chunk. With smaller chunks, a slot that outlives a burst would keep less
/// memory, but there would be more allocations.
const CHUNK: usize = 64;

/// The end of the list of open chunks.
const NO_CHUNK: u32 = u32::MAX;

/// The number of chunks without a used slot that keep their memory for later use, unless more are reserved.
const EMPTY_KEPT: usize = 32;

/// The end of a chunk's free list.
const NONE: u16 = CHUNK as u16;

/// The requirements on a slab's elements.
pub(crate) trait Slot {
    /// An unused slot with this version.
    fn fresh(version: u32) -> Self;
    /// Tells two uses of the same slot apart. May wrap.
    fn version(&self) -> u32;
    /// The link of a free slot to the next free one. A used slot may store other data in its place.
    fn link(&self) -> u16;
    /// Sets that link.
    fn set_link(&mut self, link: u16);
}

struct Chunk<S> {
    /// `None` while the chunk is gone.
    slots: Option<Box<[S; CHUNK]>>,
    /// The first free slot, which links to the next. `NONE` if the chunk is full or gone.
    free: u16,
    used: u16,
    /// The version that this chunk's slots start with when it is allocated again.
    version: u32,
    /// The next chunk in the list of open chunks, if this one is in the list.
    next_open: u32,
}

pub(crate) struct Slab<S> {
    chunks: Vec<Chunk<S>>,
    /// The front of the list of open chunks, or `NO_CHUNK`. It is never a gone chunk.
    open: u32,
    /// Chunks whose memory was given back.
    gone: Vec<u32>,
    /// The number of chunks that have memory and no used slot.
    empty: usize,
    /// The number of such chunks that keep their memory.
    empty_kept: usize,
    used: usize,
    limit: usize,
}

impl<S: Slot> Slab<S> {
    /// A slab of at most `limit` slots. Allocates nothing.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            chunks: Vec::new(),
            open: NO_CHUNK,
            gone: Vec::new(),
            empty: 0,
            empty_kept: EMPTY_KEPT,
            used: 0,
            limit,
        }
    }

    /// Allocates memory so that there are `slots` slots, at most the limit, and keeps it.
    pub(crate) fn reserve(&mut self, slots: usize) {
        let chunks = slots.min(self.limit).div_ceil(CHUNK);
        self.empty_kept = self.empty_kept.max(chunks);
        self.chunks.reserve(chunks.saturating_sub(self.chunks.len()));
        while self.chunks.len() - self.gone.len() < chunks {
            let at = self.add_chunk(); // a gone one may still be in the list of open chunks
            self.allocate(at);
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Takes a free slot; `None` if the limit is reached. O(1).
    #[inline]
    pub(crate) fn acquire(&mut self) -> Option<(u32, &mut S)> {
        if self.used >= self.limit {
            return None;
        }
        if self.open == NO_CHUNK {
            self.open_chunk();
        }
        let at = self.open;
        let chunk = self.chunks.get(at as usize)?;
        let offset = chunk.free % NONE;
        let next = chunk.slots.as_ref()?[usize::from(offset)].link();
        if next == NONE {
            self.open = next_with_memory(&self.chunks, chunk.next_open);
        }
        self.used += 1;
        let chunk = self.chunks.get_mut(at as usize)?;
        chunk.free = next;
        self.empty -= usize::from(chunk.used == 0);
        chunk.used += 1;
        let slot = &mut chunk.slots.as_mut()?[usize::from(offset)];
        Some((index(at, offset), slot))
    }

    /// Frees a used slot. The index must have come from `acquire`, and the caller must not use it
    /// again.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        let (at, offset) = split(index);
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let Some(slots) = &mut chunk.slots else { return };
        slots[offset].set_link(chunk.free);
        if chunk.free == NONE {
            chunk.next_open = self.open;
            self.open = at as u32;
        }
        chunk.free = offset as u16;
        chunk.used -= 1;
        self.used -= 1;
        if chunk.used == 0 {
            self.emptied(at);
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&S> {
        let (at, offset) = split(index);
        Some(&self.chunks.get(at)?.slots.as_ref()?[offset])
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut S> {
        let (at, offset) = split(index);
        Some(&mut self.chunks.get_mut(at)?.slots.as_mut()?[offset])
    }

    /// All slots that have memory, each with its index. Free slots are included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &S)> {
        self.chunks.iter().enumerate().flat_map(|(at, chunk)| {
            let slots = chunk.slots.iter().flat_map(|slots| slots.iter());
            slots.enumerate().map(move |(i, slot)| ((at * CHUNK + i) as u32, slot))
        })
    }

    /// Like `iter`, but mutable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut S)> {
        self.chunks.iter_mut().enumerate().flat_map(|(at, chunk)| {
            let slots = chunk.slots.iter_mut().flat_map(|slots| slots.iter_mut());
            slots.enumerate().map(move |(i, slot)| ((at * CHUNK + i) as u32, slot))
        })
    }

    /// Allocates a gone chunk again, or adds a new one. Called when no chunk is open.
    #[cold]
    fn open_chunk(&mut self) {
        let at = self.gone.pop().unwrap_or_else(|| self.add_chunk());
        self.allocate(at);
    }

    /// Adds a chunk without memory.
    fn add_chunk(&mut self) -> u32 {
        self.chunks.push(Chunk {
            slots: None,
            free: NONE,
            used: 0,
            version: 0,
            next_open: NO_CHUNK,
        });
        self.chunks.len() as u32 - 1
    }

    /// Allocates the memory of a chunk that is not in the list of open chunks, and opens it.
    fn allocate(&mut self, at: u32) {
        let chunk = &mut self.chunks[at as usize];
        chunk.slots = fresh_slots(chunk.version);
        chunk.free = 0;
        chunk.next_open = self.open;
        self.open = at;
        self.empty += 1;
    }

    fn emptied(&mut self, at: usize) {
        self.empty += 1;
        if self.empty > self.empty_kept {
            self.give_back(at);
        }
    }

    #[cold]
    fn give_back(&mut self, at: usize) {
        let chunk = &mut self.chunks[at];
        let newest = chunk.slots.take().and_then(|slots| slots.iter().map(S::version).max());
        chunk.version = newest.unwrap_or_default().wrapping_add(1);
        chunk.free = NONE;
        self.empty -= 1;
        self.gone.push(at as u32);
        self.open = next_with_memory(&self.chunks, self.open);
    }
}

/// The first chunk that has memory, in the list of open chunks from `at` on.
fn next_with_memory<S>(chunks: &[Chunk<S>], mut at: u32) -> u32 {
    while let Some(Chunk { slots: None, next_open, .. }) = chunks.get(at as usize) {
        at = *next_open;
    }
    at
}

/// The slots of a new chunk, each linked to the next. Always `Some`: the count matches the array.
fn fresh_slots<S: Slot>(version: u32) -> Option<Box<[S; CHUNK]>> {
    let slots = (1..=CHUNK as u16).map(|next| {
        let mut slot = S::fresh(version);
        slot.set_link(next); // the last to NONE
        slot
    });
    slots.collect::<Box<[S]>>().try_into().ok()
}

fn index(at: u32, offset: u16) -> u32 {
    at * CHUNK as u32 + u32::from(offset)
}

fn split(index: u32) -> (usize, usize) {
    (index as usize / CHUNK, index as usize % CHUNK)
}

#[cfg(test)]
mod tests;
