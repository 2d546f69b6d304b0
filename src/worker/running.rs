//! What the worker is busy with, for the error of a stop whose limit has passed: the type of the task that it runs or
//! hands to the executor, and since when.
//!
//! | step | the worker, as a run begins | a thread that reads |
//! |---|---|---|
//! | 1 | stores `since` | reads `task` |
//! | 2 | stores `task` | reads `since` |
//! | 3 | | reads `task`, and begins anew if it has changed |
//!
//! A store of `task` releases, and a load acquires. So the time is that of a run of this type, or of the run that has
//! just followed it.

use crate::base::sync::{AtomicCell, AtomicU64, Ordering};

/// `T` stands for the type of a task.
#[repr(align(128))] // the worker writes it at each run, so no other thread's data shares its cache lines
pub(super) struct Running<T: 'static> {
    task: AtomicCell<Option<&'static T>>,
    since: AtomicU64,
}

impl<T> Running<T> {
    pub(super) fn new() -> Self {
        Self { task: AtomicCell::new(None), since: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn begin(&self, task: &'static T, now: u64) {
        self.since.store(now, Ordering::Relaxed);
        self.task.store(Some(task));
    }

    /// The worker has nothing to run.
    #[inline]
    pub(super) fn end(&self) {
        self.task.store(None);
    }

    /// The type of the task, and the time since when it runs.
    pub(super) fn get(&self) -> Option<(&'static T, u64)> {
        loop {
            let task = self.task.load();
            let since = self.since.load(Ordering::Relaxed);
            let same = self.task.load().map(std::ptr::from_ref) == task.map(std::ptr::from_ref);
            if same {
                return task.map(|task| (task, since));
            }
        }
    }
}

#[cfg(all(test, loom))]
mod model;
