//! An owner: the part of an arena that only its thread uses.
//!
//! A thread schedules through its owner. The owner has one chunk, whose slots it arms, and a bitmap of
//! the chunk's free slots. Slots that other threads free go into the chunk's own bitmap (see `chunk`).
//! When no slot is free, it takes a chunk from the pool of its arena, or makes one. When the thread ends,
//! it disowns the chunk, and the next thread that needs an arena gets this one.
//!
//! A thread also frees slots of other chunks. Threads often cancel timeouts in the order in which they
//! scheduled them. So the owner collects the free slots of one other chunk, and gives them back together.

use super::arena::Arena;
use super::chunk::{ALL, Chunk, SLOTS};
use super::pin::{Armed, Collected, FreeSlots, Payload, Pin};
use super::registry::Registry;
use super::slot::Runs;
use crate::base::sync::Arc;
use std::thread;

/// A thread's owned chunk, and its arena.
pub(crate) struct Owner<P: Payload> {
    pub(crate) arena: Arc<Arena<P>>,
    chunk: Arc<Chunk<P>>,
    /// The Free slots of the owned chunk that are not in the chunk's own bitmap.
    free: u64,
    /// A copy of the owned chunk's `used`.
    used: usize,
    /// Free slots of another chunk that are not given back yet.
    collected: Collected<P>,
}

impl<P: Payload> Owner<P> {
    /// Gives the calling thread an arena. `None` if the timer can have no more chunks.
    pub(crate) fn enter(registry: &Arc<Registry<P>>) -> Option<Self> {
        let owner = Self::of(registry.take_arena(), registry)?;
        owner.arena.set_thread(Some(thread::current().name().unwrap_or_default().to_owned()));
        Some(owner)
    }

    /// The owner of an arena for the crate's own timeouts. `None` if the timer can have no more chunks.
    pub(crate) fn of_internals(registry: &Arc<Registry<P>>) -> Option<Self> {
        Self::of(registry.new_internal_arena(), registry)
    }

    fn of(arena: Arc<Arena<P>>, registry: &Arc<Registry<P>>) -> Option<Self> {
        let Some((chunk, free)) = next_chunk(&arena, registry) else {
            registry.leave(arena);
            return None;
        };
        let used = chunk.used();
        Some(Self { arena, chunk, free, used, collected: Collected::default() })
    }

    /// Whether there is a slot to arm. False if the timer can have no more chunks.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.free != 0 || self.refill()
    }

    /// Arms a slot: Free -> New. The slot has a pin for the caller's handle, and the live pin. The
    /// caller checks `has_room` first, and announces the slot afterwards (`Chunk::announce_new`).
    #[inline(always)] // writes the payload directly to its place
    pub(crate) fn arm(&mut self, payload: P, deadline: u64, runs: Runs) -> Armed<P> {
        let offset = self.take_free();
        self.arm_at(offset, payload, deadline, runs);
        Armed::new(&self.chunk, offset)
    }

    /// Reserves a Free slot for a future. The caller checks `has_room` first.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Pin<P> {
        let offset = self.take_free();
        Pin::unused(&self.chunk, offset)
    }

    /// Arms the slot of a future, like `arm`, if the future has it alone and the caller owns its chunk. Returns
    /// whether it was armed.
    #[inline]
    pub(crate) fn arm_again(
        &mut self,
        kept: &mut Pin<P>,
        payload: impl FnOnce() -> Option<P>,
        deadline: u64,
        runs: Runs,
    ) -> bool {
        if !self.owns(kept.chunk()) || !kept.has_slot_alone() {
            return false;
        }
        let Some(payload) = payload() else { return false };
        self.arm_at(kept.offset(), payload, deadline, runs);
        kept.is_armed_again();
        true
    }

    /// Takes a slot out of the bitmap, which has one.
    #[inline(always)]
    fn take_free(&mut self) -> usize {
        let offset = self.free.trailing_zeros() as usize;
        self.free &= self.free - 1;
        if offset >= self.used {
            self.used = offset + 1;
            self.chunk.set_used(self.used);
        }
        offset
    }

    #[inline(always)] // writes the payload directly to its place
    fn arm_at(&mut self, offset: usize, payload: P, deadline: u64, runs: Runs) {
        let arena = &*self.arena;
        // Counted first, so that the worker never finds a slot that is not counted.
        let sequence = arena.tally.scheduled.add(1);
        self.chunk.slot(offset).arm(payload, deadline, sequence, runs);
    }

    /// The chunk is unused.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn set_next_sequence(&self, sequence: u64) {
        let scheduled = &self.arena.tally.scheduled;
        scheduled.add(sequence - scheduled.get());
        self.chunk.set_from(sequence);
    }

    #[inline]
    fn owns(&self, chunk: &Chunk<P>) -> bool {
        std::ptr::eq(&*self.chunk, chunk)
    }

    /// The owned chunk.
    #[inline]
    pub(crate) fn chunk(&self) -> &Arc<Chunk<P>> {
        &self.chunk
    }

    /// Takes more free slots: from the owned chunk if other threads have freed enough of its slots, or
    /// else from another chunk.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> bool {
        self.collected.give_back();
        self.free = self.chunk.take_freed();
        if self.free.count_ones() as usize <= SLOTS / 4 {
            let registry = Registry::of(&self.arena.timer);
            let next = registry.and_then(|registry| next_chunk(&self.arena, &registry));
            if let Some((chunk, free)) = next {
                self.chunk.disown(self.free);
                self.used = chunk.used();
                (self.chunk, self.free) = (chunk, free);
            }
        }
        self.free != 0
    }

    /// Takes back Free slots of the owned chunk, or returns those of another chunk.
    #[inline]
    pub(crate) fn give_back(&mut self, slots: FreeSlots<P>) -> Result<(), FreeSlots<P>> {
        if !self.owns(slots.chunk()) {
            return Err(slots);
        }
        self.free |= slots.slots();
        Ok(())
    }

    /// Collects Free slots of another chunk of this timer, or returns those of another timer.
    pub(crate) fn collect(&mut self, slots: FreeSlots<P>) -> Result<(), FreeSlots<P>> {
        if !Arc::ptr_eq(&slots.chunk().timer.gate, &self.arena.timer.gate) {
            return Err(slots);
        }
        self.collected.add(slots);
        Ok(())
    }
}

impl<P: Payload> Drop for Owner<P> {
    fn drop(&mut self) {
        self.collected.give_back();
        self.chunk.disown(self.free);
        self.arena.set_thread(None);
        if let Some(registry) = Registry::of(&self.arena.timer) {
            registry.leave(self.arena.clone());
        }
    }
}

/// A chunk from the arena's pool, or a new one, with its free slots. The caller becomes its owner.
fn next_chunk<P: Payload>(
    arena: &Arc<Arena<P>>,
    registry: &Registry<P>,
) -> Option<(Arc<Chunk<P>>, u64)> {
    let next_sequence = arena.tally.scheduled.get();
    let Some(chunk) = arena.pool.pop() else {
        let chunk = registry.new_chunk(arena)?;
        chunk.set_from(next_sequence);
        return Some((chunk, ALL));
    };
    let free = chunk.take_freed();
    if free == ALL {
        arena.uncount_empty();
        chunk.set_from(next_sequence);
    }
    Some((chunk, free))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
