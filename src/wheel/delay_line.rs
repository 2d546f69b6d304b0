//! The delay line: a list for timeouts of one fixed delay.
//!
//! All delays are equal, so the list is sorted by itself: a value that is inserted or renewed goes to the
//! back. It is a doubly linked list in a slab.
//!
//! Invariants:
//! 1. The deadlines from the front to the back never decrease.
//! 2. The entries in the list are the used slots of the slab.

use super::key::{Expired, Key};
use super::ticks::Ticks;
use super::values::slab::{MOST_CHUNKS, Slab};
use crate::time::tick::nanos;
use std::fmt;
use std::iter::successors;
use std::time::Duration;

/// The end of the list.
const NONE: u32 = u32::MAX;

/// Timeouts that all have the same delay: a list instead of a wheel.
///
/// Most programs have a few delays: an idle timeout, a request timeout. A list for each of them needs no
/// buckets. Each call is O(1) and touches at most four entries, and nothing is read before it is due. An entry
/// takes 24 bytes besides the value, and a removed one leaves nothing behind.
///
/// Like the wheels, it is pure: the caller tells it the time in ticks of any length. Tick `u64::MAX` never comes.
///
/// - **With your own ticks**, [`new`](Self::new) is exact: a value is due `delay` ticks after its insertion.
/// - **With instants**, [`Ticks`] counts the ticks, and [`for_duration`](Self::for_duration) makes the line. Do not
///   divide the duration by the tick yourself: [`Ticks::at`] rounds down, so a value would be early by up to a tick.
/// - **Time never goes back** for insertions and renewals: an earlier tick than the latest that the line was told
///   counts as that one. [`pop`](Self::pop) and [`expire`](Self::expire) take out only what is due at the tick that
///   they are told.
///
/// # Examples
///
/// With instants. Every call gets the current tick:
///
/// ```
/// use std::time::{Duration, Instant};
/// use wheelwork::wheel::{DelayLine, Ticks};
///
/// let (start, ms) = (Instant::now(), Duration::from_millis(1));
/// let ticks = Ticks::new(10 * ms, start)?;
/// let mut idle = DelayLine::for_duration(30 * ms, &ticks);
/// let anna = idle.insert(ticks.at(start + 9 * ms), "anna");
/// idle.insert(ticks.at(start + 12 * ms), "bert");
/// idle.renew(ticks.at(start + 25 * ms), anna); // anna was active
///
/// let next = idle.next_expiry().and_then(|tick| ticks.start_of(tick));
/// assert_eq!(next, Some(start + 50 * ms)); // bert's 30 ms end at 42 ms: late by less than a tick
/// assert!(idle.pop(ticks.at(start + 49 * ms)).is_none());
/// assert_eq!(idle.pop(ticks.at(start + 50 * ms)).map(|expired| expired.value), Some("bert"));
/// # Ok::<(), wheelwork::wheel::ZeroDurationError>(())
/// ```
///
/// With your own ticks:
///
/// ```
/// use wheelwork::wheel::DelayLine;
///
/// let mut idle = DelayLine::new(30);
/// let anna = idle.insert(0, "anna");
/// idle.insert(10, "bert");
/// assert!(idle.renew(20, anna)); // anna was active
/// assert_eq!(idle.next_expiry(), Some(40));
/// let mut silent = Vec::new();
/// idle.expire(45, |_, expired| silent.push((expired.deadline, expired.value)));
/// assert_eq!(silent, [(40, "bert")]);
/// assert_eq!(idle.remove(anna), Some("anna"));
/// ```
pub struct DelayLine<T> {
    delay: u64,
    /// The latest tick that the line was told.
    now: u64,
    entries: Slab<Entry<T>>,
    front: u32,
    back: u32,
}

struct Entry<T> {
    before: u32,
    after: u32,
    deadline: u64,
    value: T,
}

impl<T> DelayLine<T> {
    /// An empty line of timeouts that are due `delay` ticks after their insertion. It allocates nothing. For a
    /// delay in real time, use [`for_duration`](Self::for_duration).
    pub fn new(delay: u64) -> Self {
        Self { delay, now: 0, entries: Slab::with_limit(MOST_CHUNKS), front: NONE, back: NONE }
    }

    /// An empty line of timeouts that are due `delay` after their insertion, for a caller that passes
    /// [`ticks.at(now)`](Ticks::at) to each call. It allocates nothing.
    ///
    /// A value is never early. It is late by at most a tick if `delay` is a multiple of the tick, otherwise by less
    /// than two. To ensure this, the delay is rounded up to whole ticks, and one tick is added, because the tick of the
    /// insertion began before the insertion. Like the tick, `delay` is in the own time of `ticks`. One beyond 584 years
    /// never ends.
    pub fn for_duration(delay: Duration, ticks: &Ticks) -> Self {
        Self::new(ticks.tick_not_before(nanos(delay)).saturating_add(1))
    }

    /// Allocates the memory of `capacity` values now, and keeps it. While the line holds no more values, an
    /// insertion allocates nothing.
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.entries.reserve(capacity);
        self
    }

    /// Inserts a value at tick `now`.
    ///
    /// # Panics
    ///
    /// If the line already holds 2^32 - 64 values.
    #[inline]
    pub fn insert(&mut self, now: u64, value: T) -> Key {
        self.now = self.now.max(now);
        let deadline = self.now.saturating_add(self.delay);
        let entry = Entry { before: self.back, after: NONE, deadline, value };
        let (key, _) = self.entries.insert(entry).expect("fewer than 2^32 - 64 values");
        self.set_after(self.back, key.index);
        self.back = key.index;
        key
    }

    /// Moves a value to the back, as if it were inserted at tick `now`. Its key stays valid. False if the
    /// value has left the line.
    #[inline]
    pub fn renew(&mut self, now: u64, key: Key) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        self.now = self.now.max(now);
        entry.deadline = self.now.saturating_add(self.delay);
        if key.index != self.back {
            let (before, after) = (entry.before, entry.after);
            (entry.before, entry.after) = (self.back, NONE);
            self.join(before, after);
            self.set_after(self.back, key.index);
            self.back = key.index;
        }
        true
    }

    /// Takes a value out before it expires.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.take(key).map(|expired| expired.value)
    }

    /// Takes out the first value, if it is due up to and including tick `now`. If `now` is earlier than in a previous
    /// call, fewer values come out, but none is early. Between two calls, the caller
    /// may change the line. Values come in the order of their insertion or last renewal.
    #[inline]
    pub fn pop(&mut self, now: u64) -> Option<Expired<T>> {
        self.now = self.now.max(now);
        let (key, _) = self.first().filter(|&(_, deadline)| deadline <= now)?;
        self.take(key)
    }

    /// Expires all values that are due up to and including tick `now`, and returns their number. `expired`
    /// gets each value with its key and its own deadline, and the line, which it may change. If it panics, the
    /// remaining values stay.
    pub fn expire(&mut self, now: u64, mut expired: impl FnMut(&mut Self, Expired<T>)) -> usize {
        let mut count = 0;
        while let Some(value) = self.pop(now) {
            count += 1;
            expired(self, value);
        }
        count
    }

    /// The tick at which the first value is due: exact. `None` if the line is empty, or if no value ever comes
    /// due.
    #[inline]
    pub fn next_expiry(&self) -> Option<u64> {
        self.first().map(|(_, deadline)| deadline)
    }

    /// The value of `key`, if it is still in the line.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// The value of `key`, to change it.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// The tick at which `key` is due.
    pub fn deadline(&self, key: Key) -> Option<u64> {
        self.entries.get(key).map(|entry| entry.deadline)
    }

    /// All values, each with its key and its deadline, the earliest first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::DelayLine;
    /// let mut idle = DelayLine::new(30);
    /// let keys = [0, 10].map(|now| idle.insert(now, now));
    /// assert!(idle.iter().eq([(keys[0], 30, &0), (keys[1], 40, &10)]));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Key, u64, &T)> {
        let entries =
            successors(self.entries.at(self.front), |(_, entry)| self.entries.at(entry.after));
        entries.map(|(key, entry)| (key, entry.deadline, &entry.value))
    }

    /// The delay of all values, in ticks, with the tick that [`for_duration`](Self::for_duration) adds.
    pub fn delay(&self) -> u64 {
        self.delay
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.entries.used()
    }

    /// Whether the line holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first value that ever comes due, with its deadline.
    #[inline]
    fn first(&self) -> Option<(Key, u64)> {
        let (key, entry) = self.entries.at(self.front)?;
        Some((key, entry.deadline)).filter(|&(_, deadline)| deadline != u64::MAX)
    }

    /// Takes an entry out of the list.
    fn take(&mut self, key: Key) -> Option<Expired<T>> {
        let Entry { before, after, deadline, value } = self.entries.remove(key)?;
        self.join(before, after);
        Some(Expired { key, deadline, value })
    }

    /// Makes neighbours of the entries before and after one that leaves its place.
    fn join(&mut self, before: u32, after: u32) {
        self.set_after(before, after);
        self.set_before(after, before);
    }

    /// Sets what comes after an entry, or what comes first if `index` is `NONE`.
    fn set_after(&mut self, index: u32, next: u32) {
        match self.entries.at_mut(index) {
            Some(entry) => entry.after = next,
            None => self.front = next,
        }
    }

    /// Sets what comes before an entry, or what comes last if `index` is `NONE`.
    fn set_before(&mut self, index: u32, previous: u32) {
        match self.entries.at_mut(index) {
            Some(entry) => entry.before = previous,
            None => self.back = previous,
        }
    }
}

impl<T> fmt::Debug for DelayLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayLine")
            .field("delay", &self.delay)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
