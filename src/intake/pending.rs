//! The pending queue: how the worker learns of new timeouts.
//!
//! Concepts:
//!
//! - An armed slot is *New*. The worker finds it by a *look* at its chunk, in which it reads all slots
//!   that were ever in use.
//! - `look_by` is the time by which the worker looks at the chunk next. Only the worker writes it.
//! - `announced` is that time, or a sooner one that the chunk's owner has wanted since.
//! - `wanted` is the time by which the producers want a look, until the worker takes it in.
//! - The queue is a set of chunk numbers: a bit for each. An *entry* is a bit that is set. 64 bits are a word, and
//!   each of the 64 words of a *group* has a bit in the group's summary. So the worker reads one word for 4,096
//!   chunks of which none is pending. `Pending` is the queue, and `Promise` has the three times of a chunk.
//! - To *announce* a New slot is to make sure that the worker looks at its chunk by its deadline. If no look is
//!   promised by then, the thread lowers `wanted`, and pushes the chunk's entry. So a burst of random deadlines needs
//!   one entry for each chunk, and not one for each new minimum, and the queue takes no memory for them, however long
//!   the worker sleeps.
//!
//! | step | a producer that has armed or moved a slot | the worker, at a look |
//! |---|---|---|
//! | 1 | fence | sets `look_by` and `announced` to never, fence |
//! | 2 | if the deadline is before `announced` (to arm, which lowers it) or `look_by` (to move): lowers `wanted`; then sets the bit in the word; then that in the summary, if it is not set | reads the slots |
//! | 3 | if it has lowered `wanted`: fence, wakes the worker if it would sleep beyond the deadline (see `alarm`) | sets both to the earliest deadline of those that stay New, under which it files the chunk in the wheel |
//!
//! The worker takes in the whole queue in each pass, and again before it sleeps beyond the next tick: it clears a
//! summary, then the words of its bits, and for each bit of these it takes `wanted`, which is then never. If that time
//! is before `look_by`, it lowers `look_by` and files the chunk in the wheel under that time (see `worker/chunks`). So
//! a timeout that is far away costs the worker only a share of its chunk's entry. One that is cancelled before the
//! look costs nothing more.
//!
//! **No new timeout is missed.** The fences are sequentially consistent, so of two fences one comes first.
//! If that of the producer's step 1 comes before that of the look, the look finds the slot New. If not, the
//! producer reads never, or what the worker or the owner has stored since. Such a value promises a look
//! that is still to come:
//!
//! - What the worker stores, it has filed in its wheel. It is the earliest deadline of the far timeouts: the sooner ones
//!   run or are filed in the same pass, or are promised a look (see `worker/look` and `worker/expire`).
//! - After the owner has lowered `announced`, it lowers `wanted` to the same time.
//!   Only the owner relies on it, or the next owner after it. The change of `wanted` releases, and its taking
//!   acquires. So a look that follows from it sets `announced` to never after the owner has lowered it: no
//!   promise outlives its entry.
//!
//! **Every wanted time is taken.** If the worker takes `wanted` after the producer has lowered it, it takes what the
//! producer wants. If the worker took `wanted` before, the producer's change of `wanted` acquires the worker's, so it
//! sees the summary and the word cleared. So the bit that the producer sets in the word, and that in the summary, which
//! it sets or finds set, are later ones, and the worker has still to clear them. It clears the summary first. So if the
//! word was cleared before the producer has set the bit there, the producer sees the summary cleared too, and sets it
//! again. The word may have been 0: a producer that sets its bit in the summary late sets it for a word that the worker
//! has cleared. So the worker swaps each word of the summary.
//!
//! A new chunk can have the number of one that was dropped, and whose bit is still set. The worker takes nothing if it
//! finds no chunk under a number. So the producer sets the bit in the word even if it is set: either the worker clears
//! it afterwards, and then sees the new chunk, or the worker has still to clear the bit.
//!
//! **No producer relies on another that is interrupted.** Each relies on the worker's promise, on bits that are set,
//! or on what its own thread, or the chunk's last owner, has announced. One exception: producers that are the first to
//! need a block of the queue wait for the one that makes it (see `base/growing`).
//!
//! **The order of one thread** needs no order in the queue. The worker restores it where it hands over the
//! timeouts of one tick (see `worker/tick_queue`).
//!
//! The producer's first fence also serves closing (see `worker/end`).

use crate::base::growing::Growing;
use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::time::tick::NEVER;
use crate::wheel::Version;
use std::sync::atomic::AtomicU16;

/// The number of words in a group. A model has one.
const WORDS: usize = if cfg!(loom) { 1 } else { 64 };

const BITS: usize = u64::BITS as usize;

/// The pending queue of one timer: the numbers of chunks.
pub(crate) struct Pending(Growing<Group>);

struct Group {
    /// One bit for each word that may not be 0.
    summary: AtomicU64,
    /// One bit for each chunk.
    words: [AtomicU64; WORDS],
}

impl Default for Group {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { summary: zero(), words: std::array::from_fn(|_| zero()) }
    }
}

/// Clears all bits. Calls `each` with those that were set. A swap even of 0: with that, the next push synchronizes.
fn clear(word: &AtomicU64, mut each: impl FnMut(usize)) {
    let mut bits = word.swap(0, Ordering::AcqRel);
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

impl Pending {
    pub(super) fn new() -> Self {
        let queue = Self(Growing::new());
        if cfg!(loom) {
            queue.0.make(0); // loom does not see that the thread that makes a group makes it first
        }
        queue
    }

    /// Pushes the entry of a chunk, unless it is in the queue.
    pub(super) fn push(&self, chunk: u32) {
        let (word, bit) = (chunk as usize / BITS, chunk as usize % BITS);
        let group = self.0.make(word / WORDS);
        // Even if it is set: the entry may be that of a chunk which had the number before, and which the worker drops.
        group.words[word % WORDS].fetch_or(1 << bit, Ordering::AcqRel);
        let summary = &group.summary;
        if summary.load(Ordering::Acquire) & 1 << (word % WORDS) == 0 {
            summary.fetch_or(1 << (word % WORDS), Ordering::AcqRel);
        }
    }

    /// Takes out the entries that the queue has now.
    pub(crate) fn take_all(&self, mut each: impl FnMut(usize)) {
        for (number, group) in self.0.iter() {
            if group.summary.load(Ordering::Relaxed) == 0 {
                continue;
            }
            clear(&group.summary, |word| {
                let first = (number * WORDS + word) * BITS;
                clear(&group.words[word], |bit| each(first + bit));
            });
        }
    }
}

/// A chunk's part of the protocol.
pub(crate) struct Promise {
    look_by: AtomicU64,
    announced: AtomicU64,
    wanted: AtomicU64,
    /// The version of the token under which the worker has filed the chunk, or did so last. Only the worker uses it.
    version: AtomicU16,
}

impl Promise {
    pub(super) fn new() -> Self {
        let [look_by, announced, wanted] = [NEVER; 3].map(AtomicU64::new);
        Self { look_by, announced, wanted, version: AtomicU16::new(0) }
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

    /// Wants a look by this time. The caller pushes the chunk's entry next. Acquire: pairs with `take_wanted`.
    pub(super) fn want(&self, deadline: u64) {
        self.wanted.fetch_min(deadline, Ordering::AcqRel);
    }

    /// The worker takes the time by which a look is wanted; `NEVER` if none is.
    pub(crate) fn take_wanted(&self) -> u64 {
        // Release: pairs with `want`. Acquire: what the owner did before it wanted a look is seen by the look.
        self.wanted.swap(NEVER, Ordering::AcqRel)
    }

    /// The time of the promised look; `NEVER` if there is none.
    pub(crate) fn look_by(&self) -> u64 {
        self.look_by.load(Ordering::Relaxed)
    }

    /// Begins a look. The worker reads the slots afterwards.
    pub(crate) fn begin_look(&self) {
        self.set(NEVER);
        fence(Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn version(&self) -> Version {
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn set_version(&self, version: Version) {
        self.version.store(version, Ordering::Relaxed);
    }

    /// Promises a look by this time, under which the worker files the chunk. If the owner has just announced
    /// a sooner one, it may announce that once more. Relaxed, here and in the loads: the fences order what
    /// must be ordered.
    pub(crate) fn set(&self, look_by: u64) {
        self.look_by.store(look_by, Ordering::Relaxed);
        self.announced.store(look_by, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
