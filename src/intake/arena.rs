//! An arena: what a thread that schedules has in one timer, and what is left of it when the thread has ended.
//!
//! A thread's slots lie in chunks (see `chunk`). The thread arms them through its `owner`. The arena has
//! what must outlive the thread: the list of its chunks, the pool of those that a next owner can use, and
//! the counts.
//!
//! | user | means | changed by |
//! |---|---|---|
//! | OWNED | a thread has the arena | that thread, when it ends: to IDLE |
//! | IDLE | the arena waits for the next thread | a thread that begins: to OWNED; the worker, if no chunk is left: to RETIRED |
//! | RETIRED | the worker has dropped the arena | nobody |

use super::chunk::{Chunk, Home, SLOTS};
use super::context::{Link, SharedContext};
use crate::base::sync::{Arc, AtomicU8, AtomicUsize, Mutex, Ordering, SegQueue, fence};
use crate::metrics::{Tally, ThreadMetrics};
use std::collections::BTreeMap;

const OWNED: u8 = 0;
const IDLE: u8 = 1;
const RETIRED: u8 = 2;

/// See the head. Its chunks keep its memory, even after the end of the timer, so what is large lies elsewhere.
pub(crate) struct Arena<P> {
    /// The counts of the arena's thread. The number of timeouts that were scheduled is also the sequence number of
    /// the next one.
    pub(crate) tally: Arc<Tally>,
    /// Whether this is the arena of the crate's own timeouts. Its tally is `Counts::internals`.
    pub(crate) internal: bool,
    /// Its number among the timer's arenas.
    number: u32,
    user: AtomicU8,
    /// The name of the thread that has the arena.
    pub(super) thread: Mutex<Option<String>>,
    pub(crate) timer: Link,
    /// Disowned chunks that have free slots for a next owner.
    pub(super) pool: Box<SegQueue<Arc<Chunk<P>>>>,
    /// The number of chunks in the pool, or on their way there, that have no used slot.
    /// It wraps for a moment if a chunk is uncounted before it is counted.
    empty: AtomicUsize,
    /// All chunks, by number. The worker waits for this lock only to end the timer; see `registry`. A hash map would
    /// stop the thread while it grows.
    pub(super) chunks: Mutex<BTreeMap<u32, Arc<Chunk<P>>>>,
}

impl<P> Arena<P> {
    /// An arena that the calling thread owns.
    pub(super) fn new(context: &SharedContext, tally: Arc<Tally>, number: u32) -> Arc<Self> {
        Arc::new(Self {
            internal: Arc::ptr_eq(&tally, &context.counts.internals),
            number,
            tally,
            user: AtomicU8::new(OWNED),
            thread: Mutex::new(None),
            timer: Link::to(context),
            pool: Box::new(SegQueue::new()),
            empty: AtomicUsize::new(0),
            chunks: Mutex::new(BTreeMap::new()),
        })
    }

    /// A thread takes an idle arena. False if the worker has retired it.
    pub(super) fn occupy(&self) -> bool {
        self.change_user(IDLE, OWNED)
    }

    /// The arena's thread has ended. Its empty chunks are released.
    pub(super) fn vacate(&self) {
        self.user.store(IDLE, Ordering::Release); // the worker adds up the counts of a retired arena
        fence(Ordering::SeqCst); // pairs with the fence of `count_empty`
        self.consider_release();
    }

    /// The worker takes an idle arena without chunks out of use. False if the arena is in use. `None` if
    /// another thread uses the list of chunks: the worker tries again later.
    ///
    /// It looks first, because a thread that meets a retired arena drops it for good. Under the lock, no chunk
    /// comes in between.
    pub(super) fn retire(&self) -> Option<bool> {
        if self.user.load(Ordering::Relaxed) != IDLE {
            return Some(false);
        }
        let chunks = self.chunks.try_lock()?;
        Some(chunks.is_empty() && self.change_user(IDLE, RETIRED))
    }

    pub(super) fn is_retired(&self) -> bool {
        self.user.load(Ordering::Relaxed) == RETIRED
    }

    fn change_user(&self, from: u8, to: u8) -> bool {
        self.user.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(super) fn is_owned(&self) -> bool {
        self.user.load(Ordering::Relaxed) == OWNED
    }

    /// The number of empty chunks in the pool, or on their way there.
    pub(super) fn empty_chunks(&self) -> usize {
        usize::try_from(self.empty.load(Ordering::Relaxed) as isize).unwrap_or(0)
    }

    pub(super) fn uncount_empty(&self) {
        self.empty.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes all chunks out of the list, because the timer ends.
    pub(super) fn take_chunks(&self) -> BTreeMap<u32, Arc<Chunk<P>>> {
        std::mem::take(&mut *self.chunks.lock())
    }

    /// Empties the pool after the timer has ended.
    pub(super) fn clear(&self) {
        while self.pool.pop().is_some() {}
    }

    /// A thread enters, or leaves with `None`. Models do not name threads: no race depends on a name.
    pub(super) fn set_thread(&self, name: Option<String>) {
        if cfg!(not(any(loom, shuttle))) {
            *self.thread.lock() = name;
        }
    }

    pub(super) fn metrics(&self) -> ThreadMetrics {
        ThreadMetrics {
            thread: self.thread.lock().clone(),
            scheduled: self.tally.scheduled.get(),
            slots: (self.chunks.lock().len() * SLOTS) as u64,
        }
    }
}

impl<P: Send> Home<P> for Arena<P> {
    fn timer(&self) -> &Link {
        &self.timer
    }

    fn is_internal(&self) -> bool {
        self.internal
    }

    fn number(&self) -> u32 {
        self.number
    }

    /// The end of the timer empties the pool. If the push came too late for that, this thread empties it.
    fn reuse(&self, chunk: Arc<Chunk<P>>) {
        self.pool.push(chunk);
        fence(Ordering::SeqCst); // pairs with the fence of `begin_emptying`
        if self.timer.gate.is_emptied() {
            self.clear();
        }
    }

    fn count_empty(&self) {
        self.empty.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst); // pairs with the fence of `vacate`
        self.consider_release();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
