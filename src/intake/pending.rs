//! The pending queue: how the worker learns of new timeouts.
//!
//! Concepts:
//!
//! - An armed slot is *New*. The worker finds it by a *look* at its chunk, in which it reads all slots.
//! - `look_by` is the time by which the worker looks at the chunk next. Only the worker writes it.
//! - `announced` is the same time, as far as the chunk's owner knows it.
//! - `wanted` is the time by which the owner wants a look, until the worker takes it in.
//! - To *announce* a New slot is to make sure that the worker looks at its chunk by its deadline. If no
//!   look is promised by then, the thread pushes an *entry* onto the queue: the chunk and the deadline. For
//!   what it arms, the owner lowers `wanted`, and pushes only if that was never. So a burst of random deadlines
//!   usually needs one entry for each chunk, and not five.
//!
//! | step | a producer that has armed or moved a slot | the worker, at a look |
//! |---|---|---|
//! | 1 | fence | sets `look_by` and `announced` to never, fence |
//! | 2 | the owner, for a slot that it armed: if the deadline is before `announced`, lowers that and `wanted`. Any thread, for a slot that it moved: if the deadline is before `look_by`. Then pushes an entry, fence | reads the slots |
//! | 3 | wakes the worker if it would sleep beyond the deadline (see `alarm`) | sets both to the earliest deadline that is left, under which it files the chunk in the wheel |
//!
//! The worker takes in the whole queue in each pass, and again before it sleeps. With an entry, it takes
//! `wanted`, which is then never. If the entry's deadline or the wanted one is before `look_by`, it lowers
//! `look_by` and files the chunk in the wheel under that time (see `known_chunks`). So a timeout that is far
//! away costs the worker only a share of its chunk's entry. One that is cancelled before the look costs
//! nothing more.
//!
//! **No new timeout is missed.** The fences are sequentially consistent, so of two fences one comes first.
//! If that of the producer's step 1 comes before that of the look, the look finds the slot New. If not, the
//! producer reads never, or what the worker or the owner has stored since. Such a value promises a look
//! that is still to come:
//!
//! - What the worker stores, it has filed in its wheel.
//! - What the owner stores in `announced`, it wants next, and an entry of its own is in the queue or follows.
//!   Only the owner relies on it, or the next owner after it. The change of `wanted` releases, and its taking
//!   acquires. So a look that follows from it sets `announced` to never after the owner has lowered it: no
//!   promise outlives its entry.
//!
//! **No producer relies on another that is interrupted.** Each relies on the worker's promise, or on
//! an entry that its own thread, or the chunk's last owner, has pushed.
//!
//! **The order of one thread** needs no order in the queue. The worker restores it where it hands over the
//! timeouts of one tick (see `worker/tick_queue`).
//!
//! The producer's first fence also serves closing (see `context`).

use crate::base::sync::{AtomicU64, Ordering, SegQueue, fence};
use crate::time::tick::NEVER;

/// A queue of this many entries wakes the worker, even if nothing in it is due. So its memory is
/// bounded.
const LONG_QUEUE: usize = 1 << 14;

/// The worker must look at this chunk by this time, or by the time that the chunk's owner wants. An entry of
/// the owner says `NEVER`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) look_by: u64,
    pub(super) chunk: u32,
}

/// The pending queue of one timer.
pub(crate) struct Pending(SegQueue<Entry>);

impl Pending {
    pub(super) fn new() -> Self {
        Self(SegQueue::new())
    }

    /// Pushes an entry. Returns whether the queue is long now.
    pub(super) fn push(&self, entry: Entry) -> bool {
        self.0.push(entry);
        self.0.len() >= LONG_QUEUE
    }

    /// The entries that the queue has now.
    pub(super) fn drain(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..self.0.len()).map_while(|_| self.0.pop())
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
}

impl Promise {
    pub(super) fn new() -> Self {
        let never = || AtomicU64::new(NEVER);
        Self { look_by: never(), announced: never(), wanted: never() }
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

    /// The owner wants a look by this time. True if it has to push an entry.
    pub(super) fn want(&self, deadline: u64) -> bool {
        self.wanted.fetch_min(deadline, Ordering::AcqRel) == NEVER
    }

    /// The worker takes the time by which the owner wants a look; `NEVER` if it wants none.
    pub(super) fn take_wanted(&self) -> u64 {
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

    /// The worker may raise `announced` between two announcements, if a look has found a later timeout.
    #[test]
    fn rule_02_a_later_wish_does_not_replace_a_sooner_one() {
        let promise = Promise::new();
        assert!(promise.lower_announced(100) && promise.want(100));
        promise.set(500);
        assert!(promise.lower_announced(300) && !promise.want(300));
        assert_eq!((promise.take_wanted(), promise.take_wanted()), (100, NEVER));
        assert!(promise.want(300));
    }
}
