//! The pending queue of a shard: what has been submitted and not yet taken by the worker.
//!
//! First in, first out, and able to drop from its middle: a timeout that is cancelled before the
//! worker has seen it leaves at most a tombstone, and none if it was the last. Tombstones are swept
//! when they outnumber the living, so a storm of cancels does not grow the queue even while the
//! worker is held up by a task.
//!
//! A record's place is a sequence number that wraps. A place that is too old can point at another
//! record by wrapping, so a record is only taken for one's own if it bears one's index.

/// Tombstones that are not worth a sweep.
const DEAD_ALLOWED: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) deadline: u64,
    pub(crate) index: u32,
    pub(crate) version: u16,
    dead: bool,
}

#[derive(Default)]
pub(super) struct Pending {
    records: Vec<Record>,
    /// The place of the first record.
    front: u32,
    dead: usize,
}

impl Pending {
    /// Returns the record's place.
    #[inline]
    pub(super) fn push(&mut self, deadline: u64, index: u32, version: u16) -> u32 {
        let place = self.front.wrapping_add(self.records.len() as u32);
        self.records.push(Record::new(deadline, index, version));
        place
    }

    /// Drops a record, if it is still here.
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
        true
    }

    /// Drops the last record, and the dead ones before it.
    #[inline]
    fn pop_last(&mut self) {
        self.records.pop();
        while self.records.last().is_some_and(|r| r.dead) {
            self.records.pop();
            self.dead -= 1;
        }
    }

    /// Changes the deadline of a record, if it is still here.
    pub(super) fn amend(&mut self, place: u32, index: u32, deadline: u64) -> bool {
        let at = self.at(place);
        let found = self.records.get_mut(at).filter(|record| record.index == index && !record.dead);
        found.map(|record| record.deadline = deadline).is_some()
    }

    fn at(&self, place: u32) -> usize {
        place.wrapping_sub(self.front) as usize
    }

    /// Records that stand for a timeout.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.records.len() - self.dead
    }

    /// The whole queue changes hands for `empty`, in O(1). Dead records may be among it.
    pub(super) fn swap(&mut self, empty: &mut Vec<Record>) {
        debug_assert!(empty.is_empty());
        self.front = self.front.wrapping_add(self.records.len() as u32);
        self.dead = 0;
        std::mem::swap(&mut self.records, empty);
    }

    #[inline]
    pub(super) fn wants_sweep(&self) -> bool {
        self.dead > DEAD_ALLOWED + self.live()
    }

    /// Drops the tombstones; `moved` is told the new place of each record that stays.
    #[cold]
    pub(super) fn sweep(&mut self, mut moved: impl FnMut(u32, u32)) {
        let mut place = self.front;
        self.records.retain(|record| {
            if !record.dead {
                moved(record.index, place);
                place = place.wrapping_add(1);
            }
            !record.dead
        });
        self.dead = 0;
        if self.records.len() < self.records.capacity() / 4 {
            self.records.shrink_to(2 * self.records.len());
        }
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

    fn take(pending: &mut Pending) -> Vec<u32> {
        let mut out = Vec::new();
        pending.swap(&mut out);
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

    #[test]
    fn the_living_come_out_in_order() {
        let (mut pending, places) = queue(0..6);
        for dead in [0, 1, 4] {
            assert!(pending.remove(places[dead], dead as u32));
        }
        assert_eq!(pending.live(), 3);
        assert_eq!(take(&mut pending), [2, 3, 5]);
        assert!(!pending.remove(places[2], 2), "taken");
        assert_eq!(pending.live(), 0);
    }

    #[test]
    fn a_sweep_tells_the_new_places() {
        let (mut pending, mut places) = queue(0..4000);
        for i in (0..4000).filter(|i| i % 4 != 3) {
            assert!(pending.remove(places[i as usize], i));
        }
        assert!(pending.wants_sweep());
        pending.sweep(|index, place| places[index as usize] = place);
        assert_eq!((pending.records.len(), pending.live()), (1000, 1000));
        assert!(pending.remove(places[7], 7));
        assert!(pending.amend(places[11], 11, 5));
        assert_eq!(take(&mut pending)[..2], [3, 11]);
    }

    #[test]
    fn places_wrap() {
        let mut pending = Pending { front: u32::MAX - 1, ..Pending::default() };
        let places: Vec<_> = (0..4).map(|i| pending.push(0, i, 0)).collect();
        assert!(pending.remove(places[2], 2));
        assert!(pending.amend(places[3], 3, 9));
        assert_eq!(take(&mut pending), [0, 1, 3]);
        let next = pending.push(0, 7, 0);
        assert_eq!(next, places[3].wrapping_add(1));
        assert!(pending.remove(next, 7));
    }
}
