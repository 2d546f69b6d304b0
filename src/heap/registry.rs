//! The registry of a timer: all of its heaps and chunks.
//!
//! A thread that schedules for the first time *enters*: it gets an idle heap, or a new one. When the
//! thread ends, it *leaves*: its heap and all chunks wait for the next thread. So the number of heaps
//! is the greatest number of threads that were alive at one time, and timeouts outlive their thread.
//!
//! One more heap has the internal timeouts (see `timeout/internal`). It belongs to no thread.
//!
//! The worker learns of new heaps and chunks through queues. It takes the locks here only to end the
//! timer, when no producer waits for it.

use super::chunk::{Chunk, MAX_CHUNKS};
use super::context::Context;
use super::heap::Heap;
use super::slot::{Claimed, Phase};
use super::tally::Tally;
use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering, SegQueue};

/// All heaps of one timer.
pub(crate) struct Registry<P> {
    pub(crate) context: Arc<Context>,
    heaps: Mutex<Vec<Arc<Heap<P>>>>,
    /// Heaps that the worker does not know yet.
    new_heaps: SegQueue<Arc<Heap<P>>>,
    /// Chunks that the worker does not know yet.
    new_chunks: SegQueue<Arc<Chunk<P>>>,
    /// Heaps whose thread has ended.
    idle: SegQueue<Arc<Heap<P>>>,
    /// The number of chunks ever made. Relaxed: it only counts.
    made: AtomicU64,
    /// The numbers of dropped chunks.
    recycled: SegQueue<u32>,
}

impl<P: Send + 'static> Registry<P> {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            heaps: Mutex::new(Vec::new()),
            new_heaps: SegQueue::new(),
            new_chunks: SegQueue::new(),
            idle: SegQueue::new(),
            made: AtomicU64::new(0),
            recycled: SegQueue::new(),
        }
    }

    /// An idle heap or a new one, for the calling thread.
    pub(super) fn take_heap(&self) -> Arc<Heap<P>> {
        self.idle.pop().unwrap_or_else(|| self.new_heap())
    }

    fn new_heap(&self) -> Arc<Heap<P>> {
        let tally = Arc::new(Tally::default());
        self.context.add_tally(tally.clone());
        self.add_heap(tally)
    }

    /// The heap of the crate's own timeouts. No thread gets it.
    pub(super) fn new_internal_heap(&self) -> Arc<Heap<P>> {
        self.add_heap(self.context.internals.clone())
    }

    fn add_heap(&self, tally: Arc<Tally>) -> Arc<Heap<P>> {
        let heap = Arc::new(Heap::new(self.context.clone(), tally));
        self.heaps.lock().push(heap.clone());
        self.new_heaps.push(heap.clone());
        heap
    }

    /// Gives a heap back for the next thread.
    pub(super) fn leave(&self, heap: Arc<Heap<P>>) {
        if !heap.internal {
            self.idle.push(heap);
        }
    }

    /// A new chunk of `heap`, which the caller owns. `None` if the timer can have no more chunks.
    pub(super) fn new_chunk(&self, heap: &Arc<Heap<P>>) -> Option<Arc<Chunk<P>>> {
        // Each chunk ever made has its own first version, so a recycled number has another one.
        let version = self.made.fetch_add(1, Ordering::Relaxed);
        let id = match self.recycled.pop() {
            Some(id) => id,
            None => self.context.new_chunk_number(MAX_CHUNKS)?,
        };
        let chunk = Chunk::new(id, version as u32, heap);
        heap.chunks.lock().insert(id, chunk.clone());
        self.new_chunks.push(chunk.clone());
        Some(chunk)
    }

    /// The next heap that the worker does not know yet.
    pub(crate) fn next_new_heap(&self) -> Option<Arc<Heap<P>>> {
        if self.new_heaps.is_empty() { None } else { self.new_heaps.pop() }
    }

    /// The next chunk that the worker does not know yet.
    pub(crate) fn next_new_chunk(&self) -> Option<Arc<Chunk<P>>> {
        if self.new_chunks.is_empty() { None } else { self.new_chunks.pop() }
    }

    /// Makes the number of a dropped chunk available for a new chunk.
    pub(crate) fn recycle(&self, id: u32) {
        self.recycled.push(id);
    }

    /// The chunk with this number.
    pub(crate) fn chunk(&self, id: u32) -> Option<Arc<Chunk<P>>> {
        let heaps = self.heaps.lock();
        heaps.iter().find_map(|heap| heap.chunks.lock().get(&id).cloned())
    }

    /// Ends all pending timeouts, and gives up all chunks. The caller has closed the timer. The crate's
    /// own timeouts are always cancelled; `end` applies to the others. Calls `ended` for each timeout.
    pub(crate) fn empty(&self, end: Phase, mut ended: impl FnMut(&Chunk<P>, usize, Claimed<P>)) {
        for heap in self.heaps.lock().iter() {
            let end = if heap.internal { Phase::Cancelled } else { end };
            let counts = self.context.counts_of(heap.internal);
            for chunk in heap.chunks.lock().values() {
                for (offset, slot) in chunk.slots().enumerate() {
                    let Some(claimed) = slot.empty(end) else { continue };
                    let count =
                        if end == Phase::Returned { &counts.returned } else { &counts.cancelled };
                    count.add_shared(1);
                    counts.unqueued.add_shared(u64::from(!claimed.filed));
                    ended(chunk, offset, claimed);
                }
            }
            heap.clear();
        }
        while self.new_chunks.pop().is_some() {}
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::heap::owner::tests::{DUE, Producer, end_elsewhere};
    use crate::heap::{Cancel, Claim, Owner};

    /// The timeouts are New, Filed, running and ended. Only the pending ones are emptied.
    #[test]
    fn emptied_timeouts_are_counted_by_their_end() {
        for end in [Phase::Cancelled, Phase::Returned] {
            let mut producer = Producer::new();
            let places = producer.arm(7);
            let slots: Vec<_> = places.iter().map(|(chunk, offset)| chunk.slot(*offset)).collect();
            let versions = [0, 1, 2].map(|n| slots[n].file().expect("the slot is New").1);
            assert!(matches!(slots[0].claim(versions[0], DUE), Claim::Due(_)));
            assert!(matches!(slots[6].cancel(), Cancel::Won { .. }));
            let mut ended = Vec::new();
            producer.registry.context.close();
            producer.registry.empty(end, |_, offset, claimed| {
                assert_eq!((offset as u32, claimed.deadline), (claimed.payload, DUE));
                ended.push(claimed.payload);
            });
            assert_eq!(ended, [1, 2, 3, 4, 5]);
            assert!((1..6).all(|n| slots[n].phase() == end));
            let counts = &producer.registry.context.by_others;
            let counted = [&counts.returned, &counts.cancelled, &counts.unqueued].map(|n| n.get());
            assert_eq!(counted, if end == Phase::Returned { [5, 0, 3] } else { [0, 5, 3] });
            slots[0].finish();
            for (chunk, offset) in &places {
                assert!(chunk.slot(*offset).unpin(2));
                chunk.give_back(1 << offset);
            }
        }
    }

    #[test]
    fn rule_04_an_emptied_registry_keeps_no_chunk() {
        let mut producer = Producer::new();
        let places = producer.arm(200);
        producer.owner = Owner::enter(&producer.registry).expect("there is room"); // drops the former owner
        let chunks: Vec<_> = places.iter().map(|(chunk, _)| Arc::downgrade(chunk)).collect();
        let offsets: Vec<_> = places.iter().map(|&(_, offset)| offset).collect();
        drop(places);
        producer.registry.empty(Phase::Cancelled, |_, _, _| ());
        // Each timeout still has a handle, whose pin keeps the chunk.
        for (at, (chunk, offset)) in chunks.iter().zip(offsets).enumerate() {
            let kept = chunk.upgrade().expect("it is pinned");
            assert!(kept.slot(offset).unpin(2));
            kept.give_back(1 << offset);
            drop(kept);
            let last = chunks.get(at + 1).is_none_or(|next| !next.ptr_eq(chunk));
            assert_eq!(chunk.strong_count() == 0, last, "timeout {at}");
        }
    }

    #[test]
    fn the_worker_learns_of_each_heap_and_chunk_once() {
        let mut producer = Producer::new();
        producer.arm(130);
        let heaps = || std::iter::from_fn(|| producer.registry.next_new_heap()).count();
        let chunks = || std::iter::from_fn(|| producer.registry.next_new_chunk()).count();
        assert_eq!((heaps(), chunks()), (1, 3));
        drop(Owner::enter(&producer.registry));
        drop(Owner::enter(&producer.registry));
        assert_eq!(
            (heaps(), chunks()),
            (1, 1),
            "the second owner gets the heap and chunk of the first"
        );
    }

    #[test]
    fn a_chunk_is_found_by_its_number() {
        let mut producer = Producer::new();
        let places = producer.arm(200);
        for (chunk, _) in &places {
            assert!(
                producer.registry.chunk(chunk.id).is_some_and(|found| Arc::ptr_eq(&found, chunk))
            );
        }
        assert!(producer.registry.chunk(1000).is_none());
        places.iter().for_each(end_elsewhere);
    }
}
