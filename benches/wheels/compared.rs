//! The structures that the literature compares timing wheels with: an ordered list, a B-tree, a binary
//! heap, a skip list, each on a well-kept library. The benches measure them, the tests use them as oracles.
// Each user compiles this for itself and may use only a part of it.
#![allow(dead_code, unreachable_pub)]

use crossbeam_skiplist::SkipMap;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use wheelwork::wheel::{self, Simple, Unlimited, Wheel};

/// A structure for timeouts. A `u64` stands for the task.
pub trait Timers {
    type Key: Copy;
    /// `deadline` is not before the last `now`.
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key;
    fn cancel(&mut self, key: Self::Key) -> Option<u64>;
    /// Passes on the deadline and the value of each timeout that is due at `now`, ordered by deadline and
    /// then by insertion.
    fn expire(&mut self, now: u64, expired: impl FnMut(u64, u64));
    fn next_expiry(&self) -> Option<u64>;
}

/// The deadline, and a number that tells timeouts of one deadline apart, in order.
type Order = (u64, u64);

/// Scheme 2: sorted. A binary search finds the place, and everything behind it moves: O(n).
#[derive(Default)]
pub struct OrderedList {
    list: VecDeque<(Order, u64)>,
    inserted: u64,
}

impl Timers for OrderedList {
    type Key = Order;

    fn insert(&mut self, deadline: u64, value: u64) -> Order {
        self.inserted += 1;
        let order = (deadline, self.inserted);
        let at = self.list.partition_point(|&(other, _)| other < order);
        self.list.insert(at, (order, value));
        order
    }

    fn cancel(&mut self, key: Order) -> Option<u64> {
        let at = self.list.binary_search_by_key(&key, |&(order, _)| order).ok()?;
        self.list.remove(at).map(|(_, value)| value)
    }

    fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, u64)) {
        while let Some(&((deadline, _), value)) = self.list.front().filter(|e| e.0.0 <= now) {
            self.list.pop_front();
            expired(deadline, value);
        }
    }

    fn next_expiry(&self) -> Option<u64> {
        self.list.front().map(|&((deadline, _), _)| deadline)
    }
}

/// Scheme 3: O(log n).
#[derive(Default)]
pub struct BTree {
    map: BTreeMap<Order, u64>,
    inserted: u64,
}

impl Timers for BTree {
    type Key = Order;

    fn insert(&mut self, deadline: u64, value: u64) -> Order {
        self.inserted += 1;
        self.map.insert((deadline, self.inserted), value);
        (deadline, self.inserted)
    }

    fn cancel(&mut self, key: Order) -> Option<u64> {
        self.map.remove(&key)
    }

    fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, u64)) {
        while let Some(first) = self.map.first_entry().filter(|e| e.key().0 <= now) {
            let ((deadline, _), value) = first.remove_entry();
            expired(deadline, value);
        }
    }

    fn next_expiry(&self) -> Option<u64> {
        self.map.first_key_value().map(|(&(deadline, _), _)| deadline)
    }
}

/// Scheme 3: O(log n), but O(1) for a cancel. It takes the value out of a slab and leaves a dead entry in
/// the heap. Dead entries are swept out when they outnumber the live ones.
#[derive(Default)]
pub struct Heap {
    heap: BinaryHeap<Reverse<(Order, usize)>>,
    values: Slab<(u64, u64)>,
    inserted: u64,
}

impl Heap {
    fn take(values: &mut Slab<(u64, u64)>, slot: usize, number: u64) -> Option<u64> {
        values.get(slot).filter(|&&(owner, _)| owner == number)?;
        Some(values.remove(slot).1)
    }
}

impl Timers for Heap {
    type Key = (usize, u64);

    fn insert(&mut self, deadline: u64, value: u64) -> (usize, u64) {
        self.inserted += 1;
        let slot = self.values.insert((self.inserted, value));
        self.heap.push(Reverse(((deadline, self.inserted), slot)));
        (slot, self.inserted)
    }

    fn cancel(&mut self, (slot, number): (usize, u64)) -> Option<u64> {
        let value = Self::take(&mut self.values, slot, number)?;
        if self.heap.len() > 64 + 2 * self.values.len() {
            let values = &self.values;
            self.heap.retain(|&Reverse(((_, number), slot))| {
                values.get(slot).is_some_and(|&(owner, _)| owner == number)
            });
        }
        Some(value)
    }

    fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, u64)) {
        while let Some(&Reverse(((deadline, number), slot))) = self.heap.peek() {
            if deadline > now {
                return;
            }
            self.heap.pop();
            if let Some(value) = Self::take(&mut self.values, slot, number) {
                expired(deadline, value);
            }
        }
    }

    fn next_expiry(&self) -> Option<u64> {
        self.heap.peek().map(|&Reverse(((deadline, _), _))| deadline)
    }
}

/// O(log n), expected.
#[derive(Default)]
pub struct SkipList {
    map: SkipMap<Order, u64>,
    inserted: u64,
}

impl Timers for SkipList {
    type Key = Order;

    fn insert(&mut self, deadline: u64, value: u64) -> Order {
        self.inserted += 1;
        self.map.insert((deadline, self.inserted), value);
        (deadline, self.inserted)
    }

    fn cancel(&mut self, key: Order) -> Option<u64> {
        self.map.remove(&key).map(|entry| *entry.value())
    }

    fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, u64)) {
        while let Some(first) = self.map.front().filter(|e| e.key().0 <= now) {
            first.remove();
            expired(first.key().0, *first.value());
        }
    }

    fn next_expiry(&self) -> Option<u64> {
        self.map.front().map(|first| first.key().0)
    }
}

/// The wheels have methods of the same names, and these take precedence.
impl<S: Unlimited> Timers for Wheel<u64, S> {
    type Key = wheel::Key;

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> wheel::Key {
        self.insert(deadline, value)
    }

    #[inline]
    fn cancel(&mut self, key: wheel::Key) -> Option<u64> {
        self.remove(key)
    }

    #[inline]
    fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, u64)) {
        self.expire(now, |_, value| expired(value.deadline, value.value));
    }

    fn next_expiry(&self) -> Option<u64> {
        self.next_expiry()
    }
}

/// A simple wheel for delays that fit.
pub struct Fitting(pub Wheel<u64, Simple>);

impl Timers for Fitting {
    type Key = wheel::Key;

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> wheel::Key {
        self.0.insert(deadline, value).expect("a delay within a turn")
    }

    #[inline]
    fn cancel(&mut self, key: wheel::Key) -> Option<u64> {
        self.0.remove(key)
    }

    #[inline]
    fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, u64)) {
        self.0.expire(now, |_, value| expired(value.deadline, value.value));
    }

    fn next_expiry(&self) -> Option<u64> {
        self.0.next_expiry()
    }
}
