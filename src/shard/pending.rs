//! The pending queue of a shard: timeouts that were submitted and not yet taken by the worker.
//!
//! A *record* names a slot and a deadline. Its *place* is its sequence number in the queue. A
//! record that was removed or taken, and still has its place, is *dead*.
//!
//! The queue is first in, first out. A cancel removes the last record, and marks any other as dead.
//! When the dead records outnumber the live ones by more than a constant, the queue *compacts*: it
//! drops them. So a burst of cancels does not grow the queue, even while a task blocks the worker.
//!
//! A place wraps. An old place can then point at another timeout's record, so a record is ours only
//! if its index matches.

use crate::time::tick::NEVER;

/// Dead records that are not worth a compaction.
const DEAD_ALLOWED: usize = 1024;

/// A capacity up to this is not worth shrinking.
const KEPT_CAPACITY: usize = 1 << 12;

/// Names a slot, at one of its versions, and when it is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) deadline: u64,
    pub(crate) index: u32,
    pub(crate) version: u16,
    dead: bool,
}

pub(super) struct Pending {
    records: Vec<Record>,
    /// The number of records at the front that the worker has taken. They are marked as dead.
    taken: usize,
    /// A lower bound of the live records' deadlines; `NEVER` if there are none.
    earliest: u64,
    /// The place of the first record.
    front: u32,
    /// Dead records that have not been taken.
    dead: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self { records: Vec::new(), taken: 0, earliest: NEVER, front: 0, dead: 0 }
    }
}

impl Pending {
    /// Appends a record and returns its place.
    #[inline]
    pub(super) fn push(&mut self, deadline: u64, index: u32, version: u16) -> u32 {
        let place = self.front.wrapping_add(self.records.len() as u32);
        self.records.push(Record::new(deadline, index, version));
        self.earliest = self.earliest.min(deadline);
        place
    }

    /// Drops a record; false if it is not in the queue.
    #[inline]
    pub(super) fn remove(&mut self, place: u32, index: u32) -> bool {
        let (at, end) = (self.at(place), self.records.len());
        let Some(record) = self.records.get_mut(at) else { return false };
        if record.index != index || record.dead {
            return false;
        }
        if at + 1 == end {
            self.pop_last();
        } else {
            record.dead = true;
            self.dead += 1;
        }
        if self.live() == 0 {
            self.earliest = NEVER;
        }
        true
    }

    /// Drops the last record, and the dead ones before it.
    #[inline]
    fn pop_last(&mut self) {
        self.records.pop();
        while self.records.len() > self.taken && self.records.last().is_some_and(|r| r.dead) {
            self.records.pop();
            self.dead -= 1;
        }
        if self.records.capacity() > KEPT_CAPACITY {
            self.shrink();
        }
    }

    /// Gives back the memory that only a burst needed.
    fn shrink(&mut self) {
        if self.records.len() < self.records.capacity() / 4 {
            self.records.shrink_to((2 * self.records.len()).max(KEPT_CAPACITY / 2));
        }
    }

    /// Changes the deadline of a record; false if it is not in the queue.
    pub(super) fn amend(&mut self, place: u32, index: u32, deadline: u64) -> bool {
        let at = self.at(place);
        let found = self.records.get_mut(at).filter(|record| record.index == index && !record.dead);
        let amended = found.map(|record| record.deadline = deadline).is_some();
        if amended {
            self.earliest = self.earliest.min(deadline);
        }
        amended
    }

    /// A time before which no record is due.
    pub(super) fn earliest(&self) -> u64 {
        self.earliest
    }

    fn at(&self, place: u32) -> usize {
        place.wrapping_sub(self.front) as usize
    }

    /// The number of live records.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.records.len() - self.taken - self.dead
    }

    /// Moves the oldest live records, at most `most`, to `into`, which must be empty. If all of
    /// them fit, the queue and `into` are swapped in O(1), and `into` may have dead records too.
    pub(super) fn take(&mut self, most: usize, into: &mut Vec<Record>) {
        debug_assert!(into.is_empty());
        if self.live() <= most {
            self.front = self.front.wrapping_add(self.records.len() as u32);
            (self.taken, self.dead, self.earliest) = (0, 0, NEVER);
            std::mem::swap(&mut self.records, into);
            return;
        }
        while into.len() < most {
            let Some(record) = self.records.get_mut(self.taken) else { break };
            self.taken += 1;
            if record.dead {
                self.dead -= 1;
            } else {
                into.push(*record);
                record.dead = true;
            }
        }
        if self.taken > self.records.len() / 2 {
            self.drop_taken();
        }
    }

    fn drop_taken(&mut self) {
        self.records.drain(..self.taken);
        self.front = self.front.wrapping_add(self.taken as u32);
        self.taken = 0;
    }

    #[inline]
    pub(super) fn wants_compaction(&self) -> bool {
        self.dead > DEAD_ALLOWED + self.live()
    }

    /// Drops the dead records. Calls `moved` with each remaining record and its new place.
    #[cold]
    pub(super) fn compact(&mut self, mut moved: impl FnMut(&Record, u32)) {
        self.drop_taken();
        let mut place = self.front;
        self.records.retain(|record| {
            if !record.dead {
                moved(record, place);
                place = place.wrapping_add(1);
            }
            !record.dead
        });
        self.dead = 0;
        self.shrink();
    }
}

impl Record {
    pub(super) fn new(deadline: u64, index: u32, version: u16) -> Self {
        Self { deadline, index, version, dead: false }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(indices: std::ops::Range<u32>) -> (Pending, Vec<u32>) {
        let mut pending = Pending::default();
        let places = indices.map(|i| pending.push(u64::from(i), i, 0)).collect();
        (pending, places)
    }

    fn take(pending: &mut Pending, most: usize) -> Vec<u32> {
        let mut out = Vec::new();
        pending.take(most, &mut out);
        out.iter().filter(|r| !r.dead).map(|r| r.index).collect()
    }

    #[test]
    fn what_was_last_leaves_nothing_behind() {
        let (mut pending, places) = queue(0..3);
        assert!(pending.remove(places[1], 1));
        assert_eq!((pending.records.len(), pending.live()), (3, 2));
        assert!(pending.remove(places[2], 2));
        assert_eq!((pending.records.len(), pending.live()), (1, 1));
        assert!(!pending.remove(places[2], 2), "only once");
    }

    /// A place that has wrapped can point at another timeout's record.
    #[test]
    fn the_record_of_another_is_not_touched() {
        let (mut pending, places) = queue(1..4);
        assert!(!pending.remove(places[1], 3) && !pending.amend(places[1], 3, 0));
        assert_eq!((pending.live(), pending.earliest()), (3, 1));
        assert_eq!(take(&mut pending, 3), [1, 2, 3]);
    }

    #[test]
    fn take_counts_only_the_living_and_keeps_the_order() {
        let (mut pending, places) = queue(0..10);
        for dead in [0, 1, 4, 7] {
            assert!(pending.remove(places[dead], dead as u32));
        }
        assert_eq!(take(&mut pending, 3), [2, 3, 5]);
        assert_eq!(pending.live(), 3);
        assert!(!pending.remove(places[2], 2) && !pending.amend(places[3], 3, 0), "taken");
        assert!(pending.remove(places[8], 8));
        assert_eq!(take(&mut pending, 3), [6, 9]);
        assert_eq!((pending.records.len(), pending.live()), (0, 0));
    }

    /// Dropping them at every step would cost the square of the queue's length.
    #[test]
    fn what_is_taken_is_dropped_once_it_is_the_greater_half() {
        let (mut pending, places) = queue(0..1000);
        let mut len_after = |most| {
            take(&mut pending, most);
            pending.records.len()
        };
        assert_eq!([len_after(300), len_after(200), len_after(1)], [1000, 1000, 499]);
        assert_eq!([len_after(100), len_after(150)], [499, 249]);
        assert!(pending.remove(places[999], 999) && !pending.remove(places[750], 750));
    }

    #[test]
    fn a_compaction_is_wanted_when_more_is_dead_than_alive_and_a_constant() {
        let (mut pending, places) = queue(0..2 * DEAD_ALLOWED as u32);
        let (all, mut dead) = (2 * DEAD_ALLOWED, 0);
        while !pending.wants_compaction() {
            assert!(pending.remove(places[dead], dead as u32));
            dead += 1;
        }
        assert_eq!(dead, (DEAD_ALLOWED + all) / 2 + 1, "dead > allowed + (all - dead)");
    }

    #[test]
    fn the_end_may_go_while_the_front_is_taken() {
        let (mut pending, places) = queue(0..10);
        assert_eq!(take(&mut pending, 2), [0, 1]);
        (2..10).for_each(|i| assert!(pending.remove(places[i], i as u32)));
        assert_eq!(pending.live(), 0);
        pending.push(0, 11, 0);
        assert_eq!(take(&mut pending, 2), [11]);
    }

    #[test]
    fn cancels_from_the_end_give_memory_back() {
        let (mut pending, places) = queue(0..100_000);
        for (index, &place) in places.iter().enumerate().rev() {
            assert!(pending.remove(place, index as u32));
        }
        assert!(pending.records.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn the_earliest_is_never_too_late() {
        let mut pending = Pending::default();
        assert_eq!(pending.earliest(), NEVER);
        let places = [50, 40, 60].map(|deadline| pending.push(deadline, 7, 0));
        assert_eq!(pending.earliest(), 40);
        assert!(pending.amend(places[2], 7, 30));
        assert_eq!(pending.earliest(), 30);
        assert_eq!(take(&mut pending, 3).len(), 3);
        assert_eq!(pending.earliest(), NEVER);
    }

    #[test]
    fn a_compaction_gives_memory_back() {
        let (mut pending, places) = queue(0..100_000);
        (0..99_000).for_each(|i| assert!(pending.remove(places[i as usize], i)));
        pending.compact(|_, _| ());
        assert_eq!(pending.live(), 1000);
        assert!(pending.records.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn a_compaction_tells_the_new_places() {
        let (mut pending, mut places) = queue(0..4000);
        for i in (0..4000).filter(|i| i % 4 != 3) {
            assert!(pending.remove(places[i as usize], i));
        }
        assert!(pending.wants_compaction());
        pending.compact(|record, place| places[record.index as usize] = place);
        assert_eq!((pending.records.len(), pending.live()), (1000, 1000));
        assert!(pending.remove(places[7], 7));
        assert!(pending.amend(places[11], 11, 5));
        assert_eq!(take(&mut pending, 2), [3, 11]);
    }

    #[test]
    fn places_wrap() {
        let mut pending = Pending { front: u32::MAX - 1, ..Pending::default() };
        let places: Vec<_> = (0..4).map(|i| pending.push(0, i, 0)).collect();
        assert!(pending.remove(places[2], 2));
        assert!(pending.amend(places[3], 3, 9));
        assert_eq!(take(&mut pending, 2), [0, 1]);
        assert_eq!(take(&mut pending, 2), [3]);
        let next = pending.push(0, 7, 0);
        assert_eq!(next, places[3].wrapping_add(1));
        assert!(pending.remove(next, 7));
    }
}
