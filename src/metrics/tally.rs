//! Tallies: counts of events, which threads keep without sharing cache lines.
//!
//! Each thread that schedules has a tally that only it writes, with a load and a store. The thread uses it if this
//! timer is the one it used last. The worker has one too. All others, and what runs on an executor,
//! share one more tally, `Counts::by_others`, and write it with read-modify-writes. When a thread ends, its counts are
//! added to that one. A total is the sum over all tallies. To add a count, begin here: `pending` and the public
//! `Metrics` follow.
//!
//! Internal timeouts have a tally of their own (`Counts::internals`), which is in no public total. The
//! lock of their owner guards `scheduled` there. Its other counts have several writers.
//!
//! **A total is exact once the counting threads have returned from their calls, and the number of
//! pending timeouts is never too low.** A timeout is counted as scheduled before another thread can see
//! it, and as ended after its end. All ends are read before all beginnings.
//!
//! The counts use the standard library's atomics in the loom models too. Otherwise loom would explore
//! every order of counting.

use super::snapshot::Metrics;
use std::sync::atomic::{AtomicU64, Ordering};

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds to a count that has only one writer. Returns what it was before. Release, here and below, pairs with
    /// the acquire of `get`: a reader that sees an end counted also sees its beginning counted.
    #[inline]
    pub(crate) fn add(&self, n: u64) -> u64 {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + n, Ordering::Release);
        before
    }

    /// Adds to a count that has several writers.
    pub(crate) fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Counts of events. Unless a comment says otherwise, a count is of timeouts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Timeouts that were armed, including those in `taken_back`.
    pub(crate) scheduled: Count,
    /// Timeouts that were armed, and taken back because the timer had been closed.
    pub(crate) taken_back: Count,
    /// Timeouts that were refused before they were armed.
    pub(crate) rejected: Count,
    /// Runs after which the timeout went on, or would have gone on if it had not been cancelled.
    pub(crate) rearmed: Count,
    /// Calls that moved a deadline.
    pub(crate) rescheduled: Count,
    /// Timeouts that were claimed, including those in `withdrawn` and `abandoned`.
    pub(crate) expired: Count,
    /// Timeouts that were claimed, and then cancelled before their job began.
    pub(crate) withdrawn: Count,
    /// Timeouts that were claimed, and whose job was dropped.
    pub(crate) abandoned: Count,
    /// Timeouts that were cancelled while pending, or as a run asked to go on.
    pub(crate) cancelled: Count,
    /// Timeouts that a stop returned, including those in `uncollected`.
    pub(crate) returned: Count,
    /// Timeouts that a stop returned and no caller collected.
    pub(crate) uncollected: Count,
    /// Entries that became dead in the wheel. This only decides when to consider a sweep.
    pub(crate) died: Count,
}

impl Tally {
    /// Adds all counts of another tally, which nobody writes any more, to one that has several writers.
    pub(crate) fn add_all(&self, other: &Self) {
        for (mine, others) in self.all().into_iter().zip(other.all()) {
            mine.add_shared(others.get());
        }
    }

    fn all(&self) -> [&Count; 12] {
        let Self { scheduled, taken_back, rejected, rearmed, rescheduled, expired, .. } = self;
        let Self { withdrawn, abandoned, cancelled, returned, uncollected, died, .. } = self;
        let begun = [scheduled, taken_back, rejected, rearmed, rescheduled, expired];
        let ended = [withdrawn, abandoned, cancelled, returned, uncollected, died];
        std::array::from_fn(|n| if n < 6 { begun[n] } else { ended[n - 6] })
    }
}

/// The number of pending timeouts: all ends are read before all beginnings.
pub(super) fn pending<'a>(tallies: impl Iterator<Item = &'a Tally> + Clone) -> u64 {
    let ended = |Tally { taken_back, expired, cancelled, returned, .. }: &Tally| {
        sum([taken_back, expired, cancelled, returned])
    };
    let begun = |Tally { scheduled, rearmed, .. }: &Tally| sum([scheduled, rearmed]);
    let ended: u64 = tallies.clone().map(ended).sum();
    tallies.map(begun).sum::<u64>().saturating_sub(ended)
}

fn sum<const N: usize>(counts: [&Count; N]) -> u64 {
    counts.into_iter().map(Count::get).sum()
}

impl Metrics {
    /// Fills in the public counts of events. `pending` is computed from them, so the sums agree in every
    /// snapshot.
    pub(crate) fn count<'a>(&mut self, tallies: impl Iterator<Item = &'a Tally> + Clone) {
        let all =
            |pick: fn(&Tally) -> &Count| tallies.clone().map(pick).map(Count::get).sum::<u64>();
        // Each count that is subtracted from another is read first, in all tallies, because different threads may
        // write the two. So no difference is below zero.
        self.abandoned = all(|tally| &tally.abandoned);
        let undone = self.abandoned + all(|tally| &tally.withdrawn);
        let uncollected = all(|tally| &tally.uncollected);
        let taken_back = all(|tally| &tally.taken_back);
        self.cancelled = all(|tally| &tally.cancelled) + undone + uncollected;
        self.expired = all(|tally| &tally.expired) - undone;
        self.returned = all(|tally| &tally.returned) - uncollected;
        self.rejected = all(|tally| &tally.rejected) + taken_back;
        self.rescheduled = all(|tally| &tally.rescheduled);
        self.scheduled = all(|tally| &tally.scheduled) - taken_back;
        self.rearmed = all(|tally| &tally.rearmed);
        let ended = self.expired + self.cancelled + self.returned;
        self.pending = (self.scheduled + self.rearmed).saturating_sub(ended);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
