//! All counts of one timer.

use super::snapshot::Metrics;
use super::tally::{Tally, Totals};
use super::worker::WorkerCounts;
use crate::base::sync::{Arc, Mutex};
use std::collections::HashSet;

/// The tallies of all threads, and the worker's own counters.
pub(crate) struct Counts {
    /// The worker's counters.
    pub(crate) worker: WorkerCounts,
    /// The worker's counts.
    pub(crate) by_worker: Tally,
    /// The counts of threads without an arena. Several threads write it.
    pub(crate) by_others: Tally,
    /// The counts of the crate's own timeouts. Several threads write it. No public count includes it.
    pub(crate) internals: Arc<Tally>,
    /// The counts of each arena's thread.
    pub(crate) tallies: Mutex<Vec<Arc<Tally>>>,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            worker: WorkerCounts::new(),
            by_worker: Tally::default(),
            by_others: Tally::default(),
            internals: Arc::default(),
            tallies: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn add_tally(&self, tally: Arc<Tally>) {
        self.tallies.lock().push(tally);
    }

    /// The tally of threads without an arena, for timeouts of users or of the crate itself.
    #[inline]
    pub(crate) fn of(&self, internal: bool) -> &Tally {
        if internal { &self.internals } else { &self.by_others }
    }

    /// Counts timeouts that the worker has filed.
    pub(crate) fn filed(&self, internal: bool, n: usize) {
        if internal {
            self.internals.filed.add_shared(n as u64);
        } else {
            self.by_worker.filed.add(n as u64);
        }
    }

    /// Counts a timeout that the worker has claimed. `filed` says whether it was Filed.
    #[inline]
    pub(crate) fn claimed(&self, internal: bool, filed: bool) {
        if internal {
            return self.claimed_internal(filed);
        }
        self.by_worker.expired.add(1);
        self.by_worker.unqueued.add(u64::from(!filed));
    }

    #[cold]
    fn claimed_internal(&self, filed: bool) {
        self.internals.expired.add_shared(1);
        self.internals.unqueued.add_shared(u64::from(!filed));
    }

    /// Adds the counts of retired arenas to those of threads without an arena. `None` if another thread uses
    /// the list.
    pub(crate) fn fold_tallies<'a>(
        &self,
        retired: impl Iterator<Item = &'a Arc<Tally>>,
    ) -> Option<()> {
        let mut tallies = self.tallies.try_lock()?;
        let mut gone = HashSet::new();
        for tally in retired {
            self.by_others.add_all(tally);
            gone.insert(Arc::as_ptr(tally));
        }
        tallies.retain(|tally| !gone.contains(&Arc::as_ptr(tally)));
        if tallies.len() < tallies.capacity() / 4 {
            tallies.shrink_to_fit();
        }
        Some(())
    }

    /// All tallies of users' timeouts. `arenas` are those of the arenas.
    fn of_users<'a>(
        &'a self,
        arenas: &'a [Arc<Tally>],
    ) -> impl Iterator<Item = &'a Tally> + Clone + 'a {
        arenas.iter().map(|tally| &**tally).chain([&self.by_worker, &self.by_others])
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals::of(self.of_users(&self.tallies.lock()))
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.count(self.of_users(&self.tallies.lock()));
        self.worker.fill(&mut metrics);
        metrics
    }

    /// Whether any timeout seems to be pending, internal ones included. True if another thread uses the
    /// list of tallies. The answer is only good for deciding how much to clean up: a timeout can begin at
    /// any moment.
    pub(crate) fn is_anything_pending(&self) -> bool {
        let all = self.try_with_tallies(|all| all.pending());
        all.is_none_or(|pending| pending > 0)
    }

    /// Sums up all tallies, internal ones included. `None` if another thread uses the list of tallies, so
    /// that no caller waits for it.
    pub(crate) fn try_with_tallies<R>(&self, read: impl FnOnce(&Totals) -> R) -> Option<R> {
        let arenas = self.tallies.try_lock()?;
        let totals = Totals::of(self.of_users(&arenas).chain([&*self.internals]));
        Some(read(&totals))
    }
}
