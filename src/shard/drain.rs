//! The drain: the records that the worker takes out of a shard's queue in one pass.
//!
//! It is empty between passes. Records beyond the drain cap stay in the queue, where a cancel can
//! still remove them.

use super::pending::Record;
use super::state::State;
use std::ops::RangeInclusive;

/// Bounds of the capacity that is kept for the next pass: 64 KiB and 1 MiB of records.
const KEPT_CAPACITY: RangeInclusive<usize> = 1 << 12..=1 << 16;

#[derive(Default)]
pub(crate) struct Drain {
    records: Vec<Record>,
}

impl Drain {
    /// Takes at most `most` live records from the queue.
    pub(crate) fn fill<P>(&mut self, state: &mut State<P>, most: usize) {
        state.take(most, &mut self.records);
    }

    /// Passes the records that were live when they were taken to `file`, until it returns false.
    /// Drops the others. Returns how many it passed.
    pub(crate) fn empty(&mut self, mut file: impl FnMut(&Record) -> bool) -> usize {
        let mut filed = 0;
        for record in self.records.iter().filter(|record| !record.is_dead()) {
            filed += 1;
            if !file(record) {
                break;
            }
        }
        self.recycle();
        filed
    }

    /// Empties the buffer. Keeps room for as many records again: at a steady rate the next pass
    /// needs that much.
    fn recycle(&mut self) {
        let keep = self.records.len().clamp(*KEPT_CAPACITY.start(), *KEPT_CAPACITY.end());
        self.records.clear();
        if self.records.capacity() > 2 * keep {
            self.records.shrink_to(keep);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shard::Shard;

    fn filled(n: u64) -> Shard<()> {
        let shard = Shard::new(0, 1);
        for n in 0..n {
            shard.lock().admit((), |()| (), n, false).unwrap();
        }
        shard
    }

    #[test]
    fn the_living_are_passed_on_in_order() {
        let shard = filled(5);
        let _ = shard.lock().cancel(1);
        let mut drain = Drain::default();
        drain.fill(&mut shard.lock(), 2);
        let mut deadlines = Vec::new();
        let mut note = |drain: &mut Drain| {
            drain.empty(|record| {
                deadlines.push(record.deadline);
                true
            })
        };
        assert_eq!(note(&mut drain), 2);
        drain.fill(&mut shard.lock(), 9);
        assert_eq!(note(&mut drain), 2);
        assert_eq!(deadlines, [0, 2, 3, 4]);
    }

    #[test]
    fn memory_of_a_burst_is_let_go_of() {
        let shard = filled(100_000);
        let mut drain = Drain::default();
        let mut kept = Vec::new();
        for _ in 0..3 {
            drain.fill(&mut shard.lock(), usize::MAX);
            drain.empty(|_| true);
            kept.push(drain.records.capacity());
        }
        assert!(kept.iter().all(|&n| n <= 2 * KEPT_CAPACITY.end()), "{kept:?}");
        assert!(kept[1..].iter().all(|&n| n <= 2 * KEPT_CAPACITY.start()), "{kept:?}");
    }
}
