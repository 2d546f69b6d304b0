//! What a `Jobs` has done, by kind.
//!
//! A kind that has a handler here has counts of its own, and so has each that is only scheduled or cancelled
//! here, up to `MOST`. The rest share one: whoever makes a kind of each customer's name must not fill the
//! memory, or the server of the metrics.

use super::Count;
use super::histogram::{Histogram, Ranges};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// At most so many kinds have counts of their own.
const MOST: usize = 1_000;

/// What a [`Jobs`](crate::Jobs) has done with the jobs of one kind since it was opened, and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindMetrics {
    /// The kind, or [`OTHERS`](Self::OTHERS).
    pub kind: Arc<str>,
    /// Jobs that it has stored, without those in transactions of yours.
    pub scheduled: u64,
    /// Jobs that it has claimed.
    pub claimed: u64,
    /// Jobs whose handler was called.
    pub fired: u64,
    /// Jobs that were done.
    pub done: u64,
    /// Runs that ended with an error or a panic, or were longer than their limit.
    pub failed: u64,
    /// Failures after which a job runs again.
    pub retried: u64,
    /// Runs whose handler has put the job off.
    pub snoozed: u64,
    /// Failures after which a job was dead.
    pub buried: u64,
    /// Jobs that it has cancelled: its calls that have returned true.
    pub cancelled: u64,
    /// Failures after which a periodic job gave up its occurrence.
    pub given_up: u64,
    /// Occurrences of periodic jobs that were too late to run.
    pub skipped: u64,
    /// Runs whose claim did not hold any more at their end.
    pub lost: u64,
    /// Jobs that it holds now, in its wheel or running.
    pub held: u64,
    /// Handlers that run now.
    pub running: u64,
    /// How late handlers were called.
    pub late_by: Histogram,
    /// How long runs took.
    pub took: Histogram,
}

impl KindMetrics {
    /// The name of all kinds together that have no counts of their own, because 1,000 others have.
    pub const OTHERS: &str = "(others)";
}

/// The counts behind [`KindMetrics`].
#[derive(Default)]
pub(crate) struct KindCounts {
    pub(crate) scheduled: Count,
    pub(crate) claimed: Count,
    pub(crate) fired: Count,
    pub(crate) done: Count,
    pub(crate) failed: Count,
    pub(crate) retried: Count,
    pub(crate) snoozed: Count,
    pub(crate) buried: Count,
    pub(crate) cancelled: Count,
    pub(crate) given_up: Count,
    pub(crate) skipped: Count,
    pub(crate) lost: Count,
    late_by: Ranges,
    took: Ranges,
}

impl KindCounts {
    pub(crate) fn late_by(&self, late_by: Duration) {
        self.late_by.record(late_by);
    }

    pub(crate) fn took(&self, time: Duration) {
        self.took.record(time);
    }

    fn read(&self, kind: &Arc<str>) -> KindMetrics {
        KindMetrics {
            kind: kind.clone(),
            scheduled: self.scheduled.get(),
            claimed: self.claimed.get(),
            fired: self.fired.get(),
            done: self.done.get(),
            failed: self.failed.get(),
            retried: self.retried.get(),
            snoozed: self.snoozed.get(),
            buried: self.buried.get(),
            cancelled: self.cancelled.get(),
            given_up: self.given_up.get(),
            skipped: self.skipped.get(),
            lost: self.lost.get(),
            held: 0,
            running: 0,
            late_by: self.late_by.read(),
            took: self.took.read(),
        }
    }
}

/// The counts of all kinds.
pub(crate) struct Kinds {
    /// Those with a handler, by its number.
    handled: Vec<(Arc<str>, KindCounts)>,
    numbers: HashMap<Arc<str>, usize>,
    /// Those without.
    foreign: RwLock<HashMap<Arc<str>, Arc<KindCounts>>>,
    others: KindCounts,
}

impl Kinds {
    pub(super) fn new(handled: &[Arc<str>]) -> Self {
        let own = handled.iter().take(MOST);
        Self {
            numbers: own.clone().cloned().zip(0..).collect(),
            handled: own.map(|kind| (kind.clone(), KindCounts::default())).collect(),
            foreign: RwLock::default(),
            others: KindCounts::default(),
        }
    }

    /// The counts of a kind that has a handler.
    pub(crate) fn of(&self, handler: usize) -> &KindCounts {
        self.handled.get(handler).map_or(&self.others, |(_, counts)| counts)
    }

    /// Counts for a kind that may have none.
    pub(crate) fn count(&self, kind: &str, count: impl FnOnce(&KindCounts)) {
        match self.numbers.get(kind) {
            Some(&number) => count(self.of(number)),
            None => match self.foreign(kind) {
                Some(counts) => count(&counts),
                None => count(&self.others),
            },
        }
    }

    fn foreign(&self, kind: &str) -> Option<Arc<KindCounts>> {
        let known = self.foreign.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = known.get(kind) {
            return Some(counts.clone());
        }
        let is_full = |known: usize| self.handled.len() + known >= MOST;
        if kind == KindMetrics::OTHERS || is_full(known.len()) {
            return None;
        }
        drop(known);
        let mut known = self.foreign.write().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been faster.
        if is_full(known.len()) && !known.contains_key(kind) {
            return None;
        }
        Some(known.entry(kind.into()).or_default().clone())
    }

    /// By kind. `holds` is what the node holds of each kind that has a handler: held and running.
    pub(super) fn read(&self, holds: &[(usize, usize)]) -> Vec<KindMetrics> {
        let mut kinds: Vec<_> =
            self.handled.iter().map(|(kind, counts)| counts.read(kind)).collect();
        let mut others = self.others.read(&KindMetrics::OTHERS.into());
        for (number, &(held, running)) in holds.iter().enumerate() {
            let kind = kinds.get_mut(number).unwrap_or(&mut others);
            kind.held += held as u64;
            kind.running += running as u64;
        }
        let foreign = self.foreign.read().unwrap_or_else(PoisonError::into_inner);
        kinds.extend(foreign.iter().map(|(kind, counts)| counts.read(kind)));
        drop(foreign);
        let nothing = KindMetrics { kind: others.kind.clone(), ..KindMetrics::default() };
        kinds.extend((others != nothing).then_some(others));
        kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_counts_of_their_own_until_there_are_many() {
        let kinds = Kinds::new(&["mail".into()]);
        for n in 0..2_000 {
            kinds.count(&format!("kind {n:04}"), |counts| counts.scheduled.add(1));
        }
        kinds.count("mail", |counts| counts.scheduled.add(1));
        kinds.count(KindMetrics::OTHERS, |counts| counts.scheduled.add(1));
        let read = kinds.read(&[(3, 1)]);
        assert_eq!(read.len(), MOST + 1);
        let scheduled = |kind: &str| {
            read.iter().find(|metrics| &*metrics.kind == kind).map(|metrics| metrics.scheduled)
        };
        assert_eq!(scheduled("kind 0998"), Some(1));
        assert_eq!(scheduled("kind 0999"), None);
        assert_eq!(scheduled("(others)"), Some(1_002));
        let mail = read.iter().find(|metrics| &*metrics.kind == "mail").unwrap();
        assert_eq!((mail.scheduled, mail.held, mail.running), (1, 3, 1));
    }

    #[test]
    fn handlers_beyond_the_limit_share_their_counts() {
        let names: Vec<Arc<str>> = (0..MOST + 2).map(|n| format!("{n:04}").into()).collect();
        let kinds = Kinds::new(&names);
        kinds.of(MOST - 1).fired.add(1);
        kinds.of(MOST).fired.add(1);
        kinds.count("1001", |counts| counts.scheduled.add(1));
        let read = kinds.read(&vec![(1, 0); MOST + 2]);
        assert_eq!(read.len(), MOST + 1);
        let others = read.first().unwrap();
        assert_eq!(
            (&*others.kind, others.fired, others.scheduled, others.held),
            ("(others)", 1, 1, 2)
        );
    }
}
