//! A shard: the slots and the pending queue of some of the producer threads, under one lock.
//!
//! Every decision about a timeout is made here, in one critical section: whether it is admitted,
//! who of cancel, expiry, reschedule and stop comes first. The states are in [`super::slot`].
//! No code of a user runs in here: payloads go in and come out, they are dropped outside.

use super::answer::{Ask, Cancel, Claim, Claimed, Refusal};
use super::counts::Counts;
use super::pending::{Pending, Record};
use super::slot::{Phase, Slot};
use super::stale::Stale;
use crate::slab::Slab;

/// A queue with this many live timeouts wakes the worker, however far the next deadline is. Lower
/// would be worse: what is cancelled while it is still in the queue never costs the worker a thing.
const LONG_QUEUE: usize = 1 << 18;

pub(crate) struct State<P> {
    slots: Slab<Slot<P>>,
    pending: Pending,
    open: bool,
    /// Slots in phase Armed.
    live: usize,
    /// Records of timeouts that are to run in the worker's present pass: see `rearm`.
    urgent: Vec<Record>,
    /// Of this shard's records in the wheel.
    stale: Stale,
    /// The queue is long, and the worker has been told.
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
            urgent: Vec::new(),
            stale: Stale::new(buckets),
            drain_asked: false,
            counts: Counts::default(),
        }
    }

    /// Free -> Armed, with a pin for the caller's handle; otherwise the task comes back. `erase`
    /// makes a payload of it.
    #[inline]
    pub(crate) fn admit<T>(
        &mut self,
        task: T,
        erase: impl FnOnce(T) -> P,
        deadline: u64,
        repeats: bool,
    ) -> Result<(u32, Ask), (Refusal, T)> {
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
        Ok((index, self.ask_after_push()))
    }

    #[inline]
    fn ask_after_push(&mut self) -> Ask {
        if self.pending.live() < LONG_QUEUE || self.drain_asked {
            return Ask::Deadline;
        }
        self.drain_asked = true;
        Ask::Attention
    }

    /// Armed -> Cancelled, which takes the caller's pin as well; or Running -> Denied.
    #[inline]
    pub(crate) fn cancel(&mut self, index: u32) -> Cancel<P> {
        let Some(slot) = self.slots.get_mut(index) else { return Cancel::Lost };
        match slot.phase() {
            Phase::Armed => {
                let payload = slot.payload.take();
                if !self.pending.remove(slot.place, index) {
                    slot.bump_version();
                    self.stale.left_behind();
                }
                if slot.end(Phase::Cancelled) {
                    self.slots.release(index);
                }
                self.live -= 1;
                self.counts.cancelled += 1;
                let ask = self.tidy();
                payload.map_or(Cancel::Lost, |payload| Cancel::Won(payload, ask))
            }
            Phase::Running => {
                slot.set_phase(Phase::Denied);
                Cancel::Denied(slot.repeats())
            }
            _ => Cancel::Lost,
        }
    }

    /// Keeps what is dead below what is alive plus a constant.
    #[inline]
    fn tidy(&mut self) -> Ask {
        if self.pending.wants_sweep() {
            let slots = &mut self.slots;
            self.pending.sweep(|record, place| {
                let slot = slots.get_mut(record.index);
                if let Some(slot) = slot.filter(|slot| slot.stands_for(record.version)) {
                    slot.place = place;
                }
            });
        }
        if self.stale.wants_walk(self.live) { Ask::Attention } else { Ask::Nothing }
    }

    /// Moves the deadline of an Armed slot. Later: only the slot changes, and the record that
    /// comes up too soon is filed again. Sooner: a new record, unless the old one can be amended.
    pub(crate) fn reschedule(&mut self, index: u32, deadline: u64) -> Result<Ask, Refusal> {
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
            return Ok(Ask::Nothing);
        }
        if self.pending.amend(slot.place, index, deadline) {
            return Ok(Ask::Deadline);
        }
        slot.bump_version();
        slot.place = self.pending.push(deadline, index, slot.version16());
        self.stale.left_behind();
        let pushed = self.ask_after_push();
        let tidied = self.tidy();
        Ok(if tidied == Ask::Attention { tidied } else { pushed })
    }

    /// Running -> Armed, for the run named `run`; otherwise the payload comes back.
    ///
    /// An urgent one, whose deadline has passed, goes past the queue: the worker takes it up within
    /// its present pass, in the order of ticks.
    pub(crate) fn rearm(
        &mut self,
        (index, run): (u32, u16),
        payload: P,
        deadline: u64,
        urgent: bool,
    ) -> Result<Ask, (Refusal, P)> {
        let slot = self.slots.get_mut(index).filter(|slot| slot.version16() == run);
        let Some(slot) = slot else { return Err((Refusal::Phase(Phase::Free), payload)) };
        match slot.phase() {
            Phase::Running if !self.open => Err((Refusal::Closed, payload)),
            Phase::Running => {
                slot.payload = Some(payload);
                slot.deadline = deadline;
                slot.set_phase(Phase::Armed);
                slot.set_repeats();
                slot.bump_version();
                let version = slot.version16();
                if urgent {
                    self.urgent.push(Record::new(deadline, index, version));
                } else {
                    slot.place = self.pending.push(deadline, index, version);
                }
                self.live += 1;
                self.counts.rearmed += 1;
                Ok(if urgent { Ask::Attention } else { self.ask_after_push() })
            }
            Phase::Denied => Err((Refusal::Phase(Phase::Cancelled), payload)),
            phase => Err((Refusal::Phase(phase), payload)),
        }
    }

    /// Armed -> Running, if the record still stands for the slot and its deadline is not after
    /// `now`. The slot is pinned for the runner.
    #[inline]
    pub(crate) fn claim(&mut self, index: u32, version: u16, now: u64) -> Claim<P> {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.stands_for(version)) else {
            self.stale.found();
            return Claim::Stale;
        };
        let deadline = slot.deadline;
        if deadline > now {
            return Claim::NotYet(deadline);
        }
        let Some(payload) = slot.payload.take() else { return Claim::Stale };
        // A stale record can match by a version that has wrapped: the slot's own, if it is still
        // queued, must not outlive it.
        self.pending.remove(slot.place, index);
        slot.set_phase(Phase::Running);
        slot.pin();
        self.live -= 1;
        self.counts.expired += 1;
        self.stale.wants_walk(self.live);
        Claim::Due(Claimed { payload, deadline, run: version })
    }

    fn running(&mut self, (index, run): (u32, u16)) -> Option<&mut Slot<P>> {
        self.slots.get_mut(index).filter(|slot| slot.runs(run))
    }

    /// After a run: ends the timeout, unless it has been armed again.
    pub(crate) fn finish(&mut self, (index, run): (u32, u16)) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.finish(run);
        }
    }

    /// As `finish`, and the runner's pin goes.
    #[inline]
    pub(crate) fn finish_and_unpin(&mut self, (index, run): (u32, u16)) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.finish(run);
        if slot.unpin() {
            self.slots.release(index);
        }
    }

    /// Before a run that has waited in an executor: whether a cancel was answered with true
    /// meanwhile. Then it must not begin, and counts as cancelled.
    pub(crate) fn withdrawn(&mut self, run: (u32, u16)) -> bool {
        let denied = self.running(run).filter(|s| s.phase() == Phase::Denied && s.repeats());
        let denied = denied.map(|slot| slot.set_phase(Phase::Cancelled)).is_some();
        if denied {
            self.counts.expired -= 1;
            self.counts.cancelled += 1;
        }
        denied
    }

    /// The runner has dropped the payload without running it: it counts as cancelled after all.
    pub(crate) fn abandon(&mut self, run: (u32, u16)) {
        if let Some(slot) = self.running(run) {
            slot.set_phase(Phase::Cancelled);
            self.counts.expired -= 1;
            self.counts.cancelled += 1;
            self.counts.abandoned += 1;
        }
    }

    /// Returned -> Cancelled: nobody is left to take it from the timer.
    pub(crate) fn unreturn(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index) {
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

    /// Takes one pin away, and frees the slot if that was the last of an ended one.
    #[inline]
    pub(crate) fn unpin(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.unpin() {
            self.slots.release(index);
        }
    }

    /// For the worker: moves at most `most` live records out of the queue.
    pub(crate) fn take(&mut self, most: usize, into: &mut Vec<Record>) {
        self.drain_asked = false;
        self.pending.take(most, into);
    }

    /// For the worker: what is to run in the present pass.
    pub(crate) fn take_urgent(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.urgent)
    }

    /// Whether the wheel should be walked for dead entries.
    pub(crate) fn reclaim_asked(&self) -> bool {
        self.stale.walk_asked()
    }

    /// A walk over the wheel begins.
    pub(crate) fn begin_reclaim(&mut self) {
        self.stale.begin_walk();
    }

    /// The wheel has been walked from end to end: what was dead when that began is gone. True if so
    /// much has died meanwhile that it is worth another walk.
    pub(crate) fn end_reclaim(&mut self) -> bool {
        self.stale.end_walk(self.live)
    }

    /// Whether a record in the wheel still stands for a timeout; if not, it is to be dropped.
    pub(crate) fn stands(&mut self, index: u32, version: u16) -> bool {
        let stands = self.slots.get(index).is_some_and(|slot| slot.stands_for(version));
        if !stands {
            self.stale.found();
        }
        stands
    }

    /// No timeout is admitted any more.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Armed -> Returned or Cancelled for every slot, each pinned for whoever gets it. Returns
    /// index, deadline and payload.
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
        self.urgent = Vec::new();
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn queued(&self) -> usize {
        self.pending.live()
    }

    /// For the worker: until when the queue can stay where it is. A queue that is long is to be
    /// taken now; otherwise it waits until something in it may be due, since what is cancelled
    /// while it is still in the queue never costs the worker a thing.
    pub(crate) fn take_by(&self) -> u64 {
        if self.drain_asked { 0 } else { self.pending.earliest() }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::stale::STALE_ALLOWED;
    use super::*;

    fn state() -> State<()> {
        State::new(1 << 20, 1)
    }

    fn admit(state: &mut State<()>, deadline: u64) -> u32 {
        state.admit((), |()| (), deadline, false).unwrap().0
    }

    fn cancel_all(state: &mut State<()>, indices: &[u32]) {
        indices.iter().for_each(|&index| assert!(matches!(state.cancel(index), Cancel::Won(..))));
    }

    /// As the worker does, all of it; returns the last record.
    fn take(state: &mut State<()>) -> Record {
        let mut taken = Vec::new();
        state.take(usize::MAX, &mut taken);
        *taken.last().unwrap()
    }

    #[test]
    fn a_walk_that_is_outrun_by_cancels_is_asked_for_again() {
        let mut state = state();
        let all: Vec<u32> = (0..100_000).map(|n| admit(&mut state, n)).collect();
        take(&mut state);
        let (first, rest) = all.split_at(60_000);
        cancel_all(&mut state, first);
        assert!(state.reclaim_asked());
        state.begin_reclaim();
        cancel_all(&mut state, rest);
        assert!(state.end_reclaim() && state.reclaim_asked(), "40,000 dead ones are left");
        state.begin_reclaim();
        assert!(!state.end_reclaim() && !state.reclaim_asked());
    }

    #[test]
    fn the_dead_that_a_walk_has_dropped_do_not_count() {
        let mut state = state();
        let all: Vec<u32> = (0..10_000).map(|n| admit(&mut state, n)).collect();
        let mut records = Vec::new();
        state.take(usize::MAX, &mut records);
        cancel_all(&mut state, &all[..4000]);
        assert!(!records[..4000].iter().any(|record| state.stands(record.index, record.version)));
        cancel_all(&mut state, &all[4000..8000]);
        assert!(!state.reclaim_asked(), "4,000 are dead, and 2,000 alive");
    }

    /// A record that is left behind when its slot's version has come round matches the slot's next
    /// user, whose own record is still queued.
    fn run_by_a_wrapped_version(state: &mut State<()>) {
        let mut stale = None;
        for _ in 0..4096 {
            let index = admit(state, 9);
            let record = take(state);
            stale.get_or_insert(record);
            assert!(matches!(state.cancel(index), Cancel::Won(..)));
        }
        let Record { index, version, .. } = stale.unwrap();
        let next = admit(state, 5);
        state.unpin(next);
        let Claim::Due(run) = state.claim(index, version, 9) else { panic!("another slot") };
        state.finish_and_unpin((index, run.run));
    }

    #[test]
    fn a_version_that_wraps_spoils_no_free_slot() {
        let mut state = state();
        let kept = admit(&mut state, 1);
        run_by_a_wrapped_version(&mut state);
        assert_eq!(state.queued(), 0, "the record of the one that ran is gone with it");
        let more: Vec<u32> = (0..3000).map(|_| admit(&mut state, 9)).collect();
        cancel_all(&mut state, &more[..2999]); // the queue is swept
        for _ in 0..3000 {
            assert_ne!(admit(&mut state, 9), kept, "a slot in use");
        }
    }

    #[test]
    fn what_finds_no_slot_comes_back_and_is_counted() {
        let mut state = State::new(1, 1);
        assert!(state.admit(7, |payload| payload, 5, false).is_ok());
        let refused = state.admit(8, |payload| payload, 5, false);
        assert_eq!(refused.map(drop), Err((Refusal::Full, 8)));
        assert_eq!((state.counts().rejected, state.live()), (1, 1));
    }

    #[test]
    fn the_last_pin_of_an_ended_one_frees_its_slot() {
        let mut state = state();
        let index = admit(&mut state, 5);
        state.pin(index);
        cancel_all(&mut state, &[index]); // takes one pin away
        assert_ne!(admit(&mut state, 5), index);
        state.unpin(index);
        assert_eq!(admit(&mut state, 5), index);
    }

    /// What was returned, and then collected by nobody, ends as cancelled.
    #[test]
    fn what_is_not_collected_is_counted_once() {
        let mut state = state();
        let index = admit(&mut state, 5);
        state.close();
        state.empty_into(Phase::Returned, |_, _, ()| ());
        state.unreturn(index);
        let Counts { returned, cancelled, .. } = state.counts();
        assert_eq!((returned, cancelled, state.phase(index)), (0, 1, Phase::Cancelled));
    }

    #[test]
    fn what_is_emptied_is_counted_by_its_end() {
        for end in [Phase::Cancelled, Phase::Returned] {
            let mut state = state();
            (0..5).for_each(|n| _ = admit(&mut state, n));
            state.close();
            state.empty_into(end, |_, _, ()| ());
            let Counts { returned, cancelled, .. } = state.counts();
            let expected = if end == Phase::Returned { (5, 0) } else { (0, 5) };
            assert_eq!(((returned, cancelled), state.live()), (expected, 0));
        }
    }

    /// The worker may sleep to the former deadline, so it must hear of a sooner one and need not hear
    /// of a later; once more is dead than alive, it is to walk over the wheel.
    #[test]
    fn pulling_forward_asks_for_a_sooner_wake_up() {
        let mut state = State::new(2, 1);
        let (index, _) = state.admit((), |()| (), 1 << 40, false).unwrap();
        state.take(usize::MAX, &mut Vec::new());
        assert_eq!(state.reschedule(index, 1 << 40), Ok(Ask::Nothing), "the same");
        assert_eq!(state.reschedule(index, 1 << 41), Ok(Ask::Nothing));
        let mut deadline = 1 << 40;
        let mut sooner = || {
            deadline -= 1;
            let ask = state.reschedule(index, deadline);
            state.take(usize::MAX, &mut Vec::new());
            ask
        };
        for _ in 0..=STALE_ALLOWED {
            assert_eq!(sooner(), Ok(Ask::Deadline));
        }
        assert_eq!(sooner(), Ok(Ask::Attention));
        assert_eq!(sooner(), Ok(Ask::Deadline), "it has been asked");
    }

    /// The worker is called once for each queue that grows long, not once for ever.
    #[test]
    fn every_long_queue_asks_for_attention_once() {
        let mut state = State::<()>::new(4 * LONG_QUEUE, 1);
        for _ in 0..2 {
            let mut admit = || state.admit((), |()| (), 5, false).map(|(_, ask)| ask).ok();
            let asks: Vec<_> = (0..LONG_QUEUE + 2).filter_map(|_| admit()).collect();
            let attention = asks.iter().filter(|&&ask| ask == Ask::Attention).count();
            assert_eq!((asks.len(), attention), (LONG_QUEUE + 2, 1));
            assert_eq!(asks[LONG_QUEUE - 1], Ask::Attention);
            state.take(usize::MAX, &mut Vec::new());
        }
    }
}
