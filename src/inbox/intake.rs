//! What the worker has taken out of a shard's queue and not yet filed in the wheel.
//!
//! The queue changes hands whole, in O(1) under the shard's lock, however much of it the drain cap
//! lets the worker file in this pass. The rest waits here, in front of what is queued meanwhile.

use super::pending::Record;
use super::shard::State;
use std::ops::RangeInclusive;

/// Keep the capacity that the last pass needed, within these bounds: 64 KiB and 1 MiB.
const KEPT_CAPACITY: RangeInclusive<usize> = 1 << 12..=1 << 16;

#[derive(Default)]
pub(crate) struct Intake {
    records: Vec<Record>,
    /// Where the next pass goes on.
    next: usize,
    /// Records from there on that were alive when they were taken.
    live: usize,
}

impl Intake {
    /// Takes what is queued, if nothing is left of before.
    pub(crate) fn refill<P>(&mut self, state: &mut State<P>) {
        if self.records.is_empty() {
            self.live = state.queued();
            state.take(&mut self.records);
        }
    }

    /// The next record that was alive when it was taken.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Record> {
        while let Some(&record) = self.records.get(self.next) {
            self.next += 1;
            if !record.is_dead() {
                self.live -= 1;
                return Some(record);
            }
        }
        self.recycle();
        None
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Empties the buffer. It keeps memory for as much again, which is what the next pass needs
    /// while producers go on as they do.
    fn recycle(&mut self) {
        let keep = self.records.len().clamp(*KEPT_CAPACITY.start(), *KEPT_CAPACITY.end());
        self.records.clear();
        self.next = 0;
        if self.records.capacity() > 2 * keep {
            self.records.shrink_to(keep);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::inbox::Shard;

    #[test]
    fn it_hands_out_the_living_in_order_and_refills_when_it_is_empty() {
        let shard = Shard::new(0, 1);
        let admit = |n: u64| shard.lock().admit((), |()| (), n, false).unwrap().0;
        let indices: Vec<u32> = (0..5).map(admit).collect();
        let _ = shard.lock().cancel(indices[1]);
        let mut intake = Intake::default();
        intake.refill(&mut shard.lock());
        assert_eq!((intake.live(), shard.lock().queued()), (4, 0));
        assert_eq!(intake.pop().map(|r| r.deadline), Some(0));
        admit(9);
        intake.refill(&mut shard.lock());
        assert_eq!(shard.lock().queued(), 1, "the rest comes first");
        let rest: Vec<u64> = std::iter::from_fn(|| intake.pop()).map(|r| r.deadline).collect();
        assert_eq!(rest, [2, 3, 4]);
        intake.refill(&mut shard.lock());
        assert_eq!(intake.pop().map(|r| r.deadline), Some(9));
    }

    #[test]
    fn memory_of_a_burst_is_let_go_of() {
        let shard = Shard::new(0, 1);
        let mut intake = Intake::default();
        for n in 0..100_000 {
            shard.lock().admit((), |()| (), n, false).unwrap();
        }
        let mut kept = Vec::new();
        for _ in 0..4 {
            intake.refill(&mut shard.lock());
            while intake.pop().is_some() {}
            kept.push(intake.records.capacity());
        }
        assert!(kept.iter().all(|&n| n <= 2 * KEPT_CAPACITY.end()), "{kept:?}");
        assert!(kept[2..].iter().all(|&n| n <= 2 * KEPT_CAPACITY.start()), "{kept:?}");
    }
}
