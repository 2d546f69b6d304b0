//! One timeout's slot, and the word that decides how the timeout ends.
//!
//! - The *payload* is the task.
//! - The *runner* has the payload during a run: the worker, or a job in an executor.
//! - A *record* names a slot and a version, in the pending queue or in the wheel. It *stands for*
//!   the timeout if the slot is Armed and has that version. Otherwise the record is dead.
//! - A *pin* keeps the slot for a handle or a runner.
//!
//! Every operation holds the lock of the slot's shard. From the low end, the word holds 3 bits of
//! phase, 1 bit `repeats`, 12 bits of version and 16 bits of pins. `repeats` is set for a periodic
//! timeout, and for one that has gone on before.
//!
//! | phase | means | payload | leaves it by |
//! |---|---|---|---|
//! | Free | not in use | none | admit -> Armed |
//! | Armed | pending: in the queue or the wheel | here | cancel -> Cancelled; claim -> Running; empty_into -> Returned or Cancelled |
//! | Running | claimed by the worker, handed to the executor | with the runner | go_on -> Armed; cancel -> Denied; finish -> Expired; abandon -> Cancelled |
//! | Denied | running, and must not go on | with the runner | finish -> Expired, or Cancelled if it repeats; withdrawn or abandon -> Cancelled |
//! | Expired | has run for the last time | none | last unpin -> Free |
//! | Cancelled | will not run | none | last unpin -> Free |
//! | Returned | went back to the caller of stop | with the caller | unreturn -> Cancelled; last unpin -> Free |
//!
//! Invariants:
//! 1. The slot has a payload exactly in phase Armed. The operation that moves the phase out of
//!    Armed takes the payload, so each timeout has one end.
//! 2. A slot becomes Free only when its phase has ended and nothing pins it. So a handle never
//!    finds another timeout in its slot.
//! 3. An Armed slot has a record with its index and version. The record is in the queue, among
//!    those that catch up, in the worker's hand or in the wheel, filed not later than the deadline, or
//!    in the next tick that can still expire if the deadline has passed.
//! 4. The version changes whenever the slot leaves a dead record behind, and whenever the timeout
//!    goes on. It wraps after 4,096 changes. A dead record can then match by chance. This costs one
//!    more lookup and breaks nothing: the deadline in the slot decides, and an operation that
//!    leaves Armed takes the slot's own record out of the queue.
//! 5. Running and Denied belong to the runner. Others can only change Running to Denied. There is
//!    one runner: a run says at its end whether the timeout goes on, so the next run cannot begin
//!    earlier.

use crate::base::slab;

/// The order matters: all phases from `Expired` on are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(crate) enum Phase {
    Free,
    Armed,
    Running,
    Denied,
    Expired,
    Cancelled,
    Returned,
}

impl Phase {
    #[inline]
    pub(crate) fn has_ended(self) -> bool {
        self >= Phase::Expired
    }

    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Phase {
        use Phase::{Armed, Cancelled, Denied, Expired, Free, Returned, Running};
        const BY_BITS: [Phase; 8] =
            [Free, Armed, Running, Denied, Expired, Cancelled, Returned, Returned];
        BY_BITS[usize::from(bits & 7)]
    }
}

const PHASE: u32 = 0b111;
const REPEATS: u32 = 1 << 3;
const VERSION_SHIFT: u32 = 4;
const VERSION: u32 = 0xfff << VERSION_SHIFT;
const ONE_PIN: u32 = 1 << 16;
const PINS: u32 = 0xffff << 16;

/// The place of one timeout in its shard.
pub(crate) struct Slot<P> {
    pub(super) payload: Option<P>,
    /// Nanoseconds since the timer's origin.
    pub(super) deadline: u64,
    /// The record's last place in the pending queue. In a free slot, the link to the next free one.
    pub(super) place: u32,
    word: u32,
}

impl<P> slab::Slot for Slot<P> {
    fn fresh(version: u32) -> Self {
        let word = (version << VERSION_SHIFT) & VERSION;
        Self { payload: None, deadline: 0, place: 0, word }
    }

    fn version(&self) -> u32 {
        (self.word & VERSION) >> VERSION_SHIFT
    }

    fn link(&self) -> u16 {
        self.place as u16
    }

    fn set_link(&mut self, link: u16) {
        self.place = u32::from(link);
    }
}

impl<P> Slot<P> {
    #[inline]
    pub(super) fn phase(&self) -> Phase {
        Phase::from_bits((self.word & PHASE) as u8)
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.word = (self.word & !PHASE) | phase as u32;
    }

    /// Moves Free to Armed, with one pin for the caller's handle.
    #[inline]
    pub(super) fn begin(&mut self, payload: P, deadline: u64, repeats: bool) {
        debug_assert!(self.phase() == Phase::Free && self.payload.is_none());
        self.payload = Some(payload);
        self.deadline = deadline;
        let repeats = if repeats { REPEATS } else { 0 };
        self.word = (self.word & VERSION) | Phase::Armed as u32 | repeats | ONE_PIN;
    }

    /// Whether a record of this version stands for the timeout in this slot.
    #[inline]
    pub(super) fn stands_for(&self, version: u16) -> bool {
        self.phase() == Phase::Armed && self.version16() == version
    }

    /// Whether a runner has the payload.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Denied)
    }

    /// Ends the last run. The phase becomes Expired, or Cancelled if a cancel was denied and
    /// answered with true.
    #[inline]
    pub(super) fn finish(&mut self) {
        if self.runs() {
            let cancelled = self.phase() == Phase::Denied && self.repeats();
            self.set_phase(if cancelled { Phase::Cancelled } else { Phase::Expired });
        }
    }

    pub(super) fn repeats(&self) -> bool {
        self.word & REPEATS != 0
    }

    pub(super) fn set_repeats(&mut self) {
        self.word |= REPEATS;
    }

    pub(super) fn version16(&self) -> u16 {
        slab::Slot::version(self) as u16
    }

    pub(super) fn bump_version(&mut self) {
        let next = (self.word & VERSION).wrapping_add(1 << VERSION_SHIFT) & VERSION;
        self.word = (self.word & !VERSION) | next;
    }

    /// Adds a pin. The word counts 65,535 pins at most. A slot that has reached this number stays
    /// pinned until its timer is gone, which is safe.
    pub(super) fn pin(&mut self) {
        if self.word & PINS != PINS {
            self.word += ONE_PIN;
        }
    }

    /// Removes a pin. True if it was the last one of an ended timeout: the slot is Free now.
    #[inline]
    pub(super) fn unpin(&mut self) -> bool {
        debug_assert!(self.word & PINS != 0, "unpinned more often than pinned");
        if self.word & PINS != PINS {
            self.word -= ONE_PIN;
        }
        let freed = !self.is_pinned() && self.phase().has_ended();
        if freed {
            self.set_phase(Phase::Free);
        }
        freed
    }

    /// Ends the timeout and removes a pin, as `unpin` does.
    #[inline]
    pub(super) fn end(&mut self, end: Phase) -> bool {
        self.set_phase(end);
        self.unpin()
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.word & PINS != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::slab::Slot as _;

    #[test]
    fn every_phase_survives_its_bits() {
        use Phase::{Armed, Cancelled, Denied, Expired, Free, Returned, Running};
        for phase in [Free, Armed, Running, Denied, Expired, Cancelled, Returned] {
            assert_eq!(Phase::from_bits(phase as u8), phase);
            let ended = matches!(phase, Expired | Cancelled | Returned);
            assert_eq!(phase.has_ended(), ended);
        }
    }

    #[test]
    fn a_slot_is_32_bytes() {
        assert_eq!(size_of::<Slot<Box<dyn FnOnce() + Send>>>(), 32);
    }

    #[test]
    fn the_fields_of_the_word_do_not_touch_each_other() {
        let mut slot = Slot::<()>::fresh(4095);
        slot.begin((), 7, true);
        slot.pin();
        slot.bump_version();
        assert_eq!((slot.version(), slot.phase(), slot.repeats()), (0, Phase::Armed, true));
        slot.set_phase(Phase::Returned);
        assert!(!slot.unpin());
        assert!(slot.is_pinned() && slot.repeats());
        assert_eq!(slot.phase(), Phase::Returned);
        assert!(slot.unpin());
        assert_eq!((slot.is_pinned(), slot.phase()), (false, Phase::Free));
    }

    #[test]
    fn too_many_pins_stick() {
        let mut slot = Slot::<()>::fresh(1);
        slot.begin((), 7, false);
        for _ in 0..70_000 {
            slot.pin();
        }
        for _ in 0..70_001 {
            assert!(!slot.unpin());
        }
        assert!(slot.is_pinned());
        assert_eq!((slot.version(), slot.phase()), (1, Phase::Armed));
    }
}
