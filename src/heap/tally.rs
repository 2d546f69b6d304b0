//! The tallies: how many timeouts met each event, counted without a shared cache line.
//!
//! Each heap has a tally that only its thread writes, with a load and a store. The worker has one. A
//! thread without a heap in the timer, and one that runs jobs, count in one that all such threads
//! share, with read-modify-writes. A total is the sum of all.
//!
//! Internal timeouts have a tally of their own (`Context::internals`), which is in no public total. The
//! lock of their owner guards `scheduled` and `taken_back` there; the other counts have several writers.
//!
//! **A total is exact once the counting threads have returned from their calls, and what is pending
//! never looks less than it is.** A timeout is counted as scheduled before another thread can see it,
//! and as ended after its end. All ends are read before all beginnings.
//!
//! The counts use the standard library's atomics in the loom models too. Otherwise loom would explore
//! every order of counting.

use super::metrics::Metrics;
use std::sync::atomic::{AtomicU64, Ordering};

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds to a count that has only one writer. Release, here and below: pairs with the acquire of
    /// `get`, so who sees an end counted sees its beginning counted.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Release);
    }

    /// Adds to a count that has several writers.
    pub(crate) fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Release);
    }

    /// Takes back what was added to a count that has several writers.
    pub(crate) fn sub_shared(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Counts of events. The comments say what a public count is the sum of.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Armed, those included that were taken back.
    pub(crate) scheduled: Count,
    /// Armed, and taken back since the timer had been closed.
    pub(crate) taken_back: Count,
    /// Refused before they were armed.
    pub(crate) rejected: Count,
    /// Went on after a run.
    pub(crate) rearmed: Count,
    pub(crate) rescheduled: Count,
    /// Claimed, the next two included.
    pub(crate) expired: Count,
    /// Claimed, then cancelled before the job began.
    pub(crate) withdrawn: Count,
    /// Claimed, and the job dropped.
    pub(crate) abandoned: Count,
    pub(crate) cancelled: Count,
    /// Returned by stop, the next one included.
    pub(crate) returned: Count,
    /// Returned, but never collected.
    pub(crate) uncollected: Count,
    /// Became New other than by being scheduled.
    pub(crate) renewed: Count,
    /// Filed in the wheel.
    pub(crate) filed: Count,
    /// Ended or moved on from New without having been filed.
    pub(crate) unqueued: Count,
    /// Entries that died in the wheel.
    pub(crate) died: Count,
}

/// The sums over several tallies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    begun: u64,
    ended: u64,
    queued: u64,
    unqueued: u64,
}

impl Totals {
    /// Sums up tallies: all ends before all beginnings.
    pub(crate) fn of<'a>(tallies: impl Iterator<Item = &'a Tally> + Clone) -> Self {
        let mut totals = Self::default();
        for tally in tallies.clone() {
            let Tally { taken_back, expired, cancelled, returned, filed, unqueued, .. } = tally;
            totals.ended += sum([taken_back, expired, cancelled, returned]);
            totals.unqueued += sum([filed, unqueued]);
        }
        for Tally { scheduled, rearmed, renewed, .. } in tallies {
            let scheduled = scheduled.get();
            totals.begun += scheduled + rearmed.get();
            totals.queued += scheduled + renewed.get();
        }
        totals
    }

    pub(crate) fn pending(&self) -> u64 {
        self.begun.saturating_sub(self.ended)
    }

    pub(crate) fn queued(&self) -> u64 {
        self.queued.saturating_sub(self.unqueued)
    }
}

fn sum<const N: usize>(counts: [&Count; N]) -> u64 {
    counts.into_iter().map(Count::get).sum()
}

impl Metrics {
    /// Fills in the public counts of events. Pending follows from them, so that the sums agree in
    /// every snapshot.
    pub(super) fn count<'a>(&mut self, tallies: impl Iterator<Item = &'a Tally> + Clone) {
        for tally in tallies.clone() {
            let undone = sum([&tally.withdrawn, &tally.abandoned]);
            let (uncollected, taken_back) = (tally.uncollected.get(), tally.taken_back.get());
            self.abandoned += tally.abandoned.get();
            self.cancelled += tally.cancelled.get() + undone + uncollected;
            self.expired = self.expired.wrapping_add(tally.expired.get().wrapping_sub(undone));
            let returned = tally.returned.get().wrapping_sub(uncollected);
            self.returned = self.returned.wrapping_add(returned);
            self.rejected += tally.rejected.get() + taken_back;
            self.scheduled = self.scheduled.wrapping_sub(taken_back);
            self.rescheduled += tally.rescheduled.get();
        }
        self.queue_depth = Totals::of(tallies.clone()).queued();
        for tally in tallies {
            self.scheduled = self.scheduled.wrapping_add(tally.scheduled.get());
            self.rearmed += tally.rearmed.get();
        }
        let ended = self.expired + self.cancelled + self.returned;
        self.pending = (self.scheduled + self.rearmed).saturating_sub(ended);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn counted(tallies: &[Tally]) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.count(tallies.iter());
        let Metrics { scheduled, rearmed, expired, cancelled, returned, pending, .. } = metrics;
        assert_eq!(scheduled + rearmed, expired + cancelled + returned + pending, "{metrics:?}");
        assert_eq!(Totals::of(tallies.iter()).pending(), pending);
        assert_eq!(Totals::of(tallies.iter()).queued(), metrics.queue_depth);
        metrics
    }

    /// Each of ten timeouts is scheduled, and five of them are filed.
    fn ten() -> [Tally; 3] {
        let tallies = [(); 3].map(|()| Tally::default());
        tallies[0].scheduled.add(6);
        tallies[1].scheduled.add_shared(4);
        tallies[2].filed.add(5);
        tallies
    }

    #[test]
    fn pending_is_the_sum_of_all_tallies() {
        let metrics = counted(&ten());
        assert_eq!((metrics.scheduled, metrics.pending, metrics.queue_depth), (10, 10, 5));
    }

    #[test]
    fn each_end_is_counted_once() {
        type Ended = fn(&Metrics) -> u64;
        type Pick = fn(&Tally) -> &Count;
        let ends: [(&[Pick], Ended); 7] = [
            (&[|t| &t.expired], |m| m.expired),
            (&[|t| &t.cancelled], |m| m.cancelled),
            (&[|t| &t.returned], |m| m.returned),
            // The job of a claimed one was withdrawn, or dropped.
            (&[|t| &t.expired, |t| &t.withdrawn], |m| m.cancelled),
            (&[|t| &t.expired, |t| &t.abandoned], |m| m.cancelled),
            // Returned by a stop, and not collected.
            (&[|t| &t.returned, |t| &t.uncollected], |m| m.cancelled),
            // Armed in a closed timer.
            (&[|t| &t.taken_back], |m| m.rejected),
        ];
        for (number, (counts, ended)) in ends.into_iter().enumerate() {
            let tallies = ten();
            // Each count of one end may be on another thread.
            counts.iter().enumerate().for_each(|(n, count)| count(&tallies[n]).add_shared(3));
            let metrics = counted(&tallies);
            assert_eq!((ended(&metrics), metrics.pending), (3, 7), "end {number}");
            let Metrics { expired, cancelled, returned, rejected, .. } = metrics;
            assert_eq!(expired + cancelled + returned + rejected, 3, "end {number}");
        }
    }

    #[test]
    fn a_timeout_that_goes_on_is_pending_again() {
        let tallies = ten();
        tallies[2].expired.add(1);
        tallies[1].rearmed.add_shared(1);
        let metrics = counted(&tallies);
        assert_eq!((metrics.expired, metrics.rearmed, metrics.pending), (1, 1, 10));
        assert_eq!(metrics.queue_depth, 5);
        tallies[1].renewed.add_shared(1);
        assert_eq!(counted(&tallies).queue_depth, 6, "it waits in a queue");
        tallies[0].unqueued.add(2);
        assert_eq!(counted(&tallies).queue_depth, 4);
    }

    #[test]
    fn refusals_are_counted() {
        let tallies = ten();
        tallies[1].rejected.add_shared(2);
        tallies[0].taken_back.add(1);
        tallies[0].abandoned.add(0);
        let metrics = counted(&tallies);
        assert_eq!((metrics.rejected, metrics.scheduled, metrics.pending), (3, 9, 9));
    }

    #[test]
    fn a_shared_count_can_be_decreased() {
        let count = Count::default();
        count.add_shared(5);
        count.sub_shared(2);
        count.add(1);
        assert_eq!(count.get(), 4);
    }
}
