//! Pins: what keeps a slot, and with it the chunk. Only this file and `table` lead from a pointer to a chunk. The end
//! of a timer empties its slots here (`Shared::empty`).
//!
//! A handle has a pin instead of a counted reference, because the two read-modify-writes of a count would cost a
//! third of the time of a schedule with its cancel.
//!
//! | type | its holder has | made by |
//! |---|---|---|
//! | `Pin` | a pin; after a cancel that won, also the live pin | the owner, as it arms a slot; a clone; `Emptied::take` |
//! | `Runner` | the live pin during a run, and then the runner's own pin | a claim; `hand_over`, which leaves the worker a plain pin |
//! | `Emptied` | the live pin of a timeout that a stop has ended, whose payload is in the slot | the end of a timer |
//! | `FreeSlots` | Free slots that are not given back yet | the last unpin |
//!
//! None of them can be copied. To give up a pin or a slot is to consume the value that stands for it. So no pin is
//! given up twice. `FreeSlots` have no destructor: if they are lost, the chunk stays for ever.
//!
//! Invariants:
//! 1. A holder has a pin on one of the chunk's slots, or a Free slot that was not given back.
//! 2. A chunk is not dropped before all of its slots were given back (see the rule of lifetime in `chunk`). Every chunk
//!    lies in an `Arc`, since `Chunk::new` alone makes one.

use super::chunk::{Chunk, OFFSET_BITS, matters};
use super::pool::Pool;
use super::shared::Shared;
use super::slot::{Cancel, Claim, Claimed, Phase, Slot};
use crate::base::sync::{AtomicU64, AtomicWord, Ordering};
use crate::wheel::Version;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// What a slot contains. A payload is read on several threads after a stop, hence `Sync`.
pub(crate) trait Payload: Send + Sync + Sized + 'static {
    /// Gives a Free slot back to its chunk, directly or together with others.
    fn give_back(slot: FreeSlots<Self>);
}

/// A pointer to a chunk whose holder keeps invariant 1.
struct ChunkPointer<P>(NonNull<Chunk<P>>);

const fn is_shared<T: Send + Sync>() {}

// SAFETY: it gives shared access to a chunk, which is `Sync`. The last holder drops the chunk, which is `Send`.
unsafe impl<P: Send + Sync> Send for ChunkPointer<P> {}
// SAFETY: as above.
unsafe impl<P: Send + Sync> Sync for ChunkPointer<P> {}

impl<P> ChunkPointer<P> {
    #[inline]
    fn get(&self) -> &Chunk<P> {
        // SAFETY: by invariant 1, one of the chunk's slots was not given back. So by invariant 2, the
        // chunk was not dropped.
        let chunk = unsafe { self.0.as_ref() };
        #[cfg(all(test, loom))]
        chunk._alive.check();
        chunk
    }

    /// One more for the same holder, which gives up one of the two without using it.
    #[inline]
    fn again(&self) -> Self {
        Self(self.0)
    }
}

/// Free slots of one chunk that are not given back yet. The chunk stays until they are.
#[must_use = "slots that are not given back are lost"]
pub(crate) struct FreeSlots<P> {
    chunk: ChunkPointer<P>,
    slots: u64,
}

impl<P> FreeSlots<P> {
    pub(crate) fn chunk(&self) -> &Chunk<P> {
        self.chunk.get()
    }

    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// Takes other slots too, if they are of the same chunk.
    #[inline]
    fn merge(&mut self, others: Self) -> Result<(), Self> {
        if self.chunk.0 != others.chunk.0 {
            return Err(others);
        }
        self.slots |= others.slots;
        Ok(())
    }

    /// Gives them back to their chunk, which may be gone afterwards.
    #[inline]
    pub(crate) fn give_back(self) {
        self.chunk.add_free(self.slots);
    }
}

/// Free slots that are collected, to give back those of one chunk together.
pub(crate) struct Collected<P>(Option<FreeSlots<P>>);

impl<P> Default for Collected<P> {
    fn default() -> Self {
        Self(None)
    }
}

impl<P> Collected<P> {
    #[inline]
    pub(crate) fn add(&mut self, slots: FreeSlots<P>) {
        let rest = match &mut self.0 {
            Some(collected) => collected.merge(slots).err(),
            None => Some(slots),
        };
        if rest.is_some() {
            let before = std::mem::replace(&mut self.0, rest);
            before.into_iter().for_each(FreeSlots::give_back);
        }
    }

    pub(crate) fn give_back(&mut self) {
        self.0.take().into_iter().for_each(FreeSlots::give_back);
    }
}

impl<P> ChunkPointer<P> {
    /// Gives slots back to the chunk's word. The chunk may be gone as soon as they are there. So no reference to the
    /// chunk lives on then, except for a counted one, which is taken before.
    #[inline]
    fn add_free(self, slots: u64) {
        let free: *const AtomicU64 = &self.get().free;
        // SAFETY: until the exchange succeeds, the chunk is there, as in `get`.
        let free = unsafe { &*free };
        let mut before = free.load(Ordering::Relaxed);
        loop {
            let after = before | slots;
            let counted = matters(before, after).then(|| self.get().counted()).flatten();
            let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match free.compare_exchange_weak(before, after, done, failed) {
                Ok(_) => {
                    return counted.into_iter().for_each(|chunk| chunk.tell(before, after));
                }
                Err(now) => before = now,
            }
        }
    }
}

/// Set if this is also the live pin, because a cancel by it has ended the timeout.
const LIVE_PIN: usize = 1 << OFFSET_BITS;

/// Set if this is the live pin of a run that has not ended.
const RUNS: usize = LIVE_PIN << 1;

const OFFSET: usize = LIVE_PIN - 1;

/// A pin on a slot. A clone adds one, and a drop removes it.
pub(crate) struct Pin<P: Payload> {
    chunk: ChunkPointer<P>,
    /// The slot's offset in the chunk, and flags. No order is needed: the drop comes after all calls.
    word: AtomicWord,
}

/// The number of pins of a holder.
#[inline]
fn pins(word: usize) -> u64 {
    1 + ((word / LIVE_PIN) & 1) as u64
}

impl<P: Payload> Pin<P> {
    /// The caller has just armed this slot, or claimed or emptied its timeout.
    #[inline]
    pub(super) fn new(chunk: &Chunk<P>, word: usize) -> Self {
        const { is_shared::<Chunk<P>>() }
        Self { chunk: ChunkPointer(NonNull::from(chunk)), word: AtomicWord::new(word) }
    }

    #[inline]
    pub(crate) fn chunk(&self) -> &Chunk<P> {
        self.chunk.get()
    }

    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.word.load() & OFFSET
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot<P> {
        self.chunk().slot(self.offset())
    }

    /// Takes over the live pin of the timeout.
    #[inline]
    fn take_live_pin(&self) {
        self.word.store(self.offset() | LIVE_PIN);
    }

    /// Cancels the timeout, as `Slot::cancel`. If that wins, this is also the live pin.
    #[inline]
    pub(crate) fn cancel(&self, won: impl FnOnce(bool)) -> Cancel<P> {
        let cancel = self.slot().cancel(won);
        if let Cancel::Won(_) = cancel {
            self.take_live_pin();
        }
        cancel
    }

    /// Takes back a timeout in a timer that was closed meanwhile. `None` if it has already ended.
    pub(crate) fn take_back(&self) -> Option<P> {
        let taken = self.slot().take_back()?;
        self.take_live_pin();
        Some(taken)
    }
}

impl<P: Payload> Clone for Pin<P> {
    fn clone(&self) -> Self {
        self.slot().pin();
        Self { chunk: self.chunk.again(), word: AtomicWord::new(self.offset()) }
    }
}

impl<P: Payload> Drop for Pin<P> {
    #[inline]
    fn drop(&mut self) {
        let word = self.word.load();
        let offset = word & OFFSET;
        if self.chunk().slot(offset).unpin(pins(word)) {
            P::give_back(FreeSlots { chunk: self.chunk.again(), slots: 1 << offset });
        }
    }
}

impl<P: Payload> Chunk<P> {
    /// Claims a timeout for its run, as `Slot::claim`.
    #[inline(always)] // the claim stays in registers
    pub(crate) fn claim(
        &self,
        offset: usize,
        version: Version,
        tick_start: u64,
    ) -> Claim<(Claimed<P>, Runner<P>)> {
        match self.slot(offset).claim(version, tick_start) {
            Claim::Dead => Claim::Dead,
            Claim::NotYet { deadline, filed } => Claim::NotYet { deadline, filed },
            Claim::Due(claimed) => Claim::Due((claimed, Runner(Pin::new(self, offset | RUNS)))),
        }
    }
}

/// The runner of a timeout, whose payload is taken out. If the timeout goes on, its slot has the live pin again, and
/// the runner has another pin.
pub(crate) struct Runner<P: Payload>(Pin<P>);

impl<P: Payload> Runner<P> {
    #[inline]
    pub(crate) fn pin(&self) -> &Pin<P> {
        &self.0
    }

    #[inline]
    fn runs(&self) -> bool {
        self.0.word.load() & RUNS != 0
    }

    /// Ends the holder's part in the run. Returns false if it had none.
    fn end(&mut self) -> bool {
        let runs = self.runs();
        self.0.word.store(self.0.offset());
        runs
    }

    /// Passes the run on. The holder keeps a pin.
    pub(crate) fn hand_over(&mut self) -> Self {
        let next = self.0.clone();
        if self.end() {
            next.word.store(next.offset() | RUNS);
        }
        Self(next)
    }

    /// Makes the timeout pending again, as `Slot::go_on`. If a cancel has denied this, returns the payload.
    pub(crate) fn go_on(&mut self, payload: P, deadline: u64, phase: Phase) -> Result<Version, P> {
        if !self.runs() {
            return Err(payload);
        }
        let slot = self.0.slot();
        slot.pin(); // first, because the timeout may end before `go_on` returns
        let gone_on = slot.go_on(payload, deadline, phase);
        if gone_on.is_ok() {
            self.end();
        } else {
            slot.unpin(1);
        }
        gone_on
    }

    /// Ends a run that does not go on.
    pub(crate) fn finish(&mut self) {
        if self.end() {
            self.0.slot().finish();
        }
    }

    /// Withdraws a run that must not begin, as `Slot::withdraw`.
    pub(crate) fn withdraw(&mut self) -> bool {
        self.runs() && self.0.slot().withdraw() && self.end()
    }

    /// Cancels a timeout that does not run, or must not go on.
    pub(crate) fn abandon(&mut self) {
        if self.end() {
            self.0.slot().abandon();
        }
    }

    /// Removes the worker's pin, and ends the run if the timeout has not gone on. Returns the slot if it is Free now.
    #[inline(always)]
    pub(crate) fn finish_and_unpin(self) -> Option<FreeSlots<P>> {
        let this = ManuallyDrop::new(self);
        let (pin, slot) = (&this.0, this.0.slot());
        let free = if this.runs() { slot.finish_and_unpin() } else { slot.unpin(1) };
        free.then(|| FreeSlots { chunk: pin.chunk.again(), slots: 1 << pin.offset() })
    }
}

/// A runner that is lost, because its thread unwinds, ends its timeout. Then the pin goes.
impl<P: Payload> Drop for Runner<P> {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl<P: Payload> Shared<Chunk<P>> {
    /// Ends all pending timeouts, and gives up all chunks. The caller has closed the timer. The crate's
    /// own timeouts are always cancelled; `end` applies to the others. Calls `ended` with each.
    pub(crate) fn empty(&self, end: Phase, mut ended: impl FnMut(Emptied<P>)) {
        self.gate.begin_emptying();
        // In the order of the numbers: about that of their memory.
        self.table.for_each(|chunk| {
            let end = if chunk.internal { Phase::Cancelled } else { end };
            let mut count = 0;
            for (offset, _) in chunk.slots().enumerate().filter(|(_, slot)| slot.empty(end)) {
                ended(Emptied(Pin::new(chunk, offset)));
                count += 1;
            }
            chunk.close();
            if !chunk.internal {
                self.gate.release_permits(count);
            }
            let counts = self.counts.of(chunk.internal);
            let ends = if end == Phase::Returned { &counts.returned } else { &counts.cancelled };
            ends.add_shared(count as u64);
        });
        self.pools.iter().for_each(Pool::clear);
    }
}

/// A timeout that a stop has ended. Its payload is still in its slot. A drop drops the payload, and then removes the
/// pin.
pub(crate) struct Emptied<P: Payload>(Pin<P>);

impl<P: Payload> Emptied<P> {
    #[inline]
    pub(crate) fn pin(&self) -> &Pin<P> {
        &self.0
    }

    /// Reads the payload.
    #[inline]
    pub(crate) fn read<R>(&self, read: impl FnOnce(&P) -> R) -> R {
        self.0.slot().read_emptied(read)
    }

    /// Takes the payload out.
    pub(crate) fn take(self) -> (P, Pin<P>) {
        let this = ManuallyDrop::new(self);
        let Pin { chunk, word } = &this.0;
        let word = AtomicWord::new(word.load());
        (this.0.slot().take_emptied(), Pin { chunk: chunk.again(), word })
    }
}

impl<P: Payload> Drop for Emptied<P> {
    fn drop(&mut self) {
        drop(self.0.slot().take_emptied());
    }
}

#[cfg(test)]
impl Payload for u32 {
    fn give_back(slot: FreeSlots<Self>) {
        slot.give_back();
    }
}

#[cfg(test)]
impl<P: Send + Sync> FreeSlots<P> {
    /// Slots that a test has freed.
    pub(super) fn of(chunk: &Chunk<P>, slots: u64) -> Self {
        Self { chunk: ChunkPointer(NonNull::from(chunk)), slots }
    }
}

#[cfg(test)]
impl<P: Send + Sync> Chunk<P> {
    /// Gives back slots that a test has freed.
    pub(super) fn give_back(&self, slots: u64) {
        FreeSlots::of(self, slots).give_back();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<P: Payload> Pin<P> {
    /// Claims the timeout as the worker does.
    pub(crate) fn claim(
        &self,
        version: Version,
        tick_start: u64,
    ) -> Claim<(Claimed<P>, Runner<P>)> {
        self.chunk().claim(self.offset(), version, tick_start)
    }
}
