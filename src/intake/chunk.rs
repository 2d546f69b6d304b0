//! A chunk: 62 slots in one piece of memory, and a bitmap of the slots that were given back.
//!
//! Concepts:
//!
//! - At most one thread *owns* a chunk, and only the owner arms its slots. The owner has a bitmap of the
//!   free slots for itself (see `owner`), so it arms and frees a slot without a read-modify-write.
//! - A slot is free when its last pin is gone (see `slot`). A handle that cancels keeps the live pin until
//!   it is dropped (see `timeout/handle`).
//! - Other threads free slots too, and slots are also freed in a chunk without an owner. These slots go
//!   into the chunk's own bitmap, `freed`. A thread may collect several of them first.
//! - A chunk without an owner is *disowned*. Once enough of its slots are free, it waits in the *pool* of
//!   its arena for the next owner.
//! - A *use* of a chunk begins when an owner takes it while all of its slots are free. It ends when the chunk has
//!   no owner and no used slot: the chunk is *empty* then.
//!
//! `freed` is one atomic word: one bit for each slot, and bit 63 if the chunk is disowned.
//!
//! | `freed` | the owner | a thread that frees a slot |
//! |---|---|---|
//! | bit 63 is clear | exists; its own frees go into its own bitmap | sets the slot's bit |
//! | bit 63, and fewer than `REUSABLE` slots | none | sets the slot's bit; the thread that brings their number to `REUSABLE` puts the chunk into the pool |
//! | bit 63, and `REUSABLE` slots or more | none; the chunk is in the pool, or the worker is checking it | sets the slot's bit; the thread that sets the last bit counts the chunk as empty |
//!
//! A chunk leaves the pool in one of two ways: the next owner takes it with all bits, or the worker drops
//! it because it is empty (see `arena`).
//!
//! **The rule of lifetime.** A chunk has one counted reference to itself for each use that has begun and whose end
//! is not told yet. The owner that begins a use adds it. The thread whose change of `freed` ends the use drops one.
//! The next use may begin before the end of the last one is told, so there may be two. All other references (of
//! the arena's list, the pool, the worker) keep a chunk for their own holders only, and the end of a timer
//! only gives them up.
//!
//! So the chunk is there for whoever has a pin on one of its slots, a Free slot that is not given back yet, or the
//! ownership. It may be gone as soon as that was given back. A thread that uses the chunk afterwards takes
//! a reference first.
//!
//! Invariants:
//! 1. The bit of a Free slot is set in exactly one place: in the owner's bitmap, in `freed`, or in the
//!    bitmap of a thread that collects free slots. The bit of a used or reserved slot is set nowhere. All
//!    changes of `freed` are read-modify-writes, so each bit is taken once.
//! 2. A chunk is in the pool at most once: exactly one change of `freed` makes it reusable.
//! 3. Every chunk of an arena is in the arena's list from before its first slot is armed until the worker
//!    drops it.

use super::context::Link;
use super::pending::Promise;
use super::slot::{SEQUENCE_SHIFT, Slot};
use crate::base::prefetch::prefetch;
use crate::base::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::wheel::Token;
use std::sync::Weak;

/// The number of slots in a chunk. A model has two, so that it explores the protocols and not the slots.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 62 };

/// The bits of all slots.
pub(super) const ALL: u64 = (1 << SLOTS) - 1;

/// The bit of a chunk that has no owner.
pub(super) const DISOWNED: u64 = 1 << 63;

/// The number of free slots from which on a disowned chunk can have a next owner.
const REUSABLE: u32 = if cfg!(loom) { 1 } else { 16 };

const OFFSET_BITS: u32 = 6;

/// The offset in the tokens that stand for a look at a chunk (see `known_chunks`).
pub(super) const LOOK: usize = (1 << OFFSET_BITS) - 1;

const _: () = assert!(SLOTS <= LOOK, "no slot has the offset of a look");

/// The most chunks that one timer can have.
pub(crate) const MAX_CHUNKS: u32 = 1 << (32 - OFFSET_BITS);

/// The chunk and the slot that a token's index names.
#[inline]
pub(crate) fn locate(index: u32) -> (usize, usize) {
    ((index >> OFFSET_BITS) as usize, (index & ((1 << OFFSET_BITS) - 1)) as usize)
}

/// The index in the tokens of a look.
pub(super) fn look_index(id: usize) -> u32 {
    (id << OFFSET_BITS | LOOK) as u32
}

/// The arena of a chunk: the calls that a chunk makes.
pub(super) trait Home<P>: Send + Sync {
    fn timer(&self) -> &Link;

    /// Whether the arena has the crate's own timeouts.
    fn is_internal(&self) -> bool;

    /// The arena's number.
    fn number(&self) -> u32;

    /// Offers a disowned chunk to the next owner.
    fn reuse(&self, chunk: Arc<Chunk<P>>);

    /// Counts a chunk without a used slot.
    fn count_empty(&self);
}

/// See the head.
pub(crate) struct Chunk<P> {
    pub(super) freed: AtomicU64,
    /// The chunk itself.
    me: Weak<Self>,
    /// References to itself: one for each use that has begun and whose end is not told yet (see the head). Two if
    /// the next use begins before the end of the last one is told.
    in_use: Mutex<Vec<Arc<Self>>>,
    pub(super) promise: Promise,
    /// No slot from this one on was ever in use, so a look need not read them. Only the owner writes it.
    used: AtomicUsize,
    /// A lower bound of the sequence numbers in use, shifted as in `Slot::sequence`. Only the owner writes it,
    /// while all slots are free. The worker may read a former one, which is lower.
    from: AtomicU64,
    /// The number of its arena. The sequence numbers of one arena's timeouts can be compared.
    pub(crate) arena: u32,
    /// Its number among the timer's chunks.
    pub(crate) id: u32,
    /// Whether its timeouts are the crate's own. No public count, limit or stop includes them.
    pub(crate) internal: bool,
    /// Its arena. The reference is weak because the arena's queues hold the chunk.
    home: Weak<dyn Home<P>>,
    pub(crate) timer: Link,
    slots: [Slot<P>; SLOTS],
}

impl<P> Chunk<P> {
    /// A chunk that the caller owns, with all of its slots.
    pub(super) fn new<H: Home<P> + 'static>(id: u32, home: &Arc<H>) -> Arc<Self> {
        let timer = home.timer().clone();
        let (internal, arena) = (home.is_internal(), home.number());
        let home: Weak<dyn Home<P>> = Arc::<H>::downgrade(home);
        Self::with(id, home, timer, internal, arena)
    }

    /// A chunk without an arena: it is never in a pool.
    pub(super) fn homeless<H: Home<P> + 'static>(id: u32, timer: Link) -> Arc<Self> {
        Self::with(id, Weak::<H>::new(), timer, false, u32::MAX)
    }

    fn with(
        id: u32,
        home: Weak<dyn Home<P>>,
        timer: Link,
        internal: bool,
        arena: u32,
    ) -> Arc<Self> {
        let chunk = Arc::new_cyclic(|me| Self {
            freed: AtomicU64::new(0),
            me: me.clone(),
            in_use: Mutex::new(Vec::with_capacity(1)),
            promise: Promise::new(),
            used: AtomicUsize::new(0),
            from: AtomicU64::new(0),
            arena,
            id,
            internal,
            home,
            timer,
            slots: std::array::from_fn(|_| Slot::new()),
        });
        chunk.begin_use();
        chunk
    }

    /// The caller becomes the owner of the chunk, none of whose slots is in use. It has a reference.
    fn begin_use(self: &Arc<Self>) {
        self.in_use.lock().push(self.clone());
    }

    #[inline]
    pub(crate) fn slot(&self, offset: usize) -> &Slot<P> {
        &self.slots[offset]
    }

    /// Prefetches what the run of a timeout uses.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        prefetch(self.slot(offset));
        prefetch(&self.freed);
        prefetch(&self.internal);
    }

    /// Prefetches what `from` reads.
    #[inline]
    pub(crate) fn prefetch_head(&self) {
        prefetch(&self.from);
    }

    /// Prefetches the slots for a look.
    pub(crate) fn prefetch_all(&self) {
        (0..SLOTS).step_by(3).for_each(|offset| prefetch(self.slot(offset)));
    }

    /// The slots that may be in use. Relaxed, here and below: a slot is armed before the fence of its
    /// announcement, and the worker calls this after a fence.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot<P>> {
        self.slots[..self.used()].iter()
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The owner reserves a slot for the first time.
    #[cold]
    pub(super) fn set_used(&self, used: usize) {
        self.used.store(used, Ordering::Relaxed);
    }

    pub(super) fn from(&self) -> u64 {
        self.from.load(Ordering::Relaxed)
    }

    /// The owner begins to use the chunk, all of whose slots are free, with this sequence number.
    pub(super) fn set_from(&self, sequence: u64) {
        self.from.store(sequence << SEQUENCE_SHIFT, Ordering::Relaxed);
    }

    /// The index in the tokens of a slot.
    #[inline]
    pub(crate) fn index(&self, offset: usize) -> u32 {
        self.id << OFFSET_BITS | offset as u32
    }

    pub(crate) fn token(&self, offset: usize, version: u16) -> Token {
        Token { index: self.index(offset), version }
    }

    /// Takes the bits of the slots that were given back. Only the owner, or the next owner, may call
    /// it. Acquire: pairs with the release of each `FreeSlots::give_back`.
    pub(super) fn take_freed(self: &Arc<Self>) -> u64 {
        let before = self.freed.swap(0, Ordering::AcqRel);
        if before == ALL | DISOWNED {
            self.begin_use();
        }
        before & ALL
    }

    /// A counted reference.
    #[cold]
    pub(super) fn counted(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// What follows from a change of `freed`.
    #[cold]
    pub(super) fn tell(self: Arc<Self>, change: Change) {
        if change.emptied {
            let used = self.in_use.lock().pop();
            drop(used);
        }
        let Some(home) = self.home.upgrade() else { return };
        if change.emptied {
            home.count_empty();
        }
        if change.pooled {
            home.reuse(self);
        }
    }

    /// Whether the chunk has no owner and no used slot.
    pub(super) fn is_empty(&self) -> bool {
        self.freed.load(Ordering::Acquire) & (ALL | DISOWNED) == ALL | DISOWNED
    }
}

/// The effects of a change of `freed`.
#[derive(Clone, Copy)]
pub(super) struct Change {
    /// The chunk now has enough free slots for a next owner.
    pooled: bool,
    /// The chunk now has no used slot.
    emptied: bool,
}

impl Change {
    #[inline]
    pub(super) fn between(before: u64, after: u64) -> Option<Self> {
        let reusable = |freed: u64| freed & DISOWNED != 0 && (freed & ALL).count_ones() >= REUSABLE;
        let all = |freed: u64| freed & (ALL | DISOWNED) == ALL | DISOWNED;
        let emptied = all(after) && !all(before);
        let pooled = reusable(after) && !reusable(before);
        (emptied || pooled).then_some(Self { pooled, emptied })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
