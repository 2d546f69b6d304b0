//! An owner: what a thread has in a timer. It is a chunk of its own, a range of sequence numbers, and its counts.
//!
//! A thread schedules through its owner. The owner has a bitmap of its chunk's free slots. Slots that other threads
//! free go into the chunk's own bitmap (see `chunk`). When the owner's bitmap is empty, the owner takes these back. If
//! they are fewer than a quarter of the chunk, it also takes or makes another chunk, so that this stays rare. The old
//! one enters the pool once enough of its slots are free. When the thread ends, it leaves its chunk, and adds its
//! counts to those of other threads. Nothing of the thread stays but its timeouts, and its *home*, its link to the
//! timer, while a future of the thread keeps it.
//!
//! A thread also frees slots of other chunks. Threads often cancel timeouts in the order in which they
//! scheduled them. So the owner collects the free slots of one other chunk, and gives them back together: when it frees a
//! slot of a third chunk, when its own bitmap is empty, and when the thread ends.
//!
//! **The order of one thread.** Sequence numbers come from one counter of the timer, in ranges. When an owner has used
//! its range, it takes another one. So each number is used once, and those of one thread increase. `Chunk::lowest` is
//! a lower bound, whoever has owned the chunk: the next owner sets it to its next number if the chunk is vacant, or
//! else takes a new range if that number is below the bound.

use super::chunk::{ALL, Chunk, REUSABLE};
use super::pin::{Collected, FreeSlots, Payload, Pin};
use super::shared::{Link, SharedRef};
use super::slot::Runs;
use crate::base::spread;
use crate::base::sync::Arc;
use crate::metrics::Tally;
use std::thread;

/// The number of sequence numbers in a range.
const RANGE: u64 = 1024;

/// A thread's way to a timer, for its futures. They count it, and not the timer, so that threads share no cache line.
#[repr(align(128))]
pub(crate) struct Home<P> {
    pub(crate) timer: Link<Chunk<P>>,
}

impl<P> Home<P> {
    pub(crate) fn of(timer: &Link<Chunk<P>>) -> Arc<Self> {
        Arc::new(Self { timer: timer.clone() })
    }
}

/// See the head.
pub(crate) struct Owner<P: Payload> {
    pub(crate) home: Arc<Home<P>>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) chunk: Arc<Chunk<P>>,
    /// The Free slots of the owned chunk that are not in the chunk's own bitmap.
    free: u64,
    /// A copy of the owned chunk's `touched`.
    touched: usize,
    /// What is added to the count of scheduled timeouts to get the next sequence number.
    base: u64,
    /// Free slots of another chunk that are not given back yet.
    collected: Collected<P>,
}

impl<P: Payload> Owner<P> {
    /// The calling thread's part of a timer. `None` if the timer is closed, or can have no more chunks.
    pub(crate) fn enter(shared: &SharedRef<Chunk<P>>) -> Option<Self> {
        let pool = spread::shard_of_this_thread(shared.pools.len() - 1);
        let owner = Self::of(shared, pool, Arc::default())?;
        // Models do not name threads: no race depends on a name.
        let named = cfg!(not(any(loom, shuttle)));
        let name = named.then(|| thread::current().name().map(str::to_owned)).flatten();
        shared.counts.add_thread(name.unwrap_or_default(), &owner.tally);
        Some(owner)
    }

    /// The owner of the crate's own timeouts. `None` if the timer is closed, or can have no more chunks.
    pub(crate) fn of_internals(shared: &SharedRef<Chunk<P>>) -> Option<Self> {
        Self::of(shared, shared.pools.len() - 1, shared.counts.internals.clone())
    }

    fn of(shared: &SharedRef<Chunk<P>>, pool: usize, tally: Arc<Tally>) -> Option<Self> {
        let (chunk, free) = next_chunk(shared, pool)?;
        shared.pools[pool].add_owner();
        let (home, touched, collected) =
            (Home::of(&Link::to(shared)), chunk.touched(), Collected::default());
        let mut owner = Self { home, tally, chunk, free, touched, base: 0, collected };
        owner.take_range(shared);
        owner.begin_chunk(shared);
        Some(owner)
    }

    /// Arms a slot: Free -> New. The slot has a pin for the caller's handle, and the live pin. The caller announces the
    /// slot afterwards (`Chunk::announce_new`). `None` if the timer can have no more chunks: the payload is not made then.
    #[inline(always)] // writes the payload directly to its place
    pub(crate) fn arm(
        &mut self,
        payload: impl FnOnce() -> P,
        deadline: u64,
        runs: Runs,
    ) -> Option<Pin<P>> {
        if self.free == 0 && !self.refill() {
            return None;
        }
        let offset = self.free.trailing_zeros() as usize;
        self.free &= self.free - 1;
        if offset >= self.touched {
            self.touched = offset + 1;
            self.chunk.set_touched(self.touched);
        }
        // Counted first, so that the worker never finds a slot that is not counted.
        let before = self.tally.scheduled.add(1);
        self.chunk.slot(offset).arm(payload(), deadline, self.base.wrapping_add(before), runs);
        if (before + 1) % RANGE == 0 {
            self.end_range();
        }
        Some(Pin::new(&self.chunk, offset))
    }

    #[cold]
    #[inline(never)]
    fn end_range(&mut self) {
        if let Some(shared) = self.home.timer.shared() {
            self.take_range(&shared);
        }
    }

    fn take_range(&mut self, shared: &SharedRef<Chunk<P>>) {
        self.base = shared.sequence.take(RANGE).wrapping_sub(self.tally.scheduled.get());
    }

    /// Makes the lower bound of a chunk hold that was just taken.
    fn begin_chunk(&mut self, shared: &SharedRef<Chunk<P>>) {
        let next = self.base.wrapping_add(self.tally.scheduled.get());
        if self.free == ALL {
            self.chunk.set_lowest(next);
        } else if !self.chunk.is_before(next) {
            self.take_range(shared);
        }
    }

    /// Takes more free slots: from the owned chunk if other threads have freed enough of its slots, or
    /// else from another chunk.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> bool {
        self.collected.give_back();
        self.free = self.chunk.take_free();
        if self.free.count_ones() < REUSABLE {
            if let Some(shared) = self.home.timer.shared() {
                if let Some((chunk, free)) = next_chunk(&shared, self.chunk.pool) {
                    self.chunk.disown(self.free);
                    self.touched = chunk.touched();
                    (self.chunk, self.free) = (chunk, free);
                    self.begin_chunk(&shared);
                }
            }
        }
        self.free != 0
    }

    /// Takes back Free slots of the owned chunk, or returns those of another chunk.
    #[inline]
    pub(crate) fn give_back(&mut self, slots: FreeSlots<P>) -> Result<(), FreeSlots<P>> {
        if !std::ptr::eq(&*self.chunk, slots.chunk()) {
            return Err(slots);
        }
        self.free |= slots.slots();
        Ok(())
    }

    /// Collects Free slots of another chunk of this timer, or returns those of another timer.
    #[inline]
    pub(crate) fn collect(&mut self, slots: FreeSlots<P>) -> Result<(), FreeSlots<P>> {
        if !Arc::ptr_eq(&slots.chunk().timer.gate, &self.home.timer.gate) {
            return Err(slots);
        }
        self.collected.add(slots);
        Ok(())
    }
}

impl<P: Payload> Drop for Owner<P> {
    fn drop(&mut self) {
        self.collected.give_back();
        self.chunk.disown(self.free);
        let Some(shared) = self.home.timer.shared() else { return };
        let pool = &shared.pools[self.chunk.pool];
        pool.remove_owner();
        shared.consider_release(pool);
        shared.counts.remove_thread(&self.tally);
    }
}

/// A chunk from the pool, or a new one, with its free slots. The caller becomes its owner. `None` if the timer is closed,
/// or can have no more chunks.
fn next_chunk<P: Payload>(
    shared: &SharedRef<Chunk<P>>,
    number: usize,
) -> Option<(Arc<Chunk<P>>, u64)> {
    if shared.gate.is_closed() {
        return None; // a chunk that is made now stays until the timer is dropped
    }
    let pool = &shared.pools[number];
    while let Some(chunk) = pool.pop() {
        let Some(free) = chunk.own() else { continue };
        if free == ALL {
            pool.uncount_vacant();
        }
        return Some((chunk, free));
    }
    Some((Chunk::new(shared, number)?, ALL))
}

#[cfg(test)]
impl<P: Payload> Owner<P> {
    pub(crate) fn pool_in<'a>(
        &self,
        shared: &'a SharedRef<Chunk<P>>,
    ) -> &'a super::pool::Pool<Chunk<P>> {
        &shared.pools[self.chunk.pool]
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<P: Payload> Owner<P> {
    /// The chunk is unused.
    pub(crate) fn set_next_sequence(&mut self, sequence: u64) {
        let shared = self.home.timer.shared().expect("the timer is there");
        shared.sequence.set(sequence);
        self.take_range(&shared);
        self.chunk.set_lowest(sequence);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
