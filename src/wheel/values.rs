//! The public [`Wheel`]: values and their keys, on top of the filing of any structure.
//!
//! The values lie in a slab. A [`Key`] names a slot of it, with a generation that tells the uses of
//! the slot apart. The filing holds only tokens, with 16 bits of that generation. If a value is
//! removed, its entry stays there as a *dead* entry, until it is due or a sweep drops it.

use super::filing::Filing;
use super::structure::{Placement, Structure, Unlimited};
use super::token::{Due, Token};
use crate::base::slab::{Slab, Slot};
use std::fmt;

/// Up to this many dead entries are never worth a sweep.
const DEAD_ALLOWED: usize = 64;

/// A timing wheel: a pure data structure. The caller tells it the time in ticks.
///
/// Use it by one of its aliases, each of which picks a structure `S`:
/// [`HashedWheel`](super::HashedWheel), [`HierarchicalWheel`](super::HierarchicalWheel),
/// [`LinuxClassicWheel`](super::LinuxClassicWheel), [`LinuxWheel`](super::LinuxWheel),
/// [`SimpleWheel`](super::SimpleWheel). All have the same methods. Their costs and guarantees
/// differ; each alias documents its own.
///
/// Every wheel starts at tick 0. Ticks in which nothing is due cost nothing, however many are
/// skipped at once. Tick `u64::MAX` never comes.
///
/// # Examples
///
/// The same program on two structures:
///
/// ```
/// use wheelwork::wheel::{HierarchicalWheel, LinuxClassicWheel, Unlimited, Wheel};
///
/// fn fired<S: Unlimited>(mut wheel: Wheel<&str, S>) -> Vec<(u64, &str)> {
///     let mut fired = Vec::new();
///     let removed = wheel.insert(700, "removed");
///     wheel.insert(10_000, "far");
///     wheel.insert(3, "near");
///     assert_eq!(wheel.remove(removed), Some("removed"));
///     wheel.expire(10_000, |tick, value| fired.push((tick, value)));
///     fired
/// }
///
/// assert_eq!(fired(HierarchicalWheel::new(20)?), [(3, "near"), (10_000, "far")]);
/// assert_eq!(fired(LinuxClassicWheel::new()), [(3, "near"), (10_000, "far")]);
/// # Ok::<(), wheelwork::wheel::LevelSizeError>(())
/// ```
pub struct Wheel<T, S> {
    filing: Filing<S>,
    items: Slab<Item<T>>,
}

/// Names a value in a [`Wheel`]. A key whose value has left the wheel finds nothing.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::HashedWheel;
///
/// let mut wheel = HashedWheel::new(64)?;
/// let key = wheel.insert(3, "value");
/// assert_eq!((wheel.get(key), wheel.deadline(key)), (Some(&"value"), Some(3)));
/// wheel.expire(3, |_, _| ());
/// assert_eq!(wheel.get(key), None);
/// assert_eq!(wheel.remove(key), None);
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
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

impl<T> Item<T> {
    fn is_named_by(&self, token: Token) -> bool {
        self.value.is_some() && self.generation as u16 == token.version
    }
}

impl<T, S: Unlimited> Wheel<T, S> {
    /// Files `value` under the absolute tick `deadline`. An overdue value expires with the next
    /// tick. Tick `u64::MAX` never comes.
    ///
    /// # Panics
    ///
    /// If the wheel already holds 2^32 - 1 values.
    #[inline]
    pub fn insert(&mut self, deadline: u64, value: T) -> Key {
        self.file(deadline, value)
    }
}

impl<T, S: Structure> Wheel<T, S> {
    pub(super) fn on(structure: S) -> Self {
        let filing = Filing::new(structure, DEAD_ALLOWED);
        Self { filing, items: Slab::with_limit(u32::MAX as usize) }
    }

    pub(super) fn structure(&self) -> &S {
        &self.filing.wheel
    }

    #[inline]
    pub(super) fn file(&mut self, deadline: u64, value: T) -> Key {
        let (index, item) = self.items.acquire().expect("fewer than 2^32 - 1 values");
        item.value = Some(value);
        item.deadline = deadline;
        let key = Key { index, generation: item.generation };
        self.filing.insert_in_order(deadline, key.token());
        key
    }

    /// Takes a value out before it expires. O(1) amortised. A dead entry of 8 or 16 bytes stays in
    /// the wheel. Dead entries are swept out when they outnumber the values and buckets.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (_, value) = self.items.end(key)?;
        if self.filing.is_sweep_worth_it(self.items.used()) {
            self.filing.sweep(usize::MAX, |token| self.items.lives(token));
        }
        Some(value)
    }

    /// The value of `key`, if the value is still in the wheel.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.items.live(key)?.value.as_ref()
    }

    /// The absolute tick at which `key` is due.
    pub fn deadline(&self, key: Key) -> Option<u64> {
        self.items.live(key).map(|item| item.deadline)
    }

    /// The present level and bucket of `key`. `None` if its value has left the wheel, or if it is
    /// in no bucket: its deadline is too far away, or it is overdue in a
    /// [`LinuxWheel`](super::LinuxWheel).
    ///
    /// This is for tests and for inspection. A hashed wheel searches one bucket, and a wheel with
    /// levels searches all of them.
    pub fn placement(&self, key: Key) -> Option<Placement> {
        self.structure().placement(self.deadline(key)?, key.token())
    }

    /// Expires all values that are due up to and including tick `now`, and returns their number.
    /// `expired` gets each value with its own deadline. A `now` before the current tick does
    /// nothing.
    ///
    /// The values come in the order of ticks, and within a tick in the order of insertion. An
    /// overdue value belongs to the tick that was the current one when it was inserted. Only a
    /// [`LinuxWheel`](super::LinuxWheel) orders its values by bucket instead. There, the order of
    /// insertion holds for values that were inserted for the same deadline at the same current
    /// tick.
    ///
    /// If `expired` panics, the due values that it has not yet got expire with the next tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::HashedWheel;
    /// # let mut wheel = HashedWheel::new(64)?;
    /// for tick in [7, 3, 7] {
    ///     wheel.insert(tick, tick);
    /// }
    /// let mut ticks = Vec::new();
    /// assert_eq!(wheel.expire(10, |tick, _| ticks.push(tick)), 3);
    /// assert_eq!(ticks, [3, 7, 7]);
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn expire(&mut self, now: u64, mut expired: impl FnMut(u64, T)) -> usize {
        let rest = Rest { filing: &mut self.filing, now };
        let mut count = 0;
        while let Some(due) = rest.filing.pop(now) {
            if let Some((deadline, value)) = self.items.end_if(due) {
                count += 1;
                expired(deadline, value);
            }
        }
        count
    }

    /// The next tick at which the caller should tell the wheel the time. No value expires before
    /// it. It is too early if its value has been removed meanwhile, but it is never too late.
    pub fn next_expiry(&self) -> Option<u64> {
        self.filing.next_expiry()
    }

    /// Takes out all values, ordered by deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::HashedWheel;
    /// # let mut wheel = HashedWheel::new(64)?;
    /// wheel.insert(70, "later");
    /// wheel.insert(3, "soon");
    /// assert_eq!(wheel.drain(), [(3, "soon"), (70, "later")]);
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn drain(&mut self) -> Vec<(u64, T)> {
        let keys: Vec<Key> = (self.items.iter_mut())
            .filter(|(_, item)| item.value.is_some())
            .map(|(index, item)| Key { index, generation: item.generation })
            .collect();
        let mut all: Vec<_> = keys.into_iter().filter_map(|key| self.items.end(key)).collect();
        all.sort_by_key(|&(deadline, _)| deadline);
        self.filing.sweep(usize::MAX, |_| false);
        all
    }

    /// The number of values in the wheel.
    pub fn len(&self) -> usize {
        self.items.used()
    }

    /// Whether the wheel holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next tick to expire.
    pub fn current_tick(&self) -> u64 {
        self.filing.current_tick()
    }
}

impl<T, S: Structure> fmt::Debug for Wheel<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("len", &self.len())
            .field("structure", self.structure())
            .finish_non_exhaustive()
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
        self.get(token.index).is_some_and(|item| item.is_named_by(token))
    }

    /// Takes the value of `key` and ends that use of the slot, so that its key and token find
    /// nothing.
    fn end(&mut self, key: Key) -> Option<(u64, T)> {
        let item = self.get_mut(key.index).filter(|i| i.generation == key.generation)?;
        let value = item.value.take()?;
        item.generation = item.generation.wrapping_add(1);
        let deadline = item.deadline;
        self.release(key.index);
        Some((deadline, value))
    }

    /// Takes a value that has come out of the structure, if its entry is live. A dead entry may
    /// match a later use of its slot, because it has only 16 bits of the generation. The deadline
    /// tells them apart.
    fn end_if(&mut self, Due { tick, token }: Due) -> Option<(u64, T)> {
        let item = self.get(token.index).filter(|item| item.deadline <= tick)?;
        let key = Key { index: token.index, generation: item.generation };
        if !self.lives(token) {
            return None;
        }
        self.end(key)
    }
}

/// The due tokens that have not been handed over. If the callback panics, they are filed again.
struct Rest<'a, S: Structure> {
    filing: &'a mut Filing<S>,
    now: u64,
}

impl<S: Structure> Drop for Rest<'_, S> {
    fn drop(&mut self) {
        let left: Vec<Due> = std::iter::from_fn(|| self.filing.pop(self.now)).collect();
        left.into_iter().for_each(|due| self.filing.insert(due.tick, due.token));
    }
}

#[cfg(test)]
mod tests;
