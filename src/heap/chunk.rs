//! A chunk: 62 slots that lie together, and the bitmap of those that were given back.
//!
//! Slots are handed to producers a chunk at a time. A chunk is *owned* by one thread, which arms its
//! slots without any read-modify-write: the owner keeps a bitmap of the free ones to itself (see
//! `owner`). A slot that somebody else frees, or that is freed in a chunk that nobody owns, goes into
//! the chunk's own bitmap. Bit 63 says that nobody owns the chunk, and bit 62 that its timer has ended.
//!
//! | `freed` | the owner | who frees a slot |
//! |---|---|---|
//! | no bit 63: owned | its own frees go into its own bitmap | sets the slot's bit |
//! | bit 63, fewer than `REUSABLE` others | none: the owner has disowned it | sets the bit; the one that makes it `REUSABLE` puts the chunk into the pool of its heap |
//! | bit 63, `REUSABLE` others or more | none: it is in the pool, or the worker has it in hand | sets the bit; the one that sets the last counts the chunk as empty |
//!
//! A chunk leaves the pool with the next owner, who takes all bits, or it is empty and the worker
//! drops it (see `heap`). If the timer ends before, the chunk is *orphaned*: it keeps a reference to
//! itself, and whoever gives back its last slot, when nobody owns it, drops that.
//!
//! Handles have no counted reference, only pins (see `pinned`). So a chunk may be gone as soon as a
//! slot was given back. Whoever gives back slots takes a reference before, if there will be more to do
//! afterwards.
//!
//! Invariants:
//! 1. The bit of a Free slot is set in one place: in the owner's bitmap or here. The bit of a used
//!    slot is set nowhere. All changes of `freed` are read-modify-writes, so each bit is taken once.
//! 2. A chunk is in the pool at most once: exactly one change of `freed` makes it reusable.
//! 3. Every chunk of a heap is in the heap's list from before its first slot is armed until the worker
//!    drops it.

use super::context::Context;
use super::slot::{Phase, Slot};
use crate::base::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::time::tick::NEVER;
use crate::wheel::Token;
use std::sync::Weak;

/// The slots of a chunk. A model has few, so that its schedules are about the protocols.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 62 };

/// All slots are free.
pub(super) const ALL: u64 = (1 << SLOTS) - 1;

/// Nobody owns the chunk.
pub(super) const DISOWNED: u64 = 1 << 63;

/// The timer has ended, and the chunk keeps itself.
const ORPHANED: u64 = 1 << 62; // not a slot's: see `SLOTS`

/// The free slots that make it worth to own the chunk again.
const REUSABLE: u32 = if cfg!(loom) { 1 } else { 16 };

const OFFSET_BITS: u32 = 6;

/// The greatest number of chunks of one timer.
pub(crate) const MAX_CHUNKS: u32 = 1 << (32 - OFFSET_BITS);

/// The chunk and the slot that a token's index names.
#[inline]
pub(crate) fn locate(index: u32) -> (usize, usize) {
    ((index >> OFFSET_BITS) as usize, (index & ((1 << OFFSET_BITS) - 1)) as usize)
}

/// The heap of a chunk, as the chunk knows it.
pub(super) trait Home<P>: Send + Sync {
    fn context(&self) -> &Arc<Context>;

    /// Whether the timeouts are the crate's own.
    fn is_internal(&self) -> bool;

    /// Tells the worker of a New slot in the chunk.
    fn announce(&self, chunk: &Arc<Chunk<P>>, deadline: u64);

    /// Offers a disowned chunk to the next owner.
    fn reuse(&self, chunk: Arc<Chunk<P>>);

    /// Counts a chunk without a used slot.
    fn count_empty(&self);
}

/// Slots in one piece of memory.
pub(crate) struct Chunk<P> {
    freed: AtomicU64,
    /// The chunk itself.
    me: Weak<Self>,
    /// A reference to itself, if it is orphaned and has slots in use.
    kept: Mutex<Option<Arc<Self>>>,
    /// The chunk waits in the pending queue of its heap, or the worker is about to look through it.
    marked: AtomicBool,
    /// A sequence number before which no slot is New. Lowered by whoever marks the chunk.
    new_from: AtomicU64,
    /// The worker has dropped it: it is empty, and only a late mark can still name it.
    released: AtomicBool,
    /// Its number among the timer's chunks.
    pub(super) id: u32,
    /// Its timeouts are the crate's own: no count, limit or stop shows them.
    pub(crate) internal: bool,
    /// Its heap. Weak, since the heap's queues hold the chunk.
    home: Weak<dyn Home<P>>,
    pub(crate) context: Arc<Context>,
    slots: [Slot<P>; SLOTS],
}

impl<P> Chunk<P> {
    /// A chunk that the caller owns, with all of its slots.
    pub(super) fn new<H: Home<P> + 'static>(id: u32, version: u32, home: &Arc<H>) -> Arc<Self> {
        let context = home.context().clone();
        let internal = home.is_internal();
        let home: Weak<dyn Home<P>> = Arc::<H>::downgrade(home);
        Arc::new_cyclic(|me| Self {
            freed: AtomicU64::new(0),
            me: me.clone(),
            kept: Mutex::new(None),
            marked: AtomicBool::new(false),
            new_from: AtomicU64::new(u64::MAX),
            released: AtomicBool::new(false),
            id,
            internal,
            home,
            context,
            slots: std::array::from_fn(|_| Slot::new(version)),
        })
    }

    #[inline]
    pub(crate) fn slot(&self, offset: usize) -> &Slot<P> {
        &self.slots[offset % SLOTS]
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot<P>> {
        self.slots.iter()
    }

    /// The index in the tokens of a slot.
    #[inline]
    pub(crate) fn index(&self, offset: usize) -> u32 {
        self.id << OFFSET_BITS | offset as u32
    }

    pub(crate) fn token(&self, offset: usize, version: u16) -> Token {
        Token { index: self.index(offset), version }
    }

    /// Takes the bits of the slots that were given back, for the owner, or for the one who owns the
    /// chunk from now on. Acquire: pairs with the release of each `give_back`.
    pub(super) fn take_freed(&self) -> u64 {
        self.freed.fetch_and(ORPHANED, Ordering::AcqRel) & ALL
    }

    /// Gives back Free slots that are not in the caller's bitmap if it owns the chunk. The chunk may
    /// be gone afterwards.
    #[inline]
    pub(crate) fn give_back(&self, slots: u64) {
        self.add_freed(slots);
    }

    /// Ends the ownership of the caller, whose bitmap is `free`.
    pub(super) fn disown(self: &Arc<Self>, free: u64) {
        self.add_freed(free | DISOWNED);
    }

    #[inline]
    fn add_freed(&self, more: u64) {
        let mut before = self.freed.load(Ordering::Relaxed);
        loop {
            let after = before | more;
            // Before the exchange, since the chunk may be gone after it.
            let change = Change::between(before, after);
            let me = change.is_some().then(|| self.me.upgrade()).flatten();
            let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.freed.compare_exchange_weak(before, after, done, failed) {
                Ok(_) => {
                    return change.zip(me).into_iter().for_each(|(change, me)| me.tell(change));
                }
                Err(now) => before = now,
            }
        }
    }

    #[cold]
    fn tell(self: Arc<Self>, change: Change) {
        if change.ended {
            drop(self.kept.lock().take());
        }
        let Some(home) = self.home.upgrade() else { return };
        if change.emptied {
            home.count_empty();
        }
        if change.pooled {
            home.reuse(self);
        }
    }

    /// Lets the chunk keep itself as long as one of its slots is in use. The timer has ended.
    pub(super) fn orphan(self: &Arc<Self>) {
        *self.kept.lock() = Some(self.clone());
        let before = self.freed.fetch_or(ORPHANED, Ordering::AcqRel);
        if before & (ALL | DISOWNED) == ALL | DISOWNED {
            drop(self.kept.lock().take());
        }
    }

    /// Whether nobody owns the chunk, and no slot is used.
    pub(super) fn is_empty(&self) -> bool {
        self.freed.load(Ordering::Acquire) & (ALL | DISOWNED) == ALL | DISOWNED
    }

    pub(super) fn is_marked(&self) -> bool {
        self.marked.load(Ordering::Relaxed)
    }

    /// Marks the chunk as one with something new; true for the one who marks it first. Ordered by
    /// the fence of `Heap::announce`.
    #[inline]
    pub(super) fn mark(&self) -> bool {
        !self.marked.load(Ordering::Relaxed) && !self.marked.swap(true, Ordering::Relaxed)
    }

    /// Takes the mark off, for the worker. Ordered by the fence of `Heap::scan`. A swap, so that
    /// it comes after all marks of this time in the queue; a store would do, but not for loom.
    pub(super) fn unmark(&self) {
        self.new_from.store(u64::MAX, Ordering::Relaxed);
        self.marked.swap(false, Ordering::Release);
    }

    /// Notes that slots from this sequence number on are New.
    pub(super) fn lower_new_from(&self, sequence: u64) {
        let relaxed = Ordering::Relaxed;
        let lower = |from| (sequence < from).then_some(sequence);
        let _ = self.new_from.fetch_update(relaxed, relaxed, lower);
    }

    /// A sequence number before which no slot is New. Valid once the chunk is in the queue.
    pub(super) fn new_from(&self) -> u64 {
        self.new_from.load(Ordering::Relaxed)
    }

    /// The number of New slots.
    pub(super) fn count_new(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.slots().filter(|slot| slot.phase() == Phase::New).count()
    }

    /// The earliest deadline of the New slots; `NEVER` if there is none.
    pub(super) fn earliest_new(&self) -> u64 {
        let deadlines = self.slots().filter_map(Slot::new_deadline);
        deadlines.min().unwrap_or(NEVER)
    }

    /// Announces a slot that is New with this deadline, for any thread.
    pub(crate) fn announce(&self, deadline: u64) {
        if let Some((me, home)) = self.me.upgrade().zip(self.home.upgrade()) {
            home.announce(&me, deadline);
        }
    }

    /// Relaxed, here and below: only the worker asks.
    pub(super) fn set_released(&self) {
        self.released.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_released(&self) -> bool {
        self.released.load(Ordering::Relaxed)
    }
}

/// What a change of `freed` has brought about.
#[derive(Clone, Copy)]
struct Change {
    /// There are enough free slots for a next owner.
    pooled: bool,
    /// The chunk has no used slot.
    emptied: bool,
    /// The chunk is an orphan without a used slot.
    ended: bool,
}

impl Change {
    #[inline]
    fn between(before: u64, after: u64) -> Option<Self> {
        let reusable = |freed: u64| freed & DISOWNED != 0 && (freed & ALL).count_ones() >= REUSABLE;
        let all = |freed: u64| freed & (ALL | DISOWNED) == ALL | DISOWNED;
        let emptied = all(after) && !all(before);
        let pooled = reusable(after) && !reusable(before);
        // The pool of a timer that has ended would keep its chunks.
        let orphan = after & ORPHANED != 0;
        (emptied || pooled && !orphan).then_some(Self {
            pooled: pooled && !orphan,
            emptied: emptied && !orphan,
            ended: emptied && orphan,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::heap::owner::tests::{Place, Producer, end_elsewhere};

    /// A chunk that is full and that nobody owns.
    fn disowned(producer: &mut Producer) -> Vec<Place> {
        let places = producer.arm(SLOTS);
        producer.arm(1);
        places
    }

    #[test]
    fn an_index_locates_its_slot() {
        let mut producer = Producer::new();
        for (chunk, offset) in producer.arm(3 * SLOTS) {
            assert_eq!(locate(chunk.index(offset)), (chunk.id as usize, offset));
            let token = chunk.token(offset, 9);
            assert_eq!((token.index, token.version), (chunk.index(offset), 9));
        }
        let last = (MAX_CHUNKS - 1) << OFFSET_BITS | (SLOTS as u32 - 1);
        assert_eq!(locate(last), (MAX_CHUNKS as usize - 1, SLOTS - 1));
    }

    #[test]
    fn a_disowned_chunk_is_pooled_once_it_has_enough_free_slots() {
        let mut producer = Producer::new();
        let places = disowned(&mut producer);
        let heap = producer.owner.heap.clone();
        for (freed, place) in places.iter().enumerate() {
            assert_eq!(heap.pool.len(), usize::from(freed >= REUSABLE as usize), "{freed} freed");
            assert!(!places[0].0.is_empty());
            end_elsewhere(place);
        }
        assert_eq!(heap.pool.len(), 1);
        assert!(places[0].0.is_empty());
    }

    /// The worker gives back the slots of a chunk together.
    #[test]
    fn slots_given_back_together_are_all_counted() {
        let mut producer = Producer::new();
        let places = disowned(&mut producer);
        let heap = producer.owner.heap.clone();
        for (chunk, offset) in &places {
            assert!(chunk.slot(*offset).take_back().is_some() && chunk.slot(*offset).unpin(2));
        }
        places[0].0.give_back(ALL & !1);
        assert_eq!((heap.pool.len(), places[0].0.is_empty()), (1, false));
        places[0].0.give_back(1);
        assert_eq!((heap.pool.len(), places[0].0.is_empty()), (1, true));
    }

    #[test]
    fn only_the_first_mark_succeeds() {
        let mut producer = Producer::new();
        let (chunk, _) = producer.arm(1).remove(0);
        assert!(!chunk.mark(), "marked when it was announced");
        chunk.unmark();
        assert!(chunk.mark() && !chunk.mark());
    }

    /// A handle may keep a chunk longer than its timer lives.
    #[test]
    fn a_chunk_outlives_its_heap() {
        let places = disowned(&mut Producer::new());
        assert!(places[0].0.home.upgrade().is_none());
        places.iter().for_each(end_elsewhere);
        places[0].0.announce(5);
    }
}
