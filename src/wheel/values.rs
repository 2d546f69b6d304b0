//! The public [`Wheel`]: values and their keys, on top of the filing of any structure.
//!
//! The values lie in a slab. A [`Key`] names a slot of it, with a generation that tells the uses of
//! the slot apart. The filing holds only tokens, each with the number of its slot's current filing. If a
//! value is removed, its entry stays there as a *dead* entry, until it is due or a sweep drops it.
//!
//! A value that is moved to a later tick keeps its entry. The entry comes out at the previous tick, and is
//! filed again. A value that is moved to an earlier tick gets a new entry, and the previous one is dead. In a structure
//! that is late, each move makes a new entry, because the previous one may come out long after the new tick.
//!
//! The number of a filing has 16 bits. A dead entry whose number is current again passes for a live one.
//! This does no harm: the value comes out only if its deadline has come, and otherwise its entry is filed
//! again.

use super::key::{Expired, Key};
use super::structure::{Placement, Structure, Unlimited};
use super::sweep::is_sweep_worth_it;
use super::token::{Due, Token};
use std::fmt;

mod in_order;
pub(crate) mod slab;

pub(in crate::wheel) use in_order::InOrder;
use slab::{MOST_CHUNKS, Slab};

/// How many tokens before its value is taken out a slot is prefetched.
const AHEAD: usize = 16;

/// Up to this many dead entries are never worth a sweep.
const DEAD_ALLOWED: usize = 64;

/// A timing wheel: a pure data structure. The caller tells it the time in ticks.
///
/// | created by | structure `S` |
/// |---|---|
/// | [`Wheel::hashed`] | [`Hashed`](super::Hashed) |
/// | [`Wheel::hierarchical`] | [`Hierarchical`](super::Hierarchical) |
/// | [`Wheel::linux_classic`] | [`LinuxClassic`](super::LinuxClassic) |
/// | [`Wheel::linux`] | [`Linux`](super::Linux) |
/// | [`Wheel::simple`] | [`Simple`](super::Simple) |
///
/// All have the same methods. Their costs and guarantees differ; the page of each structure has its own. In the field
/// of a struct, write `Wheel<Value, Hashed>`.
///
/// Every wheel starts at tick 0. Ticks in which nothing is due cost nothing, however many are
/// skipped at once. Tick `u64::MAX` never comes.
///
/// # Examples
///
/// The same program on two structures:
///
/// ```
/// use wheelwork::wheel::{Unlimited, Wheel};
///
/// fn fired<S: Unlimited>(mut wheel: Wheel<&str, S>) -> Vec<(u64, &str)> {
///     let mut fired = Vec::new();
///     let removed = wheel.insert(700, "removed");
///     wheel.insert(10_000, "far");
///     wheel.insert(3, "near");
///     assert_eq!(wheel.remove(removed), Some("removed"));
///     wheel.expire(10_000, |_, expired| fired.push((expired.deadline, expired.value)));
///     fired
/// }
///
/// assert_eq!(fired(Wheel::hierarchical(20)?), [(3, "near"), (10_000, "far")]);
/// assert_eq!(fired(Wheel::linux_classic()), [(3, "near"), (10_000, "far")]);
/// # Ok::<(), wheelwork::wheel::LevelSizeError>(())
/// ```
pub struct Wheel<T, S> {
    filing: InOrder<S>,
    items: Slab<Item<T>>,
}

struct Item<T> {
    deadline: u64,
    value: T,
}

impl<T, S: Unlimited> Wheel<T, S> {
    /// Files `value` under the absolute tick `deadline`. An overdue value expires with the next
    /// tick. Tick `u64::MAX` never comes.
    ///
    /// # Panics
    ///
    /// If the wheel already holds 2^32 - 64 values.
    #[inline]
    pub fn insert(&mut self, deadline: u64, value: T) -> Key {
        self.file(deadline, value)
    }

    /// Moves a value to the absolute tick `deadline`. Its key stays valid. False if the value has left the
    /// wheel.
    ///
    /// O(1). A move to a later tick only writes the new deadline; the entry moves when the previous
    /// deadline comes. A move to an earlier tick costs as much as an insertion, and so does each move in a
    /// [`Linux`](super::Linux) wheel. Among the values of its new tick, the value is in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// let mut sessions = Wheel::hashed(64)?;
    /// let session = sessions.insert(30, "anna");
    /// assert!(sessions.reschedule(session, 50)); // a request at tick 20
    /// assert_eq!(sessions.pop(49), None);
    /// assert_eq!(sessions.pop(50).map(|expired| expired.value), Some("anna"));
    /// assert!(!sessions.reschedule(session, 80));
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    #[inline]
    pub fn reschedule(&mut self, key: Key, deadline: u64) -> bool {
        self.move_to(key, deadline)
    }
}

impl<T, S: Structure> Wheel<T, S> {
    pub(super) fn on(structure: S) -> Self {
        Self { filing: InOrder::new(structure), items: Slab::with_limit(MOST_CHUNKS) }
    }

    /// Allocates the memory of `capacity` values now, and keeps it. While the wheel holds no more values,
    /// an insertion allocates nothing for its value. The wheel's buckets still grow when they need to.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// let mut wheel = Wheel::hashed(512)?.with_capacity(10_000);
    /// wheel.insert(7, "value");
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.items.reserve(capacity);
        self
    }

    #[inline]
    pub(super) fn tell(&mut self, now: u64) {
        self.filing.tell(now);
    }

    pub(super) fn structure(&self) -> &S {
        &self.filing.filing.wheel
    }

    #[inline]
    pub(super) fn file(&mut self, deadline: u64, value: T) -> Key {
        let inserted = self.items.insert(Item { deadline, value });
        let (key, token) = inserted.expect("fewer than 2^32 - 64 values");
        self.filing.insert(deadline, token);
        key
    }

    #[inline]
    pub(super) fn move_to(&mut self, key: Key, deadline: u64) -> bool {
        let Some(item) = self.items.get_mut(key) else { return false };
        let before = std::mem::replace(&mut item.deadline, deadline);
        if deadline < before || S::IS_LATE {
            let refiled = self.items.refile(key.index);
            refiled.into_iter().for_each(|token| self.filing.insert(deadline, token));
            self.sweep_if_worth_it();
        }
        true
    }

    fn sweep_if_worth_it(&mut self) {
        let (entries, live) = (self.filing.entries(), self.items.used());
        let allowed = DEAD_ALLOWED.max(self.structure().bucket_count());
        if is_sweep_worth_it(entries, live, allowed) {
            self.filing.sweep(usize::MAX, |token| self.items.named_by(token).is_some());
        }
    }

    /// Takes a value out before it expires. O(1) amortised. A dead entry of 8 or 16 bytes stays in
    /// the wheel. Dead entries are swept out when they outnumber the values and buckets.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let Item { value, .. } = self.items.remove(key)?;
        self.sweep_if_worth_it();
        Some(value)
    }

    /// The value of `key`, if the value is still in the wheel.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.items.get(key).map(|item| &item.value)
    }

    /// The value of `key`, to change it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// let mut wheel = Wheel::hashed(64)?;
    /// let key = wheel.insert(3, 0);
    /// *wheel.get_mut(key).expect("it has not expired") += 1;
    /// assert_eq!(wheel.remove(key), Some(1));
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.items.get_mut(key).map(|item| &mut item.value)
    }

    /// All values, each with its key and its deadline, in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// let mut wheel = Wheel::hashed(64)?;
    /// let key = wheel.insert(3, "value");
    /// assert!(wheel.iter().eq([(key, 3, &"value")]));
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Key, u64, &T)> {
        self.items.iter().map(|(key, item)| (key, item.deadline, &item.value))
    }

    /// The absolute tick at which `key` is due.
    pub fn deadline(&self, key: Key) -> Option<u64> {
        self.items.get(key).map(|item| item.deadline)
    }

    /// The current level and bucket of `key`. `None` if its value has left the wheel, or if it is
    /// in no bucket: its deadline is too far away, it is overdue in a [`Linux`](super::Linux) wheel, or a pass that has
    /// not ended has taken it out of its bucket, or has not put it into one yet. A value that was moved to a later tick
    /// may still be in its previous bucket, and is not always found then.
    ///
    /// This is for tests and for inspection. A hashed wheel searches one bucket, and a wheel with
    /// levels searches all of them.
    pub fn placement(&self, key: Key) -> Option<Placement> {
        let deadline = self.deadline(key)?;
        self.structure().placement(deadline, self.items.token(key.index)?)
    }

    /// Expires all values that are due up to and including tick `now`, and returns their number.
    /// `expired` gets each value with its key and its own deadline. It gets the wheel too, and may change it: see
    /// [`pop`](Self::pop). A `now` before the current tick does nothing.
    ///
    /// The values come in the order of ticks, and within a tick in the order of insertion. An
    /// overdue value belongs to the tick that was the current one when it was inserted. Only a
    /// [`Linux`](super::Linux) wheel orders its values by bucket instead. There, the order of
    /// insertion holds for values that were inserted for the same deadline at the same current
    /// tick.
    ///
    /// If `expired` panics, the next call hands out the remaining values first. To stop earlier, use
    /// [`pop`](Self::pop) or [`expire_at_most`](Self::expire_at_most).
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// # let mut wheel = Wheel::hashed(64)?;
    /// for tick in [7, 3, 7] {
    ///     wheel.insert(tick, tick);
    /// }
    /// let mut ticks = Vec::new();
    /// assert_eq!(wheel.expire(10, |_, expired| ticks.push(expired.deadline)), 3);
    /// assert_eq!(ticks, [3, 7, 7]);
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn expire(&mut self, now: u64, mut expired: impl FnMut(&mut Self, Expired<T>)) -> usize {
        let mut count = 0;
        while let Some(value) = self.pop_within(now, &mut { usize::MAX }) {
            count += 1;
            expired(self, value);
        }
        count
    }

    /// Takes out the next value that is due up to and including tick `now`, in the order of
    /// [`expire`](Self::expire). `None` if nothing is due any more: that ends the *pass*.
    ///
    /// Between two calls, the caller may insert, reschedule and remove values. A value that is inserted
    /// or moved to a tick of the pass comes out in the same pass, after the others of its tick. If that
    /// tick has passed already, it comes out in the tick that is being expired. So a callback that always
    /// inserts a value for the current tick never ends the pass.
    ///
    /// An insertion into the pass is O(log n), and in a [`Linux`](super::Linux) wheel so is every insertion
    /// during a pass.
    ///
    /// The caller may also stop before the end, and resume later. A later call first ends the pass that has
    /// begun, up to the `now` of that pass.
    ///
    /// # Examples
    ///
    /// A simulation in which each event causes others:
    ///
    /// ```
    /// use wheelwork::wheel::{Expired, Wheel};
    ///
    /// let mut events = Wheel::hierarchical(64)?;
    /// events.insert(0, "a train leaves");
    /// let mut log = Vec::new();
    /// while let Some(Expired { deadline, value, .. }) = events.pop(100) {
    ///     log.push((deadline, value));
    ///     if value == "a train leaves" {
    ///         events.insert(deadline + 30, "it arrives");
    ///         events.insert(deadline + 60, "a train leaves");
    ///     }
    /// }
    /// assert_eq!(log[1..], [(30, "it arrives"), (60, "a train leaves"), (90, "it arrives")]);
    /// # Ok::<(), wheelwork::wheel::LevelSizeError>(())
    /// ```
    #[inline]
    pub fn pop(&mut self, now: u64) -> Option<Expired<T>> {
        self.pop_within(now, &mut { usize::MAX })
    }

    /// Expires values like [`expire`](Self::expire), but at most about `limit` of them. Returns true if
    /// nothing is due any more, and false if another call must go on. The next tick need not come before that
    /// call.
    ///
    /// The limit counts entries, dead ones included, so it bounds the time of a call. But a call
    /// always reads one bucket as a whole, and in a wheel with levels it also moves one bucket down as a whole.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// let mut wheel = Wheel::hashed(64)?;
    /// for n in 0..250 {
    ///     wheel.insert(3, n);
    /// }
    /// let mut turns = 1;
    /// while !wheel.expire_at_most(3, 100, |_, expired| assert_eq!(expired.deadline, 3)) {
    ///     turns += 1; // the event loop does other work here
    /// }
    /// assert_eq!(turns, 3);
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    #[must_use = "values may still be due"]
    pub fn expire_at_most(
        &mut self,
        now: u64,
        limit: usize,
        mut expired: impl FnMut(&mut Self, Expired<T>),
    ) -> bool {
        let mut budget = limit;
        while let Some(value) = self.pop_within(now, &mut budget) {
            expired(self, value);
        }
        !self.filing.is_passing() && budget > 0
    }

    /// Pops the next due value. Reads at most `budget` entries. An unfinished pass comes first. `None` if
    /// nothing is due up to `now`, which ends the last pass, or if the budget is used up.
    #[inline(always)]
    pub(super) fn pop_within(&mut self, now: u64, budget: &mut usize) -> Option<Expired<T>> {
        while *budget > 0 {
            let Some(due) = self.filing.pop(now) else {
                self.sweep_if_worth_it();
                return None;
            };
            *budget -= 1;
            let ahead = self.filing.filing.agenda.ahead(AHEAD);
            ahead.into_iter().for_each(|token| self.items.prefetch(token.index));
            if let Some(expired) = self.end_if_due(due) {
                return Some(expired);
            }
        }
        None
    }

    /// Takes out the value of a token that has come out, if its entry is live and due. Files it again if it is
    /// due later.
    #[inline]
    fn end_if_due(&mut self, Due { tick, token }: Due) -> Option<Expired<T>> {
        let (key, &Item { deadline, .. }) = self.items.named_by(token)?;
        if deadline > tick {
            self.file_again(deadline, token);
            return None;
        }
        let Item { value, .. } = self.items.remove(key)?;
        Some(Expired { key, deadline, value })
    }

    /// A separate call keeps the loops over due values small.
    #[inline(never)]
    fn file_again(&mut self, deadline: u64, token: Token) {
        self.filing.insert(deadline, token);
    }

    /// The next tick at which the caller should tell the wheel the time. No value expires before
    /// it. It is too early if its value has been removed or moved to a later tick meanwhile, but it is
    /// never too late. Until a pass has ended, it is not after the last tick of that pass. `None` if the wheel is
    /// empty, or if all its values are at tick `u64::MAX`, which never comes.
    pub fn next_expiry(&self) -> Option<u64> {
        if self.is_empty() { None } else { self.filing.next_expiry() }
    }

    /// Takes out all values, ordered by deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// # let mut wheel = Wheel::hashed(64)?;
    /// wheel.insert(70, "later");
    /// wheel.insert(3, "soon");
    /// assert_eq!(wheel.drain(), [(3, "soon"), (70, "later")]);
    /// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
    /// ```
    pub fn drain(&mut self) -> Vec<(u64, T)> {
        let keys: Vec<Key> = self.items.iter().map(|(key, _)| key).collect();
        let items = keys.into_iter().filter_map(|key| self.items.remove(key));
        let mut all: Vec<_> = items.map(|item| (item.deadline, item.value)).collect();
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

    /// The next tick to expire. During a pass, the tick that is being expired.
    pub fn current_tick(&self) -> u64 {
        self.filing.current_tick()
    }
}

impl<T, S: Structure + Default> Default for Wheel<T, S> {
    fn default() -> Self {
        Self::on(S::default())
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

#[cfg(test)]
mod tests;
