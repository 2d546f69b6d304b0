//! The state of a shard: the slots and the pending queue of some of the producer threads, under one
//! lock.
//!
//! Every decision about a timeout is made here, in one critical section: whether it is admitted,
//! and which of cancel, expiry, reschedule and stop comes first. The phases are in [`super::slot`].
//! No user code runs under the lock: payloads are moved in and out, and dropped by the caller.

#[cfg(all(test, not(loom)))]
mod tests;

use super::counts::Counts;
use super::dead::DeadEntries;
use super::outcome::{Cancel, Claim, Claimed, Refusal, Wake};
use super::pending::{Pending, Record};
use super::slot::{Phase, Slot};
use crate::base::slab::Slab;

/// A queue with this many live timeouts wakes the worker, whatever the next deadline. A lower
/// number would be worse: a timeout that is cancelled in the queue costs the worker nothing.
const LONG_QUEUE: usize = 1 << 18;

/// Records that catch up for which memory is kept.
pub(crate) const CATCHING_UP_KEPT: usize = 1 << 10;

/// The contents of a shard, guarded by its lock.
pub(crate) struct State<P> {
    slots: Slab<Slot<P>>,
    pending: Pending,
    open: bool,
    /// The number of slots in phase Armed.
    live: usize,
    /// Records that go past the queue; see `catch_up`.
    catching_up: Vec<Record>,
    /// The dead ones among this shard's records in the wheel.
    dead: DeadEntries,
    /// The queue is long, and a producer was told to wake the worker.
    drain_asked: bool,
    counts: Counts,
}

impl<P> State<P> {
    pub(super) fn new(slot_limit: usize, buckets: usize) -> Self {
        Self {
            slots: Slab::with_limit(slot_limit),
            pending: Pending::default(),
            open: true,
            live: 0,
            catching_up: Vec::new(),
            dead: DeadEntries::new(buckets),
            drain_asked: false,
            counts: Counts::default(),
        }
    }

    /// Admits a task: Free -> Armed, with a pin for the caller's handle. `erase` turns the task
    /// into a payload. A refused task comes back.
    #[inline]
    pub(crate) fn admit<T>(
        &mut self,
        task: T,
        erase: impl FnOnce(T) -> P,
        deadline: u64,
        repeats: bool,
    ) -> Result<(u32, Wake), (Refusal, T)> {
        if !self.open {
            self.counts.rejected += 1;
            return Err((Refusal::Closed, task));
        }
        let Some((index, slot)) = self.slots.acquire() else {
            self.counts.rejected += 1;
            return Err((Refusal::Full, task));
        };
        slot.begin(erase(task), deadline, repeats);
        slot.place = self.pending.push(deadline, index, slot.version16());
        self.live += 1;
        self.counts.scheduled += 1;
        Ok((index, self.wake_after_push()))
    }

    #[inline]
    fn wake_after_push(&mut self) -> Wake {
        if self.pending.live() < LONG_QUEUE || self.drain_asked {
            return Wake::ForDeadline;
        }
        self.drain_asked = true;
        Wake::Now
    }

    /// Cancels a timeout: Armed -> Cancelled, which also removes the caller's pin, or Running ->
    /// Denied.
    #[inline]
    pub(crate) fn cancel(&mut self, index: u32) -> Cancel<P> {
        let Some(slot) = self.slots.get_mut(index) else { return Cancel::Lost };
        match slot.phase() {
            Phase::Armed => {
                let payload = slot.payload.take();
                if !self.pending.remove(slot.place, index) {
                    slot.bump_version();
                    self.dead.died();
                }
                if slot.end(Phase::Cancelled) {
                    self.slots.release(index);
                }
                self.live -= 1;
                self.counts.cancelled += 1;
                let wake = self.tidy();
                payload.map_or(Cancel::Lost, |payload| Cancel::Won(payload, wake))
            }
            Phase::Running => {
                slot.set_phase(Phase::Denied);
                Cancel::Denied(slot.repeats())
            }
            _ => Cancel::Lost,
        }
    }

    /// Keeps the number of dead records within that of the live timeouts plus a constant, in the
    /// queue and in the wheel.
    #[inline]
    fn tidy(&mut self) -> Wake {
        if self.pending.wants_compaction() {
            let slots = &mut self.slots;
            self.pending.compact(|record, place| {
                let slot = slots.get_mut(record.index);
                if let Some(slot) = slot.filter(|slot| slot.stands_for(record.version)) {
                    slot.place = place;
                }
            });
        }
        if self.dead.wants_sweep(self.live) { Wake::Now } else { Wake::No }
    }

    /// Moves the deadline of an Armed slot. A later deadline changes only the slot; the record
    /// comes up too soon, and the worker files it again. A sooner one changes the record if it is
    /// still in the queue, or else pushes a new record.
    pub(crate) fn reschedule(&mut self, index: u32, deadline: u64) -> Result<Wake, Refusal> {
        if !self.open {
            return Err(Refusal::Closed);
        }
        let slot = self.slots.get_mut(index).ok_or(Refusal::Phase(Phase::Free))?;
        if slot.phase() != Phase::Armed {
            return Err(Refusal::Phase(slot.phase()));
        }
        self.counts.rescheduled += 1;
        let sooner = deadline < slot.deadline;
        slot.deadline = deadline;
        if !sooner {
            return Ok(Wake::No);
        }
        if self.pending.amend(slot.place, index, deadline) {
            return Ok(Wake::ForDeadline);
        }
        slot.bump_version();
        slot.place = self.pending.push(deadline, index, slot.version16());
        self.dead.died();
        let pushed = self.wake_after_push();
        let tidied = self.tidy();
        Ok(if tidied == Wake::Now { tidied } else { pushed })
    }

    /// Lets a timeout go on at the end of its run: Running -> Armed. Returns a record, which the
    /// caller files. If the timeout must not go on, returns the payload, and the caller finishes
    /// the run.
    pub(crate) fn go_on(&mut self, index: u32, payload: P, deadline: u64) -> Result<Record, P> {
        let slot = self.slots.get_mut(index);
        let Some(slot) = slot.filter(|slot| self.open && slot.phase() == Phase::Running) else {
            return Err(payload);
        };
        slot.payload = Some(payload);
        slot.deadline = deadline;
        slot.set_phase(Phase::Armed);
        slot.set_repeats();
        slot.bump_version();
        self.live += 1;
        self.counts.rearmed += 1;
        Ok(Record::new(deadline, index, slot.version16()))
    }

    /// Pushes a record of an Armed slot into the queue.
    pub(crate) fn queue(&mut self, record: Record) -> Wake {
        let place = self.pending.push(record.deadline, record.index, record.version);
        if let Some(slot) = self.slots.get_mut(record.index) {
            slot.place = place;
        }
        self.wake_after_push()
    }

    /// Moves a slot's record past the queue. The worker takes it within its present pass, in the
    /// order of ticks.
    pub(crate) fn catch_up(&mut self, index: u32) {
        let Some(slot) = self.slots.get(index) else { return };
        let (deadline, version) = (slot.deadline, slot.version16());
        if self.pending.remove(slot.place, index) {
            self.catching_up.push(Record::new(deadline, index, version));
        }
    }

    /// Claims a timeout for its run: Armed -> Running, if the record stands for it and its deadline
    /// is not after `tick_start`. Pins the slot for the runner. A closed shard lets nothing be
    /// claimed: its timeouts stay for `empty_into`.
    #[inline(always)] // a call here, and one in `insert_near`, cost 1.6 of 21 ns a run
    pub(crate) fn claim(&mut self, index: u32, version: u16, tick_start: u64) -> Claim<P> {
        if !self.open {
            return Claim::Dead;
        }
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.stands_for(version)) else {
            self.dead.found();
            return Claim::Dead;
        };
        let deadline = slot.deadline;
        if deadline > tick_start {
            return Claim::NotYet(deadline);
        }
        let Some(payload) = slot.payload.take() else { return Claim::Dead };
        // A dead record can match if the version has wrapped. The slot's own record may then still
        // be in the queue, and must not outlive this claim.
        self.pending.remove(slot.place, index);
        slot.set_phase(Phase::Running);
        slot.pin();
        self.live -= 1;
        self.counts.expired += 1;
        self.dead.wants_sweep(self.live);
        Claim::Due(Claimed { payload, deadline })
    }

    /// Ends a run that does not go on. The runner keeps its pin.
    #[inline]
    pub(crate) fn finish(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.finish();
        }
    }

    /// Ends a run as `finish` does, and removes the runner's pin, with one access to the slot.
    #[inline]
    pub(crate) fn finish_and_unpin(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.finish();
        if slot.unpin() {
            self.slots.release(index);
        }
    }

    /// Whether a run that waited in an executor must not begin, because a cancel was answered with
    /// true meanwhile. If so, counts the timeout as cancelled.
    pub(crate) fn withdrawn(&mut self, index: u32) -> bool {
        let slot = self.slots.get_mut(index);
        let denied = slot.filter(|slot| slot.phase() == Phase::Denied && slot.repeats());
        let denied = denied.map(|slot| slot.set_phase(Phase::Cancelled)).is_some();
        if denied {
            self.counts.expired -= 1;
            self.counts.cancelled += 1;
        }
        denied
    }

    /// Counts a timeout as cancelled whose runner drops the payload without running it.
    pub(crate) fn abandon(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.runs()) {
            slot.set_phase(Phase::Cancelled);
            self.counts.expired -= 1;
            self.counts.cancelled += 1;
            self.counts.abandoned += 1;
        }
    }

    /// Cancels a returned timeout that nobody will collect: Returned -> Cancelled. Does nothing in
    /// another phase.
    pub(crate) fn unreturn(&mut self, index: u32) {
        let slot = self.slots.get_mut(index).filter(|slot| slot.phase() == Phase::Returned);
        if let Some(slot) = slot {
            slot.set_phase(Phase::Cancelled);
            self.counts.returned -= 1;
            self.counts.cancelled += 1;
        }
    }

    pub(crate) fn phase(&self, index: u32) -> Phase {
        self.slots.get(index).map_or(Phase::Free, Slot::phase)
    }

    pub(crate) fn deadline(&self, index: u32) -> u64 {
        self.slots.get(index).map_or(0, |slot| slot.deadline)
    }

    pub(crate) fn pin(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.pin();
        }
    }

    /// Removes a pin. Frees the slot if that was the last pin of an ended timeout.
    #[inline]
    pub(crate) fn unpin(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.unpin() {
            self.slots.release(index);
        }
    }

    /// Moves at most `most` live records out of the queue, for the worker.
    pub(crate) fn take(&mut self, most: usize, into: &mut Vec<Record>) {
        self.drain_asked = false;
        self.pending.take(most, into);
    }

    /// Takes the records that catch up, for the worker's present pass.
    pub(crate) fn take_catching_up(&mut self, into: &mut Vec<Record>) {
        into.append(&mut self.catching_up);
        self.catching_up.shrink_to(CATCHING_UP_KEPT);
    }

    /// Whether this shard wants a sweep of the wheel.
    pub(crate) fn sweep_wanted(&self) -> bool {
        self.dead.sweep_wanted()
    }

    /// Notes that a sweep begins.
    pub(crate) fn begin_sweep(&mut self) {
        self.dead.begin_sweep();
    }

    /// Notes that a sweep has gone through the whole wheel: the entries that were dead when it
    /// began are gone. True if enough have died since to want another sweep.
    pub(crate) fn end_sweep(&mut self) -> bool {
        self.dead.end_sweep(self.live)
    }

    /// Whether a record stands for a pending timeout.
    pub(crate) fn is_pending(&self, index: u32, version: u16) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.stands_for(version))
    }

    /// Whether a record in the wheel stands for a timeout. If not, counts it out: the caller drops
    /// it.
    pub(crate) fn stands(&mut self, index: u32, version: u16) -> bool {
        let stands = self.is_pending(index, version);
        if !stands {
            self.dead.found();
        }
        stands
    }

    /// Closes the shard: from now on no timeout is admitted or claimed.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Ends every pending timeout: Armed -> `end`, which is Returned or Cancelled. Pins each slot,
    /// and passes its index, deadline and payload to `each`.
    pub(crate) fn empty_into(&mut self, end: Phase, mut each: impl FnMut(u32, u64, P)) {
        debug_assert!(!self.open && end.has_ended());
        let mut ended = 0;
        for (index, slot) in self.slots.iter_mut() {
            if let Some(payload) = slot.payload.take() {
                slot.set_phase(end);
                slot.pin();
                ended += 1;
                each(index, slot.deadline, payload);
            }
        }
        self.live -= ended;
        match end {
            Phase::Returned => self.counts.returned += ended as u64,
            _ => self.counts.cancelled += ended as u64,
        }
        self.pending = Pending::default();
        self.catching_up = Vec::new();
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn queued(&self) -> usize {
        self.pending.live()
    }

    /// The time by which the worker must take the queue. A long queue must be taken now. Any other
    /// waits until a record in it may be due, since a timeout that is cancelled in the queue costs
    /// the worker nothing.
    pub(crate) fn take_by(&self) -> u64 {
        if self.drain_asked { 0 } else { self.pending.earliest() }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}
