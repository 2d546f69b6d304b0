//! The ordered structures of the textbook timer: a sorted list, a tree and a heap behind a mutex each,
//! and a skip list without.

use super::Job;
use super::textbook::{BATCH, Place, Shared, Textbook};
use crossbeam_skiplist::SkipMap;
use slotmap::{DefaultKey, SlotMap};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::{Mutex, MutexGuard};

pub type List = &'static Textbook<Mutex<VecDeque<(Place, Job)>>>;
pub type Tree = &'static Textbook<Mutex<BTreeMap<Place, Job>>>;
pub type Heap = &'static Textbook<Mutex<LazyHeap>>;
pub type SkipList = &'static Textbook<SkipMap<Place, Cell>>;

/// What the mutex guards.
pub trait Structure: Default + Send + 'static {
    type Key: Copy + 'static;

    fn insert(&mut self, place: Place, job: Job) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<Job>;
    fn earliest(&mut self) -> Option<u64>;
    /// Takes the earliest out.
    fn pop(&mut self) -> Option<Job>;
}

impl<S: Structure> Shared for Mutex<S> {
    type Key = S::Key;

    fn insert(&self, place: Place, job: Job) -> S::Key {
        locked(self).insert(place, job)
    }

    fn remove(&self, key: S::Key) -> Option<Job> {
        locked(self).remove(key)
    }

    fn reinsert(&self, key: S::Key, place: Place, new: impl FnOnce() -> Job) -> S::Key {
        let mut structure = locked(self);
        let job = structure.remove(key).unwrap_or_else(new);
        structure.insert(place, job)
    }

    fn earliest(&self) -> Option<u64> {
        locked(self).earliest()
    }

    fn take_due(&self, now: u64, due: &mut Vec<Job>) {
        let mut structure = locked(self);
        while due.len() < BATCH && structure.earliest().is_some_and(|earliest| earliest <= now) {
            due.extend(structure.pop());
        }
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing that holds the lock panics")
}

/// A ring that is searched by halves and shifted to make room.
impl Structure for VecDeque<(Place, Job)> {
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

    fn pop(&mut self) -> Option<Job> {
        self.pop_front().map(|(_place, job)| job)
    }
}

impl Structure for BTreeMap<Place, Job> {
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

    fn pop(&mut self) -> Option<Job> {
        self.pop_first().map(|(_place, job)| job)
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

    fn pop(&mut self) -> Option<Job> {
        let Reverse((_deadline, key)) = self.entries.pop()?;
        self.jobs.remove(key)
    }
}

/// A value of a skip list can only be reached by reference, so the job is taken out of a cell.
type Cell = Mutex<Option<Job>>;

impl Shared for SkipMap<Place, Cell> {
    type Key = Place;

    fn insert(&self, place: Place, job: Job) -> Place {
        self.insert(place, Mutex::new(Some(job)));
        place
    }

    fn remove(&self, place: Place) -> Option<Job> {
        self.remove(&place).and_then(|entry| locked(entry.value()).take())
    }

    fn reinsert(&self, old: Place, place: Place, new: impl FnOnce() -> Job) -> Place {
        let job = Shared::remove(self, old).unwrap_or_else(new);
        Shared::insert(self, place, job)
    }

    fn earliest(&self) -> Option<u64> {
        self.front().map(|entry| entry.key().0)
    }

    fn take_due(&self, now: u64, due: &mut Vec<Job>) {
        while due.len() < BATCH
            && let Some(entry) = self.front().filter(|entry| entry.key().0 <= now)
        {
            if entry.remove() {
                due.extend(locked(entry.value()).take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<S: Shared>() {
        let shared = S::default();
        let keys = [30, 10, 20, 40].map(|at| shared.insert((at, 0), Box::new(|| ())));
        assert!(shared.remove(keys[1]).is_some());
        assert!(shared.remove(keys[1]).is_none(), "removed once");
        assert_eq!(shared.earliest(), Some(20));
        let mut due = Vec::new();
        shared.take_due(30, &mut due);
        assert_eq!(due.len(), 2, "40 is not due at 30");
        assert!(shared.remove(keys[0]).is_none(), "it has expired");
        for at in 0..10_000 {
            let key = shared.insert((at * 7919 % 10_000, at), Box::new(|| ()));
            assert!(shared.remove(key).is_some());
        }
        assert_eq!(shared.earliest(), Some(40), "a flood of cancels leaves what is alive");
    }

    #[test]
    fn structures_return_what_is_due_and_was_not_removed() {
        check::<Mutex<VecDeque<(Place, Job)>>>();
        check::<Mutex<BTreeMap<Place, Job>>>();
        check::<Mutex<LazyHeap>>();
        check::<SkipMap<Place, Cell>>();
    }
}
