//! A `BTreeMap` ordered by deadline.

use super::textbook::{Structure, Textbook};
use super::{Job, Rival};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub struct Tree(Arc<Textbook<Map>>);

impl Rival for Tree {
    const NAME: &'static str = "btree-map";
    const LACKS: &'static str = "one mutex; O(log n)";
    const DETACHES: bool = true;
    const CANCELS_ENDED: bool = true;
    const SCHEDULE_CAP: u64 = 200_000;
    type Producer<'a> = &'a Textbook<Map>;

    fn start(_tick: Duration) -> Self {
        Self(Textbook::start())
    }

    fn producer(&self) -> &Textbook<Map> {
        &self.0
    }
}

/// The number makes equal deadlines distinct, and keeps them in order.
type Place = (u64, u64);

#[derive(Default)]
pub struct Map {
    entries: BTreeMap<Place, Job>,
    inserted: u64,
}

impl Structure for Map {
    type Key = Place;

    fn insert(&mut self, deadline: u64, job: Job) -> Place {
        self.inserted += 1;
        let place = (deadline, self.inserted);
        self.entries.insert(place, job);
        place
    }

    fn remove(&mut self, place: Place) -> Option<Job> {
        self.entries.remove(&place)
    }

    fn earliest(&mut self) -> Option<u64> {
        self.entries.first_key_value().map(|(place, _job)| place.0)
    }

    fn pop_due(&mut self, now: u64) -> Option<Job> {
        let first = self.entries.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::super::textbook::tests;

    #[test]
    fn a_structure() {
        tests::check::<super::Map>();
        tests::check_many::<super::Map>();
    }
}
