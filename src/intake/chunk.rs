//! A chunk: 62 slots in one piece of memory, and one word that decides who uses them and how long the chunk lives.
//! It also announces its new and moved timeouts to the worker.
//!
//! Concepts:
//!
//! - At most one thread *owns* a chunk, and only the owner arms its slots. The owner has a bitmap of the
//!   free slots for itself (see `owner`), so it arms and frees a slot without a read-modify-write.
//! - A slot is free when its last pin is gone (see `slot`). A handle that cancels keeps the live pin until
//!   it is dropped (see `pin`).
//! - Other threads free slots too, and slots are also freed in a chunk without an owner. These slots go
//!   into the chunk's own bitmap, in the word. A thread may collect several of them first.
//! - A chunk without an owner is *unowned*. Once enough of its slots are free, it waits in its *pool* for the next
//!   owner. It is *vacant* if all of them are free.
//! - A *closed* chunk gets no owner any more.
//!
//! The word has a bit for each slot, and UNOWNED and CLOSED:
//!
//! | change of the word | by | fails if |
//! |---|---|---|
//! | sets bits of slots | a thread that frees them | never |
//! | sets UNOWNED, and the bits of the free slots | the owner, as it leaves the chunk | never |
//! | clears the bits of slots | the owner, which takes them | never |
//! | clears UNOWNED and the bits of slots | the next owner, which has popped the chunk from the pool | CLOSED is set |
//! | sets CLOSED | the end of the timer | never |
//! | sets all bits: the word is FINAL | a thread that has made the chunk as the timer ended | never |
//! | sets CLOSED in a vacant chunk: the word is FINAL | the worker, which has popped the chunk from the pool | another change was first |
//!
//! A chunk enters its pool with the change after which it is unowned, not closed, and has `REUSABLE` free
//! slots. Only the thread that has popped it there may own it or release it.
//!
//! **The rule of lifetime.** A chunk has one counted reference to itself, from its making until its word is FINAL: all
//! slots are free, and it is UNOWNED and CLOSED. The change that makes the word FINAL drops the reference. No change
//! leaves FINAL: each bit of a slot is set by the one thread that has freed the slot, and only an owner clears bits:
//! a closed chunk gets no owner. All other references (of the table, the pool, the owner) keep a chunk for their
//! own holders only.
//!
//! So a thread may use the chunk while it keeps a bit out of the word: by a pin on one of its slots, a Free slot that
//! is not given back yet, or ownership. It may be gone as soon as that is given back. A thread that uses the chunk
//! afterwards takes a reference first.
//!
//! Invariants:
//! 1. The bit of a Free slot is set in exactly one place: in the owner's bitmap, in the word, or in the
//!    bitmap of a thread that collects free slots. The bit of a used slot is set nowhere. All
//!    changes of the word are read-modify-writes, so each bit is taken once.
//! 2. A chunk is in the pool at most once: exactly one change of the word makes it reusable.
//! 3. Every chunk is in the table from before its first slot is armed until the worker takes it out.

use super::pending::Promise;
use super::shared::{Link, Shared, SharedRef};
use super::slot::{SEQUENCE_SHIFT, Slot};
use super::table::MAX_CHUNKS;
use crate::base::prefetch::prefetch;
use crate::base::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, fence};
use crate::wheel::{Token, Version};

#[cfg(not(all(test, loom)))]
type Alive = ();
#[cfg(all(test, loom))]
use model::alive::Alive;

/// The number of slots in a chunk. A model has two, so that it explores the protocols and not the slots.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 62 };

/// The bits of all slots.
pub(super) const ALL: u64 = (1 << SLOTS) - 1;

/// The chunk has no owner.
const UNOWNED: u64 = 1 << 63;

/// The chunk gets no owner any more.
const CLOSED: u64 = 1 << 62;

const VACANT: u64 = ALL | UNOWNED;

/// See the rule of lifetime in the head.
const FINAL: u64 = VACANT | CLOSED;

/// The number of free slots from which on an unowned chunk can have a next owner, and an owner keeps its chunk.
pub(super) const REUSABLE: u32 = if cfg!(loom) { 1 } else { 16 };

pub(super) const OFFSET_BITS: u32 = 6;

/// The offset in the tokens that stand for a look at a chunk (see `worker/chunks`).
const LOOK: usize = (1 << OFFSET_BITS) - 1;

const _: () = assert!(SLOTS <= LOOK, "no slot has the offset of a look");

const _: () = assert!(MAX_CHUNKS == 1 << (32 - OFFSET_BITS), "an index has 32 bits");

/// The number of the chunk that a token names, and the offset of the slot in it.
#[inline]
pub(crate) fn locate(token: Token) -> (usize, usize) {
    ((token.index >> OFFSET_BITS) as usize, (token.index & ((1 << OFFSET_BITS) - 1)) as usize)
}

/// Whether a token stands for a look at a chunk, and not for a timeout.
#[inline]
pub(crate) fn is_look(token: Token) -> bool {
    locate(token).1 == LOOK
}

/// See the head.
pub(crate) struct Chunk<P> {
    /// The word of the head.
    pub(super) free: AtomicU64,
    /// The counted reference to itself, until the word is FINAL.
    me: Mutex<Option<Arc<Self>>>,
    pub(crate) promise: Promise,
    /// No slot from this one on was ever in use, so a look need not read them. Only the owner writes it.
    touched: AtomicUsize,
    /// A lower bound of the sequence numbers in use, shifted as in `Slot::sequence`. Only the owner writes it,
    /// while all slots are free. The worker may read an earlier one, which is lower.
    lowest: AtomicU64,
    /// Its number among the timer's chunks.
    pub(crate) id: u32,
    /// The number of its pool.
    pub(super) pool: usize,
    /// Whether its timeouts are the crate's own. No public count, limit or stop includes them.
    pub(crate) internal: bool,
    pub(crate) timer: Link<Self>,
    /// Notices a use after the end, in the models.
    pub(super) _alive: Alive,
    slots: [Slot<P>; SLOTS],
}

impl<P: Send + Sync + 'static> Chunk<P> {
    /// A chunk that the caller owns, with all of its slots. `None` if the timer is closed, or can have no more chunks.
    pub(super) fn new(shared: &SharedRef<Self>, pool: usize) -> Option<Arc<Self>> {
        let id = shared.table.take_number()?;
        let chunk = Arc::new(Self {
            free: AtomicU64::new(0),
            me: Mutex::new(None),
            promise: Promise::new(),
            touched: AtomicUsize::new(0),
            lowest: AtomicU64::new(0),
            id,
            pool,
            internal: pool == shared.pools.len() - 1,
            timer: Link::to(shared),
            _alive: Alive::default(),
            slots: std::array::from_fn(|_| Slot::new()),
        });
        #[cfg(all(test, loom))]
        Alive::keep_memory_of(&chunk);
        *chunk.me.lock() = Some(chunk.clone());
        shared.table.insert(id, chunk.clone());
        fence(Ordering::SeqCst); // pairs with the fence of the closing
        if shared.gate.is_closed() {
            // The end may have gone through the table before. So the chunk ends here, and the table keeps it.
            chunk.add(FINAL);
            return None;
        }
        Some(chunk)
    }
}

impl<P> Chunk<P> {
    #[inline]
    pub(crate) fn slot(&self, offset: usize) -> &Slot<P> {
        &self.slots[offset]
    }

    /// Prefetches what the run of a timeout uses.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        prefetch(self.slot(offset));
        prefetch(&self.free);
        prefetch(&self.internal);
    }

    /// The slots that may be in use. Relaxed, here and below: a slot is armed before the fence of its
    /// announcement, and the worker calls this after a fence.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot<P>> {
        self.slots[..self.touched()].iter()
    }

    pub(super) fn touched(&self) -> usize {
        self.touched.load(Ordering::Relaxed)
    }

    /// The owner arms a slot for the first time.
    #[cold]
    pub(super) fn set_touched(&self, touched: usize) {
        self.touched.store(touched, Ordering::Relaxed);
    }

    pub(crate) fn lowest(&self) -> u64 {
        self.lowest.load(Ordering::Relaxed)
    }

    /// The owner begins to use the chunk, all of whose slots are free, with this sequence number.
    pub(super) fn set_lowest(&self, sequence: u64) {
        self.lowest.store(sequence << SEQUENCE_SHIFT, Ordering::Relaxed);
    }

    /// Whether the chunk's lower bound is not after this sequence number, so that it also holds for a timeout with that
    /// one. They wrap.
    pub(super) fn is_before(&self, sequence: u64) -> bool {
        (self.lowest().wrapping_sub(sequence << SEQUENCE_SHIFT) as i64) <= 0
    }

    /// The token of a slot.
    #[inline]
    pub(crate) fn token(&self, offset: usize, version: Version) -> Token {
        Token { index: self.id << OFFSET_BITS | offset as u32, version }
    }

    /// The token of a look at this chunk.
    pub(crate) fn look_token(&self, version: Version) -> Token {
        self.token(LOOK, version)
    }

    /// The owner takes the slots that were given back. Acquire, here and below: pairs with the release of each
    /// `FreeSlots::give_back`.
    pub(super) fn take_free(&self) -> u64 {
        self.free.fetch_and(!ALL, Ordering::AcqRel) & ALL
    }

    /// The caller, which has popped the chunk from the pool, becomes its owner. Returns its free slots, or `None` if
    /// the chunk is closed.
    pub(super) fn own(&self) -> Option<u64> {
        let owned = |word| (word & CLOSED == 0).then_some(0);
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, owned)
            .ok()
            .map(|word| word & ALL)
    }

    /// The owner leaves the chunk. `free` is the owner's bitmap.
    pub(super) fn disown(self: &Arc<Self>, free: u64) {
        self.add(free | UNOWNED);
    }

    /// No thread may own the chunk any more, since the timer ends. The caller, or the table, keeps the chunk.
    pub(crate) fn close(&self) {
        if self.free.fetch_or(CLOSED, Ordering::AcqRel) == VACANT {
            self.forget_me();
        }
    }

    /// The worker, which has popped the chunk from the pool, ends it if it is vacant.
    pub(crate) fn release(self: &Arc<Self>) -> bool {
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let released = self.free.compare_exchange(VACANT, FINAL, done, failed).is_ok();
        if released {
            self.forget_me();
        }
        released
    }

    /// Sets bits of the word. The caller has a counted reference.
    fn add(self: &Arc<Self>, bits: u64) {
        let before = self.free.fetch_or(bits, Ordering::AcqRel);
        if matters(before, before | bits) {
            self.clone().tell(before, before | bits);
        }
    }

    /// A counted reference, while the word is not FINAL.
    #[cold]
    pub(crate) fn counted(&self) -> Option<Arc<Self>> {
        let me = self.me.lock().clone();
        #[cfg(all(test, loom))]
        self._alive.check();
        me
    }

    /// The word is FINAL. The caller has a counted reference.
    fn forget_me(&self) {
        let me = self.me.lock().take();
        drop(me);
    }

    /// Does what follows from a change of the word: at its end, or once the chunk is vacant, or reusable.
    #[cold]
    pub(super) fn tell(self: Arc<Self>, before: u64, after: u64) {
        if after == FINAL {
            return self.forget_me();
        }
        let Some(shared) = self.timer.shared() else { return };
        let pool = &shared.pools[self.pool];
        if is_reusable(after) && !is_reusable(before) {
            pool.push(self);
        }
        // Last: a release that begins before this finds the chunk, or is requested again.
        if after == VACANT {
            pool.count_vacant();
            shared.consider_release(pool);
        }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn is_vacant(&self) -> bool {
        self.free.load(Ordering::Acquire) & VACANT == VACANT
    }

    /// Announces a slot that the calling thread has armed, as the owner of the chunk. See `pending`.
    #[inline]
    pub(crate) fn announce_new(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        if self.promise.lower_announced(deadline) {
            self.want_look(deadline);
        }
    }

    /// Announces a slot that has become New in another way, or whose deadline was moved to a sooner time.
    /// Any thread may call it.
    pub(crate) fn announce_moved(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        if deadline < self.promise.look_by() {
            self.want_look(deadline);
        }
    }

    /// Announces a slot like `announce_moved` that is due by now: a missed run, or an internal timeout of this tick. It
    /// runs in the worker's current pass, in its own tick's turn, unless the tick ends first. Then it runs in the next
    /// pass.
    #[cold]
    pub(crate) fn announce_due(&self, deadline: u64) {
        self.announce_moved(deadline);
        self.timer.shared().into_iter().for_each(|shared| shared.tell_due());
    }

    /// Makes the worker look at the chunk by the deadline. Wakes it if it would sleep beyond that.
    #[cold]
    #[inline(never)]
    fn want_look(&self, deadline: u64) {
        let Some(shared) = self.timer.shared() else { return };
        let Shared { pending, alarm, .. } = &**shared;
        self.promise.want(deadline);
        pending.push(self.id);
        fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
        alarm.ring_for(deadline);
    }
}

/// Whether the chunk, which has no owner, can have a next one.
fn is_reusable(word: u64) -> bool {
    word & (UNOWNED | CLOSED) == UNOWNED && (word & ALL).count_ones() >= REUSABLE
}

/// Whether anything follows from a change of the word (see `Chunk::tell`).
#[inline]
pub(super) fn matters(before: u64, after: u64) -> bool {
    after | CLOSED == FINAL || is_reusable(after) && !is_reusable(before)
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
