//! What the worker takes out of a shard's queue in one pass.
//!
//! Nothing stays here between passes: what the drain cap leaves behind stays in the queue, where a
//! cancel still finds it.

use super::pending::Record;
use super::state::State;
use std::ops::RangeInclusive;

/// Keep the capacity that the last pass needed, within these bounds: 64 KiB and 1 MiB.
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

    /// Passes on what was alive when it was taken, until `file` returns false, and returns how many
    /// that were. The rest is dropped.
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

    /// Keeps memory for as much again, which is what the next pass needs while producers go on as
    /// they do.
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
