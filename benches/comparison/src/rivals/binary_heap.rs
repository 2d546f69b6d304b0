//! A binary heap with lazy deletion: a cancelled entry stays until it comes up, or until the dead
//! outnumber the living.

use super::textbook::{Structure, Textbook};
use super::{Job, Rival};
use slotmap::{DefaultKey, SlotMap};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

pub struct LazyHeap(Arc<Textbook<Heap>>);

impl Rival for LazyHeap {
    const NAME: &'static str = "binary-heap";
    const LACKS: &'static str = "one mutex; O(log n); dead entries stay until swept";
    const DETACHES: bool = true;
    const CANCELS_ENDED: bool = true;
    type Producer<'a> = &'a Textbook<Heap>;

    fn start(_tick: Duration) -> Self {
        Self(Textbook::start())
    }

    fn producer(&self) -> &Textbook<Heap> {
        &self.0
    }
}

/// So few dead entries are not worth a sweep.
const TOLERATED: usize = 4096;

#[derive(Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<(u64, DefaultKey)>>,
    jobs: SlotMap<DefaultKey, Job>,
}

impl Heap {
    fn drop_dead_top(&mut self) {
        while let Some(Reverse((_deadline, key))) = self.entries.peek()
            && !self.jobs.contains_key(*key)
        {
            self.entries.pop();
        }
    }

    fn sweep_if_mostly_dead(&mut self) {
        if self.entries.len() > 2 * self.jobs.len() + TOLERATED {
            let jobs = &self.jobs;
            self.entries.retain(|Reverse((_deadline, key))| jobs.contains_key(*key));
        }
    }
}

impl Structure for Heap {
    type Key = DefaultKey;

    fn insert(&mut self, deadline: u64, job: Job) -> DefaultKey {
        let key = self.jobs.insert(job);
        self.entries.push(Reverse((deadline, key)));
        key
    }

    fn remove(&mut self, key: DefaultKey) -> Option<Job> {
        let job = self.jobs.remove(key)?;
        self.sweep_if_mostly_dead();
        Some(job)
    }

    fn earliest(&mut self) -> Option<u64> {
        self.drop_dead_top();
        self.entries.peek().map(|Reverse((deadline, _key))| *deadline)
    }

    fn pop_due(&mut self, now: u64) -> Option<Job> {
        self.earliest().filter(|earliest| *earliest <= now)?;
        let Reverse((_deadline, key)) = self.entries.pop()?;
        self.jobs.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::textbook::tests;

    #[test]
    fn a_structure() {
        tests::check::<super::Heap>();
        tests::check_many::<super::Heap>();
    }
}
