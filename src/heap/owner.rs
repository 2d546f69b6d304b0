//! An owner: the part of a heap that only its thread uses.
//!
//! A thread schedules through its owner. The owner has one chunk, whose slots it arms, and a bitmap of
//! the chunk's free slots. When no slot is free, it takes a chunk from the pool of its heap, or makes
//! one. When the thread ends, it disowns the chunk, and the next thread that needs a heap gets this
//! one.

use super::chunk::{ALL, Chunk, SLOTS};
use super::heap::{Heap, SEQUENCES_PER_SCAN};
use super::registry::Registry;
use crate::base::sync::{Arc, Ordering};
use std::sync::Weak;

/// A thread's owned chunk, and its heap.
pub(crate) struct Owner<P: Send + 'static> {
    pub(crate) heap: Arc<Heap<P>>,
    chunk: Arc<Chunk<P>>,
    /// The Free slots of the owned chunk that are not in the chunk's own bitmap.
    free: u64,
    /// Weak, so that a thread does not keep the shared state of a timer alive.
    registry: Weak<Registry<P>>,
}

impl<P: Send + 'static> Owner<P> {
    /// Gives the calling thread a heap. `None` if the timer can have no more chunks.
    pub(crate) fn enter(registry: &Arc<Registry<P>>) -> Option<Self> {
        Self::of(registry.take_heap(), registry)
    }

    /// The owner of a heap for the crate's own timeouts. `None` if the timer can have no more chunks.
    pub(crate) fn of_internals(registry: &Arc<Registry<P>>) -> Option<Self> {
        Self::of(registry.new_internal_heap(), registry)
    }

    fn of(heap: Arc<Heap<P>>, registry: &Arc<Registry<P>>) -> Option<Self> {
        let Some((chunk, free)) = next_chunk(&heap, registry) else {
            registry.leave(heap);
            return None;
        };
        Some(Self { heap, chunk, free, registry: Arc::downgrade(registry) })
    }

    /// Whether there is a slot to arm. False if the timer can have no more chunks.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.free != 0 || self.refill()
    }

    /// Arms a slot: Free -> New. The slot has a pin for the caller's handle, and the live pin. The
    /// caller checks `has_room` first, and announces the slot afterwards (`Heap::announce`).
    #[inline(always)] // writes the payload directly to its place
    pub(crate) fn arm(&mut self, payload: P, deadline: u64, repeats: bool) -> usize {
        let offset = self.free.trailing_zeros() as usize;
        self.free &= self.free - 1;
        let heap = &*self.heap;
        // Counted first, so that the worker never finds a slot that is not counted.
        heap.tally.scheduled.add(1);
        let sequence = heap.next_sequence.load(Ordering::Relaxed);
        self.chunk.slot(offset).arm(payload, deadline, sequence as u32, repeats);
        // Release: a thread that acquires this number finds all earlier slots armed.
        heap.next_sequence.store(sequence + 1, Ordering::Release);
        if sequence % SEQUENCES_PER_SCAN == SEQUENCES_PER_SCAN - 1 {
            heap.want_scan();
        }
        offset
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
        self.free = self.chunk.take_freed();
        if self.free.count_ones() as usize <= SLOTS / 4 {
            let registry = self.registry.upgrade();
            let next = registry.and_then(|registry| next_chunk(&self.heap, &registry));
            if let Some((chunk, free)) = next {
                self.chunk.disown(self.free);
                (self.chunk, self.free) = (chunk, free);
            }
        }
        self.free != 0
    }

    /// Gives back a Free slot if it is in the owned chunk. Returns whether it is.
    #[inline]
    pub(crate) fn give_back(&mut self, chunk: &Chunk<P>, offset: usize) -> bool {
        let owned = std::ptr::eq(&*self.chunk, chunk);
        if owned {
            self.free |= 1 << offset;
        }
        owned
    }
}

impl<P: Send + 'static> Drop for Owner<P> {
    fn drop(&mut self) {
        self.chunk.disown(self.free);
        if let Some(registry) = self.registry.upgrade() {
            registry.leave(self.heap.clone());
        }
    }
}

/// A chunk from the heap's pool, or a new one, with its free slots. The caller becomes its owner.
fn next_chunk<P: Send + 'static>(
    heap: &Arc<Heap<P>>,
    registry: &Registry<P>,
) -> Option<(Arc<Chunk<P>>, u64)> {
    let Some(chunk) = heap.pool.pop() else {
        return Some((registry.new_chunk(heap)?, ALL));
    };
    let free = chunk.take_freed();
    if free == ALL {
        heap.uncount_empty();
    }
    Some((chunk, free))
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod tests {
    use super::*;
    use crate::heap::context::Context;
    use crate::heap::slot::{Cancel, Phase};
    use std::collections::HashSet;

    /// A deadline that is far away.
    pub(in crate::heap) const DUE: u64 = 1 << 40;

    /// The chunk and the offset of a timeout's slot.
    pub(in crate::heap) type Place = (Arc<Chunk<u32>>, usize);

    /// An owner whose timeouts are numbered in the order of scheduling.
    pub(in crate::heap) struct Producer {
        pub(in crate::heap) registry: Arc<Registry<u32>>,
        pub(in crate::heap) owner: Owner<u32>,
        scheduled: u32,
    }

    impl Producer {
        pub(in crate::heap) fn new() -> Self {
            let registry = Arc::new(Registry::new(Context::of_this_thread(None, 8)));
            let owner = Owner::enter(&registry).expect("there is room");
            Self { registry, owner, scheduled: 0 }
        }

        pub(in crate::heap) fn arm(&mut self, count: usize) -> Vec<Place> {
            (0..count).map(|_| self.arm_at(DUE)).collect()
        }

        pub(in crate::heap) fn arm_at(&mut self, deadline: u64) -> Place {
            assert!(self.owner.has_room());
            let offset = self.owner.arm(self.scheduled, deadline, false);
            let place = (self.owner.chunk().clone(), offset);
            self.scheduled += 1;
            self.owner.heap.announce(&place.0, deadline);
            place
        }

        /// Ends a timeout on its own thread.
        pub(in crate::heap) fn end(&mut self, (chunk, offset): &Place) {
            assert!(free(chunk, *offset));
            if !self.owner.give_back(chunk, *offset) {
                chunk.give_back(1 << offset);
            }
        }
    }

    /// Ends a timeout as another thread does: its slot goes back to the chunk's own bitmap.
    pub(in crate::heap) fn end_elsewhere((chunk, offset): &Place) {
        assert!(free(chunk, *offset));
        chunk.give_back(1 << offset);
    }

    fn free(chunk: &Chunk<u32>, offset: usize) -> bool {
        let slot = chunk.slot(offset);
        matches!(slot.cancel(), Cancel::Won { .. }) && slot.unpin(2)
    }

    fn indices(places: &[Place]) -> Vec<u32> {
        places.iter().map(|(chunk, offset)| chunk.index(*offset)).collect()
    }

    fn distinct(indices: &[u32]) -> usize {
        indices.iter().collect::<HashSet<_>>().len()
    }

    #[test]
    fn each_slot_is_handed_out_once() {
        let mut producer = Producer::new();
        let places = producer.arm(10 * SLOTS + 1);
        assert_eq!(distinct(&indices(&places)), places.len());
        let chunks: HashSet<u32> = places.iter().map(|(chunk, _)| chunk.id).collect();
        assert_eq!(chunks.len(), 11, "all slots of a chunk are used");
        assert!(places.iter().all(|(chunk, offset)| chunk.slot(*offset).phase() == Phase::New));
    }

    #[test]
    fn a_slot_freed_by_its_thread_is_reused_next() {
        let mut producer = Producer::new();
        let places = producer.arm(40);
        for place in &places[10..12] {
            producer.end(place);
        }
        let again = producer.arm(3);
        assert_eq!(indices(&again)[..2], indices(&places)[10..12]);
        assert_eq!(again[2].1, 40, "a slot that was never used comes next");
    }

    /// If other threads have freed many slots of the owned chunk, the owner keeps the chunk. If they
    /// have freed few, the owner disowns it.
    #[test]
    fn slots_freed_by_other_threads_are_reused() {
        for many in [true, false] {
            let mut producer = Producer::new();
            let places = producer.arm(SLOTS);
            let freed = if many { SLOTS / 4 + 1 } else { SLOTS / 4 };
            places[..freed].iter().for_each(end_elsewhere);
            let next = producer.arm(1);
            assert_eq!(next[0].0.id == places[0].0.id, many);
            // A disowned chunk with that many free slots is in the pool.
            assert_eq!(producer.owner.heap.pool.len(), 0);
            places[freed..freed + 1].iter().for_each(end_elsewhere);
            assert_eq!(producer.owner.heap.pool.len(), usize::from(!many));
            let rest = producer.arm(SLOTS);
            let mut live = indices(&places[freed + 1..]);
            live.extend(indices(&next).into_iter().chain(indices(&rest)));
            assert_eq!(distinct(&live), live.len(), "no slot has two timeouts");
            let chunks: HashSet<u32> = live.iter().map(|index| index >> 6).collect();
            assert_eq!(chunks.len(), 2, "a third chunk was made");
        }
    }

    #[test]
    fn pooled_chunks_are_reused() {
        let mut producer = Producer::new();
        let burst = producer.arm(5 * SLOTS);
        burst.iter().for_each(end_elsewhere);
        let again = producer.arm(5 * SLOTS);
        let (before, after) = (indices(&burst), indices(&again));
        assert_eq!(distinct(&after), 5 * SLOTS);
        assert_eq!(distinct(&[before, after].concat()), 5 * SLOTS, "the same slots");
    }

    /// Its timeouts outlive it, and its unused slots are not lost.
    #[test]
    fn a_dropped_owner_leaves_its_slots_to_the_next() {
        let mut producer = Producer::new();
        let places = producer.arm(3);
        let heap = Arc::as_ptr(&producer.owner.heap);
        producer.owner = Owner::enter(&producer.registry).expect("there is room");
        assert_ne!(Arc::as_ptr(&producer.owner.heap), heap, "the first owner still existed");
        producer.owner = Owner::enter(&producer.registry).expect("there is room");
        assert_eq!(Arc::as_ptr(&producer.owner.heap), heap, "the first owner has left its heap");
        let more = producer.arm(SLOTS - 3);
        assert_eq!(distinct(&indices(&[places.clone(), more].concat())), SLOTS);
        assert!(places.iter().all(|(chunk, offset)| chunk.slot(*offset).phase() == Phase::New));
        places.iter().for_each(|place| producer.end(place));
        assert_eq!(distinct(&indices(&producer.arm(3))), 3);
    }

    /// A timer without room for more chunks still uses the slots that it has.
    #[test]
    fn there_is_no_room_once_all_slots_are_used() {
        let mut producer = Producer::new();
        producer.registry.context.use_up_chunks();
        let places = producer.arm(SLOTS);
        assert!(!producer.owner.has_room());
        end_elsewhere(&places[9]);
        assert_eq!(indices(&producer.arm(1)), indices(&places[9..10]));
        assert!(!producer.owner.has_room());
        assert!(Owner::enter(&producer.registry).is_none(), "no other thread gets a chunk");
        assert!(Owner::enter(&producer.registry).is_none());
        let heaps = std::iter::from_fn(|| producer.registry.next_new_heap()).count();
        assert_eq!(heaps, 2, "the heap of the refused thread waits for the next thread");
    }

    /// The registry is dropped with its timer.
    #[test]
    fn an_owner_outlives_its_registry() {
        let mut producer = Producer::new();
        let places = producer.arm(1);
        let Producer { registry, mut owner, .. } = producer;
        drop(registry);
        for n in 1..SLOTS as u32 {
            assert!(owner.has_room(), "the owned chunk still has free slots");
            owner.arm(n, DUE, false);
        }
        assert!(!owner.has_room(), "it gets no other chunk");
        drop(owner);
        end_elsewhere(&places[0]);
    }
}
