//! The jobs that a timer has handed to its executor and that have not ended. A move of a manual clock waits
//! for them. On the system's clock nobody waits, so nothing is counted.

use crate::base::logging::warning;
use crate::base::sync::{Condvar, Mutex, thread_local};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// After this time, a thread that waits for jobs warns.
const WARN_AFTER: Duration = Duration::from_secs(5);

/// The jobs of one timer.
pub(crate) struct Jobs {
    counts: Mutex<Counts>,
    ended: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    begun: u64,
    ended: u64,
}

thread_local! {
    /// Whether a move of a clock on this thread must not wait for jobs.
    static IN_A_JOB: Cell<bool> = const { Cell::new(false) };
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { counts: Mutex::new(Counts::default()), ended: Condvar::new() }
    }

    pub(super) fn begin(&self) {
        self.counts.lock().begun += 1;
    }

    pub(super) fn end(&self) {
        self.counts.lock().ended += 1;
        self.ended.notify_all();
    }

    /// Runs one job, or the callback of one that does not run. It does not panic. A move of a clock in it waits for no
    /// job, because it would wait for itself.
    #[inline]
    pub(crate) fn run_one(job: impl FnOnce()) {
        let outer = IN_A_JOB.with(|inside| inside.replace(true));
        job();
        IN_A_JOB.with(|inside| inside.set(outer));
    }

    /// Marks this thread as a worker. A move of a clock on it waits for no job either: the job may wait for this
    /// worker, or end on this thread.
    pub(crate) fn mark_worker() {
        IN_A_JOB.with(|inside| inside.set(true));
    }

    /// Whether this thread runs a job of any timer, or is a worker.
    pub(super) fn is_in_one() -> bool {
        IN_A_JOB.with(Cell::get)
    }

    /// The number of jobs so far.
    pub(super) fn begun(&self) -> u64 {
        self.counts.lock().begun
    }

    /// Whether a job has not ended yet.
    pub(super) fn are_running(&self) -> bool {
        let counts = self.counts.lock();
        counts.ended < counts.begun
    }

    /// Waits until all jobs have ended. Returns their number, at that moment.
    pub(super) fn wait(&self) -> u64 {
        let ended = self.wait_until(Instant::now().checked_add(WARN_AFTER));
        ended.unwrap_or_else(|| {
            warning!("a manual clock has waited {WARN_AFTER:?} for jobs of an executor");
            self.wait_until(None).unwrap_or_default()
        })
    }

    /// Like `wait`. `None` if `limit` comes first.
    pub(super) fn wait_until(&self, limit: Option<Instant>) -> Option<u64> {
        let mut counts = self.counts.lock();
        while counts.ended < counts.begun {
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                return None;
            }
            counts = self.ended.wait_until(counts, limit);
        }
        Some(counts.ended)
    }
}

#[cfg(all(test, loom))]
mod model;
