//! All counts of one timer.

use super::snapshot::{Metrics, ThreadMetrics};
use super::tally::{self, Tally};
use super::worker::WorkerCounts;
use crate::base::sync::{Arc, Mutex};
use std::collections::BTreeMap;

/// The tallies of all threads, and the worker's own counters.
#[derive(Default)]
pub(crate) struct Counts {
    /// The worker's counters.
    pub(crate) worker: WorkerCounts,
    /// The worker's counts.
    pub(crate) by_worker: Tally,
    /// The counts of threads without an owner, and of those that have ended. Several threads write it.
    pub(crate) by_others: Tally,
    /// The counts of the crate's own timeouts. Several threads write it. No public count includes it.
    pub(crate) internals: Arc<Tally>,
    /// The name and the counts of each living thread that schedules, by the address of the counts.
    pub(crate) threads: Mutex<BTreeMap<usize, (String, Arc<Tally>)>>,
}

impl Counts {
    /// A thread has begun to schedule.
    pub(crate) fn add_thread(&self, name: String, tally: &Arc<Tally>) {
        self.threads.lock().insert(Arc::as_ptr(tally).addr(), (name, tally.clone()));
    }

    /// A thread ends. Its counts go to those of others.
    pub(crate) fn remove_thread(&self, tally: &Arc<Tally>) {
        let mut threads = self.threads.lock();
        if threads.remove(&Arc::as_ptr(tally).addr()).is_some() {
            self.by_others.add_all(tally);
        }
    }

    /// A snapshot of each living thread that schedules.
    pub(crate) fn thread_metrics(&self) -> Vec<ThreadMetrics> {
        let metrics = |(thread, tally): &(String, Arc<Tally>)| ThreadMetrics {
            thread: thread.clone(),
            scheduled: tally.scheduled.get(),
        };
        self.threads.lock().values().map(metrics).collect()
    }

    /// The tally of threads without an owner, for timeouts of users or of the crate itself.
    #[inline]
    pub(crate) fn of(&self, internal: bool) -> &Tally {
        if internal { &self.internals } else { &self.by_others }
    }

    /// All tallies of users' timeouts.
    fn public_tallies<'a>(
        &'a self,
        threads: &'a BTreeMap<usize, (String, Arc<Tally>)>,
    ) -> impl Iterator<Item = &'a Tally> + Clone + 'a {
        let threads = threads.values().map(|(_, tally)| &**tally);
        threads.chain([&self.by_worker, &self.by_others])
    }

    /// The number of pending timeouts of users.
    pub(crate) fn pending(&self) -> u64 {
        tally::pending(self.public_tallies(&self.threads.lock()))
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.count(self.public_tallies(&self.threads.lock()));
        self.worker.fill(&mut metrics);
        metrics
    }

    /// Whether any timeout seems to be pending, internal ones included. True if another thread uses the
    /// list of threads. The answer is only good for deciding how much to clean up: a timeout can begin at
    /// any moment.
    pub(crate) fn is_anything_pending(&self) -> bool {
        self.try_all_pending().is_none_or(|pending| pending > 0)
    }

    /// The number of pending timeouts, internal ones included. `None` if another thread uses the list of threads, so
    /// that no caller waits for it.
    pub(crate) fn try_all_pending(&self) -> Option<u64> {
        let threads = self.threads.try_lock()?;
        Some(tally::pending(self.public_tallies(&threads).chain([&*self.internals])))
    }
}
