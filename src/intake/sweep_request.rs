//! Requests for a sweep: when the worker sweeps dead entries out of the wheel.
//!
//! A thread checks whether a sweep is worth its cost once per 1,024 entries that it leaves dead, and the worker
//! once per 1,024 runs and filed chunks. A count decides only when a sweep pays, and never whether a
//! timeout runs.

use super::shared::{Link, Shared};
use crate::base::sync::Ordering;
use crate::metrics::Totals;
use crate::wheel::is_sweep_worth_it;

/// Up to this number of dead entries, a sweep is not worth its cost. A wheel with more buckets than
/// this allows one dead entry per bucket.
pub(crate) const DEAD_ALLOWED: usize = 4096;

/// A thread checks whether a sweep is worth its cost once per this number of dead entries.
pub(crate) const DEAD_PER_CHECK: u64 = 1024;

impl<T> Link<T> {
    /// Requests a sweep if one is worth its cost. The caller has left a dead entry in the wheel and counted
    /// it; `died` is that count.
    #[inline]
    pub(crate) fn entry_died(&self, died: u64) {
        if died % DEAD_PER_CHECK == 0 {
            if let Some(shared) = self.shared() {
                shared.request_sweep();
            }
        }
    }
}

impl<T> Shared<T> {
    /// Wakes the worker for a sweep if one is worth its cost.
    fn request_sweep(&self) {
        if self.is_sweep_worth_it() && !self.sweep_requested.swap(true, Ordering::Relaxed) {
            self.alarm.call();
        }
    }

    /// Whether a sweep is worth its cost. False if another thread uses the list of tallies: there is
    /// another chance after `DEAD_PER_CHECK` more entries.
    fn is_sweep_worth_it(&self) -> bool {
        let pending = self.counts.try_with_tallies(Totals::pending);
        let entries = self.entries.load(Ordering::Relaxed);
        pending.is_some_and(|pending| {
            is_sweep_worth_it(entries, pending as usize, DEAD_ALLOWED.max(self.buckets))
        })
    }

    /// The worker tells how many entries its wheel has, without the promised looks at chunks.
    pub(crate) fn set_entries(&self, entries: usize) {
        self.entries.store(entries, Ordering::Relaxed);
    }

    /// Requests a sweep if one is worth its cost. Only the worker calls it: at the end of a sweep, and when
    /// fewer timeouts are pending, or it has filed chunks again.
    pub(crate) fn consider_sweep(&self) {
        self.sweep_requested.store(self.is_sweep_worth_it(), Ordering::Relaxed);
    }

    pub(crate) fn is_sweep_requested(&self) -> bool {
        self.sweep_requested.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
