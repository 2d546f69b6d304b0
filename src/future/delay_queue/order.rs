//! The order in which the values come out.
//!
//! | a value is | and waits |
//! |---|---|
//! | new | in a list, until the next poll or until the list is full |
//! | near | in a set, ordered by deadline |
//! | distant | in the wheel |
//!
//! A value that is removed while it is new, costs neither the set nor the wheel anything.

use super::DelayKey;
use super::distant::Distant;
use super::entry::{Entry, Place};
use crate::time::tick::{NEVER, TickScale};
use crate::wheel::slab::Slab;
use crate::wheel::{Standing, Token};
use std::collections::BTreeSet;

/// A queue of up to this many values is small.
const SMALL: usize = 64;

/// The most tokens in the list of new values.
const MOST_NEW: usize = 64;

pub(super) struct Order {
    scale: TickScale,
    /// Tokens of the new values, and dead ones.
    new: Vec<Token>,
    /// The near values by deadline, then by insertion.
    near: BTreeSet<(u64, DelayKey)>,
    /// `None` if the queue has been small since it was empty.
    distant: Option<Distant>,
}

impl Order {
    /// No value. Allocates nothing.
    pub(super) fn new(scale: TickScale) -> Self {
        Self { scale, new: Vec::new(), near: BTreeSet::new(), distant: None }
    }

    /// Whether the list of new values has no room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.new.len() >= MOST_NEW
    }

    /// Adds a value to the new ones. The caller files these first if the list is full.
    #[inline]
    pub(super) fn add<T>(&mut self, entry: &mut Entry<T>, index: u32, deadline: u64) {
        entry.deadline = deadline;
        self.new.push(entry.new_filing(index));
    }

    /// Moves the new values to the near and the distant ones. `now` is a time that the clock has reached.
    #[cold]
    pub(super) fn file_new<T>(&mut self, values: &mut Slab<Entry<T>>, now: impl FnOnce() -> u64) {
        let is_large = values.used() > SMALL;
        if is_large && self.distant.is_none() {
            // All values up to the tick of the present stay near. Without memory, all do.
            self.distant = Distant::starting_at(self.scale.tick_not_before(now()));
        }
        let Self { scale, new, near, distant } = self;
        let mut distant = distant.as_mut().filter(|_| is_large);
        for token in new.drain(..) {
            let entry = values.get_mut(token.index).filter(|entry| entry.is_named_by(token));
            let Some(entry) = entry.filter(|entry| entry.place == Place::New) else { continue };
            let tick = scale.tick_not_before(entry.deadline);
            match &mut distant {
                Some(distant) if distant.accepts(tick) => {
                    entry.place = Place::Distant;
                    distant.file(tick, token);
                }
                _ => {
                    entry.place = Place::Near;
                    near.insert((entry.deadline, entry.key(token.index)));
                }
            }
        }
    }

    pub(super) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Undoes `add`, for a value of this deadline and place. The value must have left its slot, or be about
    /// to be added again.
    #[inline]
    pub(super) fn remove<T>(
        &mut self,
        values: &Slab<Entry<T>>,
        key: DelayKey,
        (deadline, place): (u64, Place),
    ) {
        match (place, &mut self.distant) {
            (Place::Near, _) => _ = self.near.remove(&(deadline, key)),
            (Place::Distant, Some(distant)) => distant.sweep_if_worth_it(values),
            _ => {} // its token in the list is dead
        }
    }

    /// Moves the values up to the tick of `time` from the wheel to the near ones.
    pub(super) fn gather<T>(&mut self, values: &mut Slab<Entry<T>>, time: u64) {
        let Self { scale, near, distant: Some(distant), .. } = self else { return };
        let tick = scale.tick_not_before(time);
        distant.advance(tick, |token| {
            let entry = values.get_mut(token.index).filter(|entry| entry.is_named_by(token));
            let Some(entry) = entry else { return Standing::Dead };
            let later = scale.tick_not_before(entry.deadline);
            if later > tick {
                return Standing::Later(later);
            }
            entry.place = Place::Near;
            near.insert((entry.deadline, entry.key(token.index)));
            Standing::Due
        });
    }

    /// Makes the first value near. No value may be new.
    pub(super) fn find_first<T>(&mut self, values: &mut Slab<Entry<T>>) {
        while let Some(tick) = self.distant.as_ref().and_then(Distant::next_tick) {
            // A value of that tick is due after the start of the tick before.
            let bound = self.scale.start_of(tick.saturating_sub(1));
            if self.near.first().is_some_and(|&(deadline, _)| deadline <= bound) {
                return;
            }
            self.gather(values, self.scale.start_of(tick));
        }
    }

    /// The first near value.
    pub(super) fn first(&self) -> Option<DelayKey> {
        self.near.first().map(|&(_, key)| key)
    }

    /// Takes out the first near value, if it is due by `present`.
    pub(super) fn pop_due(&mut self, present: u64) -> Option<DelayKey> {
        let &(_, key) = self.near.first().filter(|&&(deadline, _)| deadline <= present)?;
        self.near.pop_first();
        Some(key)
    }

    /// A time before which no value is due. It is exact if the first value is near. No value may be new.
    pub(super) fn earliest(&self) -> u64 {
        debug_assert!(self.new.is_empty());
        let near = self.near.first().map(|&(deadline, _)| deadline);
        let tick = self.distant.as_ref().and_then(Distant::next_tick);
        let distant = tick.map(|tick| self.scale.start_of(tick));
        near.into_iter().chain(distant).min().unwrap_or(NEVER)
    }

    /// Forgets all values, and frees the wheel.
    pub(super) fn clear(&mut self) {
        self.new.clear();
        self.near.clear();
        self.distant = None;
    }
}
