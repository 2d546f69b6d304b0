//! The registry of a timer: all of its heaps and chunks.
//!
//! A thread that schedules for the first time *enters*: it gets an idle heap, or a new one. When the
//! thread ends, it *leaves*: its heap and all chunks wait for the next thread, so timeouts outlive their
//! thread. Once no timeout and no handle is left in an idle heap, the worker *retires* it, and adds its
//! counts to those of threads without a heap. So the number of heaps follows the threads that are alive,
//! and those whose timeouts are.
//!
//! One more heap has the internal timeouts (see `timeout/internal`). It belongs to no thread.
//!
//! The worker learns of new chunks through a queue. It waits for the locks here only to end the timer. All threads hold them only for a short time.

use super::chunk::{ALL, Chunk, MAX_CHUNKS};
use super::context::Context;
use super::heap::Heap;
use super::heap_metrics::HeapMetrics;
use super::slot::{Emptied, Phase};
use super::tally::Tally;
use crate::base::sync::{Arc, AtomicU32, Mutex, Ordering, SegQueue};
use std::any::Any;

/// All heaps of one timer.
pub(crate) struct Registry<P> {
    pub(crate) context: Arc<Context>,
    heaps: Mutex<Vec<Arc<Heap<P>>>>,
    /// Chunks that the worker does not know yet.
    new_chunks: SegQueue<Arc<Chunk<P>>>,
    /// Heaps whose thread has ended.
    idle: SegQueue<Arc<Heap<P>>>,
    /// The numbers of dropped chunks.
    recycled: SegQueue<u32>,
    /// The number of heaps ever made. Relaxed: it only counts. A number that wraps would only let the
    /// worker compare sequence numbers that have nothing to do with each other.
    made: AtomicU32,
}

impl<P: Send + 'static> Registry<P> {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            heaps: Mutex::new(Vec::new()),
            new_chunks: SegQueue::new(),
            idle: SegQueue::new(),
            recycled: SegQueue::new(),
            made: AtomicU32::new(0),
        }
    }

    /// The registry of a timer that has at least one heap, unless it is gone.
    pub(crate) fn of(context: &Context) -> Option<Arc<Self>> {
        context.registry_above.get()?.upgrade()?.downcast().ok()
    }

    /// An idle heap or a new one, for the calling thread.
    pub(super) fn take_heap(self: &Arc<Self>) -> Arc<Heap<P>> {
        self.context.registry_above.get_or_init(|| {
            let registry: Arc<dyn Any + Send + Sync> = self.clone();
            Arc::downgrade(&registry)
        });
        let idle = std::iter::from_fn(|| self.idle.pop()).find(|heap| heap.occupy());
        idle.unwrap_or_else(|| self.new_heap())
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
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let heap = Heap::new(self.context.clone(), tally, number);
        self.heaps.lock().push(heap.clone());
        heap
    }

    /// Gives a heap back for the next thread.
    pub(super) fn leave(&self, heap: Arc<Heap<P>>) {
        if !heap.internal {
            heap.vacate();
            self.idle.push(heap);
        }
    }

    /// Forgets the heaps that the worker has retired, and keeps their counts. False if another thread uses
    /// the lists: the worker tries again later.
    fn forget_retired(&self) -> bool {
        let Some(mut heaps) = self.heaps.try_lock() else { return false };
        if !heaps.iter().any(|heap| heap.is_retired()) {
            return true;
        }
        let retired = heaps.iter().filter(|heap| heap.is_retired());
        let Some(()) = self.context.fold_tallies(retired.map(|heap| &heap.tally)) else {
            return false;
        };
        heaps.retain(|heap| !heap.is_retired());
        if heaps.len() < heaps.capacity() / 4 {
            heaps.shrink_to_fit();
        }
        drop(heaps);
        for _ in 0..self.idle.len() {
            let still_idle = self.idle.pop().filter(|heap| !heap.is_retired());
            still_idle.into_iter().for_each(|heap| self.idle.push(heap));
        }
        true
    }

    /// A new chunk of `heap`, which the caller owns. `None` if the timer can have no more chunks.
    pub(super) fn new_chunk(&self, heap: &Arc<Heap<P>>) -> Option<Arc<Chunk<P>>> {
        let id = match self.recycled.pop() {
            Some(id) => id,
            None => self.context.new_chunk_number(MAX_CHUNKS)?,
        };
        let chunk = Chunk::new(id, heap);
        heap.chunks.lock().insert(id, chunk.clone());
        self.new_chunks.push(chunk.clone());
        // If the timer has ended before the insertion, this thread sees it closed. See `pinned`.
        if self.context.is_closed() {
            self.unlist(heap, &chunk);
        }
        Some(chunk)
    }

    /// Takes a chunk of a closed timer out of the lists, since nobody else will: it is freed with its last
    /// slot. What its owner arms there, the owner takes back. Its number is not used again, because the
    /// worker may know the chunk already.
    #[cold]
    fn unlist(&self, heap: &Heap<P>, chunk: &Arc<Chunk<P>>) {
        chunk.orphan();
        heap.chunks.lock().remove(&chunk.id);
        while self.new_chunks.pop().is_some() {}
    }

    /// A chunk beyond all limits, whose first slot is reserved for the caller and whose other slots are
    /// never armed. It leads to the timer if a future finds no free slot.
    pub(crate) fn spare_chunk(self: &Arc<Self>) -> Arc<Chunk<P>> {
        let heap = self.take_heap();
        let chunk = Chunk::new(MAX_CHUNKS - 1, &heap);
        self.leave(heap);
        chunk.orphan();
        chunk.disown(ALL & !1);
        chunk
    }

    /// The next chunk that the worker does not know yet.
    pub(crate) fn next_new_chunk(&self) -> Option<Arc<Chunk<P>>> {
        if self.new_chunks.is_empty() { None } else { self.new_chunks.pop() }
    }

    /// Drops the empty chunks of all heaps, except for the few that each heap keeps, and then the heaps of
    /// ended threads that have no chunk. Passes the numbers of the chunks to `released`. Only the worker
    /// calls it. Returns false if it must try again, because another thread uses a list.
    pub(crate) fn release(&self, mut released: impl FnMut(u32)) -> bool {
        let Some(heaps) = self.heaps.try_lock().map(|heaps| heaps.clone()) else { return false };
        let mut done = true;
        for heap in heaps {
            if heap.has_chunks_to_release() {
                done &= heap.release(|id| {
                    released(id);
                    self.recycled.push(id);
                });
            }
            done &= heap.retire().is_some();
        }
        done & self.forget_retired()
    }

    /// The chunk with this number.
    pub(crate) fn chunk(&self, id: u32) -> Option<Arc<Chunk<P>>> {
        let heaps = self.heaps.lock();
        heaps.iter().find_map(|heap| heap.chunks.lock().get(&id).cloned())
    }

    /// A snapshot of each thread's heap.
    pub(crate) fn heap_metrics(&self) -> Vec<HeapMetrics> {
        let heaps = self.heaps.lock();
        heaps.iter().filter(|heap| !heap.internal).map(|heap| heap.metrics()).collect()
    }

    /// Ends all pending timeouts, and gives up all chunks. The caller has closed the timer. The crate's
    /// own timeouts are always cancelled; `end` applies to the others. Calls `ended` with the slot and the
    /// deadline of each timeout.
    pub(crate) fn empty(&self, end: Phase, mut ended: impl FnMut(&Chunk<P>, usize, u64)) {
        self.context.begin_emptying();
        let heaps = self.heaps.lock().clone(); // so that a snapshot does not wait
        for heap in heaps {
            let end = if heap.internal { Phase::Cancelled } else { end };
            let (mut count, mut unqueued) = (0, 0);
            // In the order in which they were made: about that of their memory, and that of the deadlines.
            let mut chunks: Vec<_> = heap.take_chunks().into_values().collect();
            chunks.sort_unstable_by_key(|chunk| chunk.id);
            for chunk in chunks {
                for (offset, slot) in chunk.slots().enumerate() {
                    let Some(Emptied { deadline, filed }) = slot.empty(end) else { continue };
                    count += 1;
                    unqueued += u64::from(!filed);
                    ended(&chunk, offset, deadline);
                }
                chunk.orphan();
            }
            heap.clear();
            if !heap.internal {
                self.context.ended(count as usize);
            }
            let counts = self.context.counts_of(heap.internal);
            let ends = if end == Phase::Returned { &counts.returned } else { &counts.cancelled };
            ends.add_shared(count);
            counts.unqueued.add_shared(unqueued);
        }
        while self.new_chunks.pop().is_some() {}
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
