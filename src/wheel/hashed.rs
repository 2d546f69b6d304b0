//! The public wheel: a ring of tokens, and a slab of the values they stand for.

use super::ring::{Due, MAX_TICKS_PER_WHEEL, Ring, Token};
use crate::slab::{Slab, Slot};
use std::fmt;

/// Dead entries that are not worth a walk.
const DEAD_ALLOWED: usize = 64;

/// A timing wheel with rounds: a pure data structure that is told the time in ticks.
///
/// After Netty's `HashedWheelTimer` and scheme 6 of Varghese and Lauck (1987). `insert`, `remove`
/// and `next_expiry` are O(1); a tick in which nothing is due costs nothing, however many ticks
/// are stepped over at once. Values that share a bucket but not a round never hide each other.
///
/// The wheel starts at tick 0. It allocates for its buckets up front (40 bytes each) and then about
/// 8 bytes for each entry besides the value.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::HashedWheel;
///
/// let mut wheel = HashedWheel::new(64)?;
/// let far = wheel.insert(10_000, "far");
/// wheel.insert(3, "near");
/// assert_eq!(wheel.remaining_rounds(far), Some(156)); // 10,000 / 64
/// assert_eq!(wheel.next_expiry(), Some(3));
///
/// let mut fired = Vec::new();
/// wheel.expire(5, |tick, value| fired.push((tick, value)));
/// assert_eq!(fired, [(3, "near")]);
/// assert_eq!(wheel.remove(far), Some("far"));
/// assert!(wheel.is_empty());
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
pub struct HashedWheel<T> {
    ring: Ring,
    items: Slab<Item<T>>,
    /// Entries of the ring whose value has been removed.
    dead: usize,
    due: Vec<Due>,
}

/// Names a value in a [`HashedWheel`]. A key whose value has left the wheel finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// The number of ticks in a turn was zero or above 2^30, or there is no memory for so many buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a wheel of {ticks_per_wheel} ticks: expected 1 to 1073741824 (2^30), and memory for them")]
pub struct WheelSizeError {
    /// What was asked for.
    pub ticks_per_wheel: usize,
}

struct Item<T> {
    value: Option<T>,
    deadline: u64,
    generation: u32,
}

impl<T> Slot for Item<T> {
    fn fresh(version: u32) -> Self {
        Self { value: None, deadline: 0, generation: version }
    }

    fn version(&self) -> u32 {
        self.generation
    }

    fn link(&self) -> u16 {
        self.deadline as u16
    }

    fn set_link(&mut self, link: u16) {
        self.deadline = u64::from(link);
    }
}

impl<T> HashedWheel<T> {
    /// A wheel of `ticks_per_wheel` buckets, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// If the size is zero or above 2^30, or if memory for the buckets is refused.
    pub fn new(ticks_per_wheel: usize) -> Result<Self, WheelSizeError> {
        let error = WheelSizeError { ticks_per_wheel };
        if !(1..=MAX_TICKS_PER_WHEEL).contains(&ticks_per_wheel) {
            return Err(error);
        }
        let ring = Ring::new(ticks_per_wheel.next_power_of_two()).map_err(|_| error)?;
        let items = Slab::with_limit(u32::MAX as usize);
        Ok(Self { ring, items, dead: 0, due: Vec::new() })
    }

    /// Files `value` under the absolute tick `deadline`; an overdue one expires with the next tick,
    /// and tick `u64::MAX` never comes.
    ///
    /// # Panics
    ///
    /// If the wheel already holds 2^32 - 1 values.
    pub fn insert(&mut self, deadline: u64, value: T) -> Key {
        let (index, item) = self.items.acquire().expect("fewer than 2^32 - 1 values");
        item.value = Some(value);
        item.deadline = deadline;
        let key = Key { index, generation: item.generation };
        self.ring.insert(deadline, key.token());
        key
    }

    /// Takes a value out before it expires. O(1) amortised: what stays in the bucket is eight bytes,
    /// which are swept out when they outnumber the living.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (_, value) = self.items.end(key)?;
        self.dead += 1;
        // A walk looks at every bucket, so there must be as much to gain.
        if self.dead > DEAD_ALLOWED + self.items.used() + self.ticks_per_wheel() {
            let items = &self.items;
            self.ring.reclaim(usize::MAX, |token| items.lives(token));
            self.dead = 0;
        }
        Some(value)
    }

    /// The value of `key`, if it is still in the wheel.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.items.live(key)?.value.as_ref()
    }

    /// The absolute tick at which `key` expires.
    pub fn deadline(&self, key: Key) -> Option<u64> {
        self.items.live(key).map(|item| item.deadline)
    }

    /// How often the pointer will still pass the bucket of `key` before the pass that expires it:
    /// `(deadline - current_tick) / ticks_per_wheel`, as in Netty.
    pub fn remaining_rounds(&self, key: Key) -> Option<u64> {
        let ahead = self.deadline(key)?.saturating_sub(self.current_tick());
        Some(ahead / self.ticks_per_wheel() as u64)
    }

    /// The bucket that `key` lies in: `max(deadline, current_tick) & (ticks_per_wheel - 1)`.
    pub fn bucket(&self, key: Key) -> Option<usize> {
        Some(self.ring.bucket_of(self.deadline(key)?))
    }

    /// Expires all that is due up to and including tick `now`, in the order of ticks and within a
    /// tick in the order of insertion, and returns how many that were. `expired` is told each
    /// value's own deadline. A `now` before the current tick does nothing.
    ///
    /// If `expired` panics, what was due and not yet handed over expires with the next tick.
    pub fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, T)) -> usize {
        self.ring.take_due(now, &mut self.due);
        let mut rest = Rest { ring: &mut self.ring, due: &mut self.due, next: 0 };
        let mut count = 0;
        while let Some(due) = rest.pop() {
            let Some((deadline, value)) = self.items.end_if(due) else {
                self.dead = self.dead.saturating_sub(1);
                continue;
            };
            count += 1;
            expired(deadline, value);
        }
        count
    }

    /// A tick at which the wheel wants to be told the time again; nothing expires before it. It is
    /// early, never late: the timeout that it was for may have been removed.
    pub fn next_expiry(&self) -> Option<u64> {
        self.ring.next_expiry()
    }

    /// Takes out everything, ordered by deadline.
    pub fn drain(&mut self) -> Vec<(u64, T)> {
        let keys: Vec<Key> = (self.items.iter_mut())
            .filter(|(_, item)| item.value.is_some())
            .map(|(index, item)| Key { index, generation: item.generation })
            .collect();
        let mut all: Vec<_> = keys.into_iter().filter_map(|key| self.items.end(key)).collect();
        all.sort_by_key(|&(deadline, _)| deadline);
        self.ring.reclaim(usize::MAX, |_| false);
        self.dead = 0;
        all
    }

    /// Values in the wheel.
    pub fn len(&self) -> usize {
        self.items.used()
    }

    /// Whether the wheel holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next tick to expire.
    pub fn current_tick(&self) -> u64 {
        self.ring.current_tick()
    }

    /// The number of buckets.
    pub fn ticks_per_wheel(&self) -> usize {
        self.ring.ticks_per_wheel()
    }
}

impl<T> fmt::Debug for HashedWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedWheel")
            .field("ticks_per_wheel", &self.ticks_per_wheel())
            .field("current_tick", &self.current_tick())
            .field("len", &self.len())
            .field("next_expiry", &self.next_expiry())
            .finish()
    }
}

impl Key {
    fn token(self) -> Token {
        Token { index: self.index, version: self.generation as u16 }
    }
}

impl<T> Slab<Item<T>> {
    fn live(&self, key: Key) -> Option<&Item<T>> {
        self.get(key.index).filter(|i| i.generation == key.generation && i.value.is_some())
    }

    fn lives(&self, token: Token) -> bool {
        let item = self.get(token.index);
        item.is_some_and(|i| i.value.is_some() && i.generation as u16 == token.version)
    }

    /// Ends the use of a slot, which makes its key and its token find nothing.
    fn end(&mut self, key: Key) -> Option<(u64, T)> {
        let item = self.get_mut(key.index).filter(|i| i.generation == key.generation)?;
        let value = item.value.take()?;
        item.generation = item.generation.wrapping_add(1);
        let deadline = item.deadline;
        self.release(key.index);
        Some((deadline, value))
    }

    /// A stale entry can match a later use of its slot by the 16 bits of generation that it holds;
    /// then the deadline tells.
    fn end_if(&mut self, Due { tick, token }: Due) -> Option<(u64, T)> {
        let item = self.get(token.index).filter(|item| item.deadline <= tick)?;
        let key = Key { index: token.index, generation: item.generation };
        if !self.lives(token) {
            return None;
        }
        self.end(key)
    }
}

/// What is due and not yet handed over. If the callback panics, it goes back into the ring.
struct Rest<'a> {
    ring: &'a mut Ring,
    due: &'a mut Vec<Due>,
    next: usize,
}

impl Rest<'_> {
    fn pop(&mut self) -> Option<Due> {
        let due = self.due.get(self.next).copied()?;
        self.next += 1;
        Some(due)
    }
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        for due in self.due.drain(..).skip(self.next) {
            self.ring.insert(due.tick, due.token);
        }
    }
}
