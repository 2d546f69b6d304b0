//! The pending queue: how the worker learns of new timeouts.
//!
//! Concepts:
//!
//! - An armed slot is *New*. The worker finds it by a *look* at its chunk, in which it reads all slots.
//! - `look_by` is the time by which the worker looks at the chunk next. Only the worker writes it.
//! - `announced` is the same time, as far as the chunk's owner knows it.
//! - `wanted` is the time by which the producers want a look, until the worker takes it in.
//! - To *announce* a New slot is to make sure that the worker looks at its chunk by its deadline. If no
//!   look is promised by then, the thread lowers `wanted`, and pushes an *entry* onto the queue: the number of
//!   the chunk. It pushes none if another entry of the chunk is in the queue already. So a burst of random
//!   deadlines needs one entry for each chunk, and not five, and the queue is no longer than the list of
//!   chunks, however often timeouts are pulled forward.
//! - `taken` is how often the worker has taken `wanted`. `pushed` is what `taken` was before a push that is
//!   complete. While the two are equal, that push's entry is in the queue.
//!
//! | step | a producer that has armed or moved a slot | the worker, at a look |
//! |---|---|---|
//! | 1 | fence | sets `look_by` and `announced` to never, fence |
//! | 2 | if the deadline is before `announced` (the owner, which lowers it) or `look_by` (another thread): lowers `wanted`; reads `pushed`, then `taken`; if they differ, pushes an entry, and sets `pushed` | reads the slots |
//! | 3 | fence, wakes the worker if it would sleep beyond the deadline (see `alarm`) | sets both to the earliest deadline that is left, under which it files the chunk in the wheel |
//!
//! The worker takes in the whole queue in each pass, and again before it sleeps. With an entry, it raises
//! `taken` and takes `wanted`, which is then never. If that time is before `look_by`, it lowers `look_by` and
//! files the chunk in the wheel under that time (see `known_chunks`). So a timeout that is far away costs the
//! worker only a share of its chunk's entry. One that is cancelled before the look costs nothing more.
//!
//! **No new timeout is missed.** The fences are sequentially consistent, so of two fences one comes first.
//! If that of the producer's step 1 comes before that of the look, the look finds the slot New. If not, the
//! producer reads never, or what the worker or the owner has stored since. Such a value promises a look
//! that is still to come:
//!
//! - What the worker stores, it has filed in its wheel.
//! - What the owner stores in `announced`, it wants next.
//!   Only the owner relies on it, or the next owner after it. The change of `wanted` releases, and its taking
//!   acquires. So a look that follows from it sets `announced` to never after the owner has lowered it: no
//!   promise outlives its entry.
//!
//! **What is wanted is taken.** If the producer pushes an entry, the worker takes `wanted` after it. If not, the
//! producer has read one number from `pushed` and from `taken`. The entry of that push was pushed after `taken`
//! had this number, and for it the worker raises `taken` and takes `wanted`. Of that and of the producer's
//! change of `wanted`, one comes first. If it were the worker's, the producer would have acquired the higher
//! `taken`. So the worker takes what the producer wants.
//!
//! **No producer relies on another that is interrupted.** Each relies on the worker's promise, on a push that
//! is complete, or on what its own thread, or the chunk's last owner, has announced.
//!
//! **The order of one thread** needs no order in the queue. The worker restores it where it hands over the
//! timeouts of one tick (see `worker/tick_queue`).
//!
//! The producer's first fence also serves closing (see `context`).

use crate::base::queue::Queue;
use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::time::tick::NEVER;

/// A queue of this many entries wakes the worker, even if nothing in it is due. So it stays short.
const LONG_QUEUE: usize = 1 << 9;

/// The number of entries, or of new chunks, up to which the queue of them does not allocate.
pub(super) const RING: usize = if cfg!(loom) { 1 } else { 2 * LONG_QUEUE };

/// The pending queue of one timer: the numbers of chunks.
pub(crate) struct Pending(Queue<u32>);

impl Pending {
    pub(super) fn new() -> Self {
        Self(Queue::new(RING))
    }

    /// Pushes an entry. Returns whether the queue is long now.
    pub(super) fn push(&self, chunk: u32) -> bool {
        self.0.push(chunk);
        self.0.len() >= LONG_QUEUE
    }

    /// The entries that the queue has now.
    pub(super) fn drain(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.drain()
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A chunk's part of the protocol.
pub(super) struct Promise {
    look_by: AtomicU64,
    announced: AtomicU64,
    wanted: AtomicU64,
    taken: AtomicU64,
    pushed: AtomicU64,
}

impl Promise {
    pub(super) fn new() -> Self {
        let [look_by, announced, wanted] = [NEVER; 3].map(AtomicU64::new);
        let [taken, pushed] = [1, 0].map(AtomicU64::new);
        Self { look_by, announced, wanted, taken, pushed }
    }

    /// The owner lowers `announced` to this deadline, if that is sooner. If so, it calls `want` next.
    #[inline]
    pub(super) fn lower_announced(&self, deadline: u64) -> bool {
        let sooner = deadline < self.announced.load(Ordering::Relaxed);
        if sooner {
            self.announced.store(deadline, Ordering::Relaxed);
        }
        sooner
    }

    /// Wants a look by this time. Unless an entry of the chunk is in the queue, calls `push` for one.
    pub(super) fn want(&self, deadline: u64, push: impl FnOnce()) {
        // Acquire: pairs with `take_wanted`, so that `taken` is not read older than from before it. The loads and
        // the store below may be relaxed: only numbers that are equal are relied on, and see the head for that.
        self.wanted.fetch_min(deadline, Ordering::AcqRel);
        let pushed = self.pushed.load(Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Relaxed);
        if pushed != taken {
            push();
            self.pushed.store(taken, Ordering::Relaxed);
        }
    }

    /// The worker takes the time by which a look is wanted; `NEVER` if none is.
    pub(super) fn take_wanted(&self) -> u64 {
        self.taken.store(self.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release: pairs with `want`. Acquire: what the owner did before it wanted a look is seen by the look.
        self.wanted.swap(NEVER, Ordering::AcqRel)
    }

    /// The time of the promised look; `NEVER` if there is none.
    pub(super) fn look_by(&self) -> u64 {
        self.look_by.load(Ordering::Relaxed)
    }

    /// Begins a look. The worker reads the slots afterwards.
    pub(super) fn begin_look(&self) {
        self.set(NEVER);
        fence(Ordering::SeqCst);
    }

    /// Promises a look by this time, under which the worker files the chunk. If the owner has just announced
    /// a sooner one, it may announce that once more. Relaxed, here and in the loads: the fences order what
    /// must be ordered.
    pub(super) fn set(&self, look_by: u64) {
        self.look_by.store(look_by, Ordering::Relaxed);
        self.announced.store(look_by, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Wants a look. Returns whether that pushes an entry.
    fn pushes(promise: &Promise, deadline: u64) -> bool {
        let mut pushed = false;
        promise.want(deadline, || pushed = true);
        pushed
    }

    /// The worker may raise `announced` between two announcements, if a look has found a later timeout.
    #[test]
    fn rule_02_a_later_wish_does_not_replace_a_sooner_one() {
        let promise = Promise::new();
        assert!(promise.lower_announced(100) && pushes(&promise, 100));
        promise.set(500);
        assert!(promise.lower_announced(300) && !pushes(&promise, 300));
        assert_eq!((promise.take_wanted(), promise.take_wanted()), (100, NEVER));
        assert!(pushes(&promise, 300));
    }

    /// The worker takes the entry of a push before the push is known to be complete.
    #[test]
    fn rule_02_an_entry_that_was_taken_serves_no_later_wish() {
        let promise = Promise::new();
        promise.want(300, || assert_eq!(promise.take_wanted(), 300));
        assert!(pushes(&promise, 400) && !pushes(&promise, 200));
        assert_eq!(promise.take_wanted(), 200);
    }
}
