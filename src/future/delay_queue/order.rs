//! The order in which the values come out.
//!
//! | a value is | and waits |
//! |---|---|
//! | new | in a list, until a poll, a look for the earliest value, or a full list files it |
//! | near: its tick is before the wheel's current one, or there is no wheel | in a set, ordered by deadline |
//! | distant | in the wheel |
//!
//! A value that is removed while it is new costs neither the set nor the wheel anything.
//!
//! A value that is removed, or moved from the wheel to an earlier time, leaves a *dead* token in the list or in the
//! wheel. A near one leaves none. A distant value whose deadline has moved on keeps its entry under the previous tick,
//! and is filed again when that tick comes.
//!
//! Rarely, a dead token has the live one's 16-bit version and passes for it. This is harmless: the value goes where its
//! deadline says.

use super::{DelayKey, Entry};
use crate::time::tick::{NEVER, TickScale};
use crate::wheel::slab::Slab;
use crate::wheel::{Due, Filing, Hierarchical, Token, is_sweep_worth_it};
use std::collections::BTreeSet;

/// A queue of up to this many values is small.
const SMALL: usize = 64;

/// The most tokens in the list of new values.
const MOST_NEW: usize = 64;

/// The buckets of a level of the wheel, which then has 2 KiB. Three levels reach 32,767 ticks.
const BUCKETS: usize = 32;

/// Up to this many dead entries are never worth a sweep. Most queues have as many buckets.
const DEAD_ALLOWED: usize = 3 * BUCKETS;

pub(super) struct Order {
    scale: TickScale,
    /// Tokens of the new values, and dead ones.
    new: Vec<Token>,
    /// The near values by deadline, then by insertion.
    near: BTreeSet<(u64, DelayKey)>,
    /// `None` if the queue has been small since it was empty.
    distant: Option<Filing<Hierarchical>>,
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
    pub(super) fn add(&mut self, token: Token) {
        self.new.push(token);
    }

    pub(super) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Whether a value of this deadline is distant, unless it is new.
    #[inline]
    pub(super) fn is_distant(&self, deadline: u64) -> bool {
        let tick = self.scale.tick_not_before(deadline);
        self.distant.as_ref().is_some_and(|wheel| tick >= wheel.current_tick())
    }

    /// Moves the new values to the near and the distant ones. `now` is a time that the clock has reached.
    #[cold]
    pub(super) fn file_new<T>(&mut self, values: &Slab<Entry<T>>, now: impl FnOnce() -> u64) {
        if values.used() > SMALL && self.distant.is_none() {
            self.make_wheel(values, now());
        }
        let Self { scale, new, near, distant } = self;
        for token in new.drain(..) {
            let Some((slot, entry)) = values.named_by(token) else { continue };
            let tick = scale.tick_not_before(entry.deadline);
            match distant {
                Some(wheel) if tick >= wheel.current_tick() => wheel.insert(tick, token),
                _ => _ = near.insert((entry.deadline, entry.key(slot))),
            }
        }
    }

    /// Makes the wheel, and makes the near values new. All values up to the current tick stay near.
    /// Without memory, all do.
    fn make_wheel<T>(&mut self, values: &Slab<Entry<T>>, now: u64) {
        self.distant = Hierarchical::with_buckets(BUCKETS).ok().map(Filing::new);
        self.gather(values, now);
        let near = std::mem::take(&mut self.near);
        self.new.extend(near.into_iter().filter_map(|(_, key)| values.token(key.index)));
    }

    /// Removes a value of this deadline if it is near. Otherwise its token is in the list or in the wheel.
    #[inline]
    pub(super) fn remove_near(&mut self, key: DelayKey, deadline: u64) -> bool {
        !self.near.is_empty() && !self.is_distant(deadline) && self.near.remove(&(deadline, key))
    }

    /// Sweeps the dead entries out of the wheel if that is worth its cost. Called when one may have died.
    #[inline]
    pub(super) fn sweep_if_worth_it<T>(&mut self, values: &Slab<Entry<T>>) {
        if let Some(wheel) = &mut self.distant {
            if is_sweep_worth_it(wheel.entries(), values.used(), DEAD_ALLOWED) {
                wheel.sweep(usize::MAX, |token| values.named_by(token).is_some());
            }
        }
    }

    /// Moves the values up to the tick of `time` from the wheel to the near ones.
    pub(super) fn gather<T>(&mut self, values: &Slab<Entry<T>>, time: u64) {
        let Self { scale, near, distant: Some(wheel), .. } = self else { return };
        let tick = scale.tick_not_before(time);
        while let Some(Due { token, .. }) = wheel.pop(tick) {
            let Some((slot, entry)) = values.named_by(token) else { continue };
            let later = scale.tick_not_before(entry.deadline);
            if later > tick {
                wheel.insert_in_pass(later, token, tick);
            } else {
                near.insert((entry.deadline, entry.key(slot)));
            }
        }
    }

    /// Makes the first value near. No value may be new.
    pub(super) fn find_first<T>(&mut self, values: &Slab<Entry<T>>) {
        while let Some(tick) = self.next_tick() {
            // A value of that tick is due after the start of the tick before.
            let bound = self.scale.start_of(tick.saturating_sub(1));
            if self.near.first().is_some_and(|&(deadline, _)| deadline <= bound) {
                return;
            }
            self.gather(values, self.scale.start_of(tick));
        }
    }

    /// A tick before which no distant value is due.
    fn next_tick(&self) -> Option<u64> {
        self.distant.as_ref().and_then(Filing::next_expiry)
    }

    /// The first near value.
    pub(super) fn first(&self) -> Option<DelayKey> {
        self.near.first().map(|&(_, key)| key)
    }

    /// Takes out the first near value, if it is due by `now`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<DelayKey> {
        let &(_, key) = self.near.first().filter(|&&(deadline, _)| deadline <= now)?;
        self.near.pop_first();
        Some(key)
    }

    /// A time before which no value is due. It is exact if the first value is near. No value may be new.
    pub(super) fn earliest(&self) -> u64 {
        debug_assert!(self.new.is_empty());
        let near = self.near.first().map(|&(deadline, _)| deadline);
        let distant = self.next_tick().map(|tick| self.scale.start_of(tick));
        near.into_iter().chain(distant).min().unwrap_or(NEVER)
    }

    /// Forgets all values, and frees the wheel.
    pub(super) fn clear(&mut self) {
        self.new.clear();
        self.near.clear();
        self.distant = None;
    }
}
