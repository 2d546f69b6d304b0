//! A sorted list: a ring that is searched by halves and shifted to make room.

use super::textbook::{Structure, Textbook};
use super::{Job, Rival};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub struct SortedList(Arc<Textbook<List>>);

impl Rival for SortedList {
    const NAME: &'static str = "sorted-list";
    const LACKS: &'static str = "one mutex; insertion and cancel shift the list: O(n)";
    const DETACHES: bool = true;
    const CANCELS_ENDED: bool = true;
    const IS_LINEAR: bool = true;
    const SCHEDULE_CAP: u64 = 20_000;
    type Producer<'a> = &'a Textbook<List>;

    fn start(_tick: Duration) -> Self {
        Self(Textbook::start())
    }

    fn producer(&self) -> &Textbook<List> {
        &self.0
    }
}

/// The number makes equal deadlines distinct, and keeps them in order.
type Place = (u64, u64);

#[derive(Default)]
pub struct List {
    entries: VecDeque<(Place, Job)>,
    inserted: u64,
}

impl Structure for List {
    type Key = Place;

    fn insert(&mut self, deadline: u64, job: Job) -> Place {
        self.inserted += 1;
        let place = (deadline, self.inserted);
        let index = self.entries.partition_point(|entry| entry.0 < place);
        self.entries.insert(index, (place, job));
        place
    }

    fn remove(&mut self, place: Place) -> Option<Job> {
        let index = self.entries.binary_search_by_key(&place, |entry| entry.0).ok()?;
        self.entries.remove(index).map(|(_place, job)| job)
    }

    fn earliest(&mut self) -> Option<u64> {
        self.entries.front().map(|(place, _job)| place.0)
    }

    fn pop_due(&mut self, now: u64) -> Option<Job> {
        self.earliest().filter(|earliest| *earliest <= now)?;
        self.entries.pop_front().map(|(_place, job)| job)
    }
}

#[cfg(test)]
mod tests {
    use super::super::textbook::tests;

    #[test]
    fn a_structure() {
        tests::check::<super::List>();
        tests::check_many::<super::List>();
    }
}
