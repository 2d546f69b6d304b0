//! The ordered structures of the textbook timer: a sorted list, a tree, and a heap.

use super::textbook::{Place, Structure, Textbook};
use super::{Facts, Job, Trait, facts_of};
use slotmap::{DefaultKey, SlotMap};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

pub type List = &'static Textbook<VecDeque<(Place, Job)>>;
pub type Tree = &'static Textbook<BTreeMap<Place, Job>>;
pub type Heap = &'static Textbook<LazyHeap>;

/// A ring that is searched by halves and shifted to make room.
impl Structure for VecDeque<(Place, Job)> {
    const FACTS: Facts = facts_of(
        "sorted-list",
        "one mutex; insertion and cancel shift the list: O(n)",
        &[Trait::CancelsEnded, Trait::IsLinear, Trait::Cap(20_000)],
    );
    type Key = Place;

    fn insert(&mut self, place: Place, job: Job) -> Place {
        let index = self.partition_point(|entry| entry.0 < place);
        VecDeque::insert(self, index, (place, job));
        place
    }

    fn remove(&mut self, place: Place) -> Option<Job> {
        let index = self.binary_search_by_key(&place, |entry| entry.0).ok()?;
        VecDeque::remove(self, index).map(|(_place, job)| job)
    }

    fn earliest(&mut self) -> Option<u64> {
        self.front().map(|(place, _job)| place.0)
    }

    fn pop_due(&mut self, now: u64) -> Option<Job> {
        self.earliest().filter(|earliest| *earliest <= now)?;
        self.pop_front().map(|(_place, job)| job)
    }
}

impl Structure for BTreeMap<Place, Job> {
    const FACTS: Facts =
        facts_of("btree-map", "one mutex; O(log n)", &[Trait::CancelsEnded, Trait::Cap(200_000)]);
    type Key = Place;

    fn insert(&mut self, place: Place, job: Job) -> Place {
        BTreeMap::insert(self, place, job);
        place
    }

    fn remove(&mut self, place: Place) -> Option<Job> {
        BTreeMap::remove(self, &place)
    }

    fn earliest(&mut self) -> Option<u64> {
        self.first_key_value().map(|(place, _job)| place.0)
    }

    fn pop_due(&mut self, now: u64) -> Option<Job> {
        let first = self.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// So few dead entries are not worth a sweep.
const TOLERATED: usize = 4096;

/// A cancelled entry stays until it comes up, or until the dead outnumber the living.
#[derive(Default)]
pub struct LazyHeap {
    entries: BinaryHeap<Reverse<(u64, DefaultKey)>>,
    jobs: SlotMap<DefaultKey, Job>,
}

impl Structure for LazyHeap {
    const FACTS: Facts = facts_of(
        "binary-heap",
        "one mutex; O(log n); dead entries stay until swept",
        &[Trait::CancelsEnded],
    );
    type Key = DefaultKey;

    fn insert(&mut self, (deadline, _number): Place, job: Job) -> DefaultKey {
        let key = self.jobs.insert(job);
        self.entries.push(Reverse((deadline, key)));
        key
    }

    fn remove(&mut self, key: DefaultKey) -> Option<Job> {
        let job = self.jobs.remove(key)?;
        if self.entries.len() > 2 * self.jobs.len() + TOLERATED {
            let jobs = &self.jobs;
            self.entries.retain(|Reverse((_deadline, key))| jobs.contains_key(*key));
        }
        Some(job)
    }

    fn earliest(&mut self) -> Option<u64> {
        while let Some(Reverse((deadline, key))) = self.entries.peek() {
            if self.jobs.contains_key(*key) {
                return Some(*deadline);
            }
            self.entries.pop();
        }
        None
    }

    fn pop_due(&mut self, now: u64) -> Option<Job> {
        self.earliest().filter(|earliest| *earliest <= now)?;
        let Reverse((_deadline, key)) = self.entries.pop()?;
        self.jobs.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<S: Structure>() {
        let mut structure = S::default();
        let keys = [30, 10, 20, 40].map(|at| structure.insert((at, 0), Box::new(|| ())));
        assert!(structure.remove(keys[1]).is_some());
        assert!(structure.remove(keys[1]).is_none(), "removed once");
        assert_eq!(structure.earliest(), Some(20));
        let mut due = || structure.pop_due(30).is_some();
        assert_eq!([due(), due(), due()], [true, true, false], "40 is not due at 30");
        assert!(structure.remove(keys[0]).is_none(), "it has expired");
        for at in 0..10_000 {
            let key = structure.insert((at * 7919 % 10_000, at), Box::new(|| ()));
            assert!(structure.remove(key).is_some());
        }
        assert_eq!(structure.earliest(), Some(40), "a flood of cancels leaves what is alive");
    }

    #[test]
    fn structures_return_what_is_due_and_was_not_removed() {
        check::<VecDeque<(Place, Job)>>();
        check::<BTreeMap<Place, Job>>();
        check::<LazyHeap>();
    }
}
