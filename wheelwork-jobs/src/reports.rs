//! What runs report of their progress.

use crate::job::Progress;
use crate::lock::lock;
use crate::store::Claim;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tokio::sync::Notify;

/// The last report of each run that the store does not have yet.
#[derive(Default)]
pub(crate) struct Reports {
    last: Mutex<BTreeMap<Claim, Progress>>,
    pub(crate) more: Notify,
}

impl Reports {
    pub(crate) fn add(&self, claim: Claim, progress: Progress) {
        lock(&self.last).insert(claim, progress);
        self.more.notify_one();
    }

    /// The store has not taken them. A later report counts more.
    pub(crate) fn put_back(&self, reports: &[(Claim, Progress)]) {
        let mut last = lock(&self.last);
        for (claim, progress) in reports {
            last.entry(*claim).or_insert_with(|| progress.clone());
        }
        self.more.notify_one();
    }

    /// The run has ended.
    pub(crate) fn forget(&self, claim: Claim) {
        lock(&self.last).remove(&claim);
    }

    /// Takes all of them, in the order of ids. So a run that reports again keeps no other one waiting.
    pub(crate) fn take(&self) -> Vec<(Claim, Progress)> {
        std::mem::take(&mut *lock(&self.last)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;

    #[test]
    fn the_last_report_of_a_run_counts() {
        let reports = Reports::default();
        let claim = |n| Claim { id: JobId::from_u128(n), epoch: 1 };
        let progress = |n| Progress::new(n, 9, "\0text");
        (1..=3).for_each(|n| reports.add(claim(1), progress(n)));
        reports.add(claim(2), progress(7));
        let taken = reports.take();
        assert_eq!(taken, [(claim(1), progress(3)), (claim(2), progress(7))]);
        assert_eq!(taken[0].1.text, "text");
        reports.add(claim(1), progress(4));
        reports.put_back(&taken);
        reports.forget(claim(2));
        assert_eq!(reports.take(), [(claim(1), progress(4))]);
        assert_eq!(Progress::new(u64::MAX, 0, &"x".repeat(999)).text.len(), 200);
    }
}
