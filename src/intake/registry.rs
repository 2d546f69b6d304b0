//! The registry of a timer: all of its arenas and chunks.
//!
//! A thread that schedules for the first time *enters*: it gets an idle arena, or a new one. When the
//! thread ends, it *leaves*: its arena and all chunks wait for the next thread, so timeouts outlive their
//! thread. Once no timeout and no handle is left in an idle arena, the worker *retires* it, and adds its
//! counts to those of threads without an arena. So the number of arenas follows the threads that are alive,
//! and those whose timeouts are.
//!
//! One more arena has the internal timeouts (see `timeout/internal`). It belongs to no thread.
//!
//! The worker learns of new chunks through the `table`. It waits for the locks here only to end the timer. All threads
//! hold them only for a short time.

use super::arena::Arena;
use super::chunk::{ALL, Chunk, MAX_CHUNKS};
use super::context::{Gate, Link, SharedContext};
use super::pin::{EmptiedSlots, Payload, Pin};
use super::slot::{Phase, Slot};
use super::table::Table;
use crate::base::sync::{Arc, AtomicU32, Mutex, Ordering, SegQueue};
use crate::metrics::{Tally, ThreadMetrics};
use crate::time::tick::NEVER;
use std::any::Any;

/// All arenas of one timer.
pub(crate) struct Registry<P> {
    pub(crate) context: SharedContext,
    pub(crate) gate: Arc<Gate>,
    arenas: Mutex<Vec<Arc<Arena<P>>>>,
    table: Table<P>,
    /// Arenas whose thread has ended.
    idle: SegQueue<Arc<Arena<P>>>,
    /// The number of arenas ever made. Relaxed: it only counts. A number that wraps would only let the
    /// worker compare sequence numbers that have nothing to do with each other.
    made: AtomicU32,
}

impl<P: Payload> Registry<P> {
    pub(crate) fn new(context: SharedContext) -> Self {
        Self {
            gate: context.gate.clone(),
            context,
            arenas: Mutex::new(Vec::new()),
            table: Table::new(),
            idle: SegQueue::new(),
            made: AtomicU32::new(0),
        }
    }

    /// The registry of a timer that has at least one arena, unless it is gone.
    pub(crate) fn of(timer: &Link) -> Option<Arc<Self>> {
        timer.context()?.registry_above.get()?.upgrade()?.downcast().ok()
    }

    /// An idle arena or a new one, for the calling thread.
    pub(super) fn take_arena(self: &Arc<Self>) -> Arc<Arena<P>> {
        self.lead_here();
        let idle = std::iter::from_fn(|| self.idle.pop()).find(|arena| arena.occupy());
        idle.unwrap_or_else(|| self.new_arena())
    }

    /// Makes the context lead to the registry.
    fn lead_here(self: &Arc<Self>) {
        self.context.registry_above.get_or_init(|| {
            let registry: Arc<dyn Any + Send + Sync> = self.clone();
            Arc::downgrade(&registry)
        });
    }

    fn new_arena(&self) -> Arc<Arena<P>> {
        let tally = Arc::new(Tally::default());
        self.context.counts.add_tally(tally.clone());
        self.add_arena(tally)
    }

    /// The arena of the crate's own timeouts. No thread gets it.
    pub(super) fn new_internal_arena(self: &Arc<Self>) -> Arc<Arena<P>> {
        self.lead_here();
        self.add_arena(self.context.counts.internals.clone())
    }

    fn add_arena(&self, tally: Arc<Tally>) -> Arc<Arena<P>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let arena = Arena::new(&self.context, tally, number);
        self.arenas.lock().push(arena.clone());
        arena
    }

    /// Gives an arena back for the next thread.
    pub(super) fn leave(&self, arena: Arc<Arena<P>>) {
        if !arena.internal {
            arena.vacate();
            self.idle.push(arena);
        }
    }

    /// Forgets the arenas that the worker has retired, and keeps their counts. False if another thread uses
    /// the lists: the worker tries again later.
    pub(super) fn forget_retired(&self) -> bool {
        let Some(mut arenas) = self.arenas.try_lock() else { return false };
        if !arenas.iter().any(|arena| arena.is_retired()) {
            return true;
        }
        let retired = arenas.iter().filter(|arena| arena.is_retired());
        let Some(()) = self.context.counts.fold_tallies(retired.map(|arena| &arena.tally)) else {
            return false;
        };
        arenas.retain(|arena| !arena.is_retired());
        if arenas.len() < arenas.capacity() / 4 {
            arenas.shrink_to_fit();
        }
        drop(arenas);
        for _ in 0..self.idle.len() {
            let still_idle = self.idle.pop().filter(|arena| !arena.is_retired());
            still_idle.into_iter().for_each(|arena| self.idle.push(arena));
        }
        true
    }

    /// A new chunk of `arena`, which the caller owns. `None` if the timer can have no more chunks.
    pub(super) fn new_chunk(&self, arena: &Arc<Arena<P>>) -> Option<Arc<Chunk<P>>> {
        let id = self.table.take_number()?;
        let chunk = Chunk::new(id, arena);
        // First, so that whoever finds the chunk in the list, to end the timer, finds it in the table too.
        self.table.put(chunk.clone());
        arena.chunks.lock().insert(id, chunk.clone());
        // If the timer has ended before the insertion, this thread sees it closed. See `pinned`.
        if self.gate.is_closed() {
            self.unlist(arena, &chunk);
        }
        Some(chunk)
    }

    /// Takes a chunk of a closed timer out of the lists, since nobody else will: it is freed with its last
    /// slot. What its owner arms there, the owner takes back. The worker may know the chunk already, and mistake it for
    /// the next one of its number. But the worker claims nothing any more.
    #[cold]
    fn unlist(&self, arena: &Arena<P>, chunk: &Arc<Chunk<P>>) {
        arena.chunks.lock().remove(&chunk.id);
        self.table.give_back(chunk.id);
    }

    /// A slot of a chunk beyond all limits, which is reserved for the caller. No slot there is
    /// ever armed. It leads to the timer if a future finds no free slot.
    pub(crate) fn spare(self: &Arc<Self>) -> Pin<P> {
        self.lead_here();
        let chunk = Chunk::homeless::<Arena<P>>(MAX_CHUNKS - 1, Link::to(&self.context));
        chunk.disown(ALL & !1);
        Pin::unused(&chunk, 0)
    }

    /// The chunk with this number, if the worker has not taken it yet.
    pub(super) fn take_new_chunk(&self, id: u32) -> Option<Arc<Chunk<P>>> {
        self.table.take(id)
    }

    /// All arenas. `None` if another thread uses their list.
    pub(super) fn try_arenas(&self) -> Option<Vec<Arc<Arena<P>>>> {
        self.arenas.try_lock().map(|arenas| arenas.clone())
    }

    /// Gives the number of a dropped chunk to a next one.
    pub(super) fn recycle(&self, id: u32) {
        self.table.give_back(id);
    }

    /// The chunk with this number.
    #[cfg(test)]
    pub(crate) fn chunk(&self, id: u32) -> Option<Arc<Chunk<P>>> {
        let arenas = self.arenas.lock();
        arenas.iter().find_map(|arena| arena.chunks.lock().get(&id).cloned())
    }

    /// A snapshot of each thread's arena.
    pub(crate) fn thread_metrics(&self) -> Vec<ThreadMetrics> {
        let arenas = self.arenas.lock();
        arenas.iter().filter(|arena| !arena.internal).map(|arena| arena.metrics()).collect()
    }

    /// The earliest deadline of all pending timeouts, the crate's own included. `None` if all wait for ever.
    ///
    /// O(slots). It takes each lock only to copy a list.
    pub(crate) fn earliest_deadline(&self) -> Option<u64> {
        let arenas = self.arenas.lock().clone();
        let chunks = arenas.iter().flat_map(|arena| {
            let chunks = arena.chunks.lock();
            chunks.values().cloned().collect::<Vec<_>>()
        });
        let earliest = chunks.filter_map(|chunk| {
            chunk.slots().filter_map(Slot::pending_deadline).min() // the chunk is not kept
        });
        earliest.min().filter(|&deadline| deadline != NEVER)
    }

    /// Ends all pending timeouts, and gives up all chunks. The caller has closed the timer. The crate's
    /// own timeouts are always cancelled; `end` applies to the others. Calls `ended` with the timeouts of each
    /// chunk.
    pub(crate) fn empty(&self, end: Phase, mut ended: impl FnMut(EmptiedSlots<P>)) {
        self.gate.begin_emptying();
        let arenas = self.arenas.lock().clone(); // so that a snapshot does not wait
        for arena in arenas {
            let end = if arena.internal { Phase::Cancelled } else { end };
            let (mut count, mut unqueued) = (0, 0);
            // In the order in which they were made: about that of their memory, and that of the deadlines.
            for (id, chunk) in arena.take_chunks() {
                drop(self.table.take(id));
                ended(EmptiedSlots::of(&chunk, end, |filed| {
                    count += 1;
                    unqueued += u64::from(!filed);
                }));
            }
            arena.clear();
            if !arena.internal {
                self.gate.ended(count as usize);
            }
            let counts = self.context.counts.of(arena.internal);
            let ends = if end == Phase::Returned { &counts.returned } else { &counts.cancelled };
            ends.add_shared(count);
            counts.unqueued.add_shared(unqueued);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<P> Registry<P> {
    /// Uses the list of arenas, as another thread does.
    pub(crate) fn use_arenas(&self) -> impl Drop + '_ {
        self.arenas.lock()
    }

    /// Uses up all chunk numbers.
    pub(crate) fn use_up_chunks(&self) {
        self.table.use_up();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
