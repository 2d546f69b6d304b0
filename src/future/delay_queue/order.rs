//! The order in which the values come out: the near ones by deadline, the distant ones in the wheel.

use super::DelayKey;
use super::distant::Distant;
use super::entry::Entry;
use crate::base::slab::Slab;
use crate::time::tick::{NEVER, TickScale};
use std::collections::BTreeSet;

/// A queue of up to this many values is small.
const SMALL: usize = 64;

pub(super) struct Order {
    scale: TickScale,
    /// The near values by deadline, then by insertion.
    near: BTreeSet<(u64, DelayKey)>,
    /// `None` if the queue has been small since it was empty.
    distant: Option<Distant>,
}

impl Order {
    /// No value. Allocates nothing.
    pub(super) fn new(scale: TickScale) -> Self {
        Self { scale, near: BTreeSet::new(), distant: None }
    }

    /// Whether the next insertion into a queue of `len` values should make the wheel.
    #[inline]
    pub(super) fn wants_wheel(&self, len: usize) -> bool {
        len >= SMALL && self.distant.is_none()
    }

    /// Makes the wheel, if memory is not refused. All values up to the tick of `now` must be near.
    #[cold]
    pub(super) fn make_wheel(&mut self, now: u64) {
        self.distant = Distant::starting_at(self.scale.tick_not_before(now));
    }

    /// Adds a value to the near or the distant ones, in a queue of `len` values.
    #[inline]
    pub(super) fn add<T>(&mut self, entry: &mut Entry<T>, index: u32, deadline: u64, len: usize) {
        entry.deadline = deadline;
        if let Some(distant) = self.distant.as_mut().filter(|_| len > SMALL) {
            let tick = self.scale.tick_not_before(deadline);
            if distant.accepts(tick) {
                return distant.file(tick, entry.new_filing(index));
            }
        }
        entry.is_distant = false;
        self.near.insert((deadline, entry.key(index)));
    }

    /// Undoes `add`. The value must have left its slot, or be about to be added again.
    #[inline]
    pub(super) fn remove<T>(
        &mut self,
        values: &Slab<Entry<T>>,
        key: DelayKey,
        (deadline, is_distant): (u64, bool),
    ) {
        if !is_distant {
            self.near.remove(&(deadline, key));
        } else if let Some(distant) = &mut self.distant {
            distant.bury(values);
        }
    }

    /// Moves the values up to the tick of `time` from the wheel to the near ones.
    pub(super) fn gather<T>(&mut self, values: &mut Slab<Entry<T>>, time: u64) {
        let Self { scale, near, distant: Some(distant) } = self else { return };
        let tick = scale.tick_not_before(time);
        distant.advance(tick, |token, dead| {
            let entry = values.get_mut(token.index).filter(|entry| entry.is_named_by(token));
            let Some(entry) = entry else {
                *dead = dead.saturating_sub(1);
                return None;
            };
            let later = scale.tick_not_before(entry.deadline);
            if later > tick {
                return Some(later);
            }
            entry.is_distant = false;
            near.insert((entry.deadline, entry.key(token.index)));
            None
        });
    }

    /// Takes out the first near value, if it is due by `present`.
    pub(super) fn pop_due(&mut self, present: u64) -> Option<DelayKey> {
        let &(_, key) = self.near.first().filter(|&&(deadline, _)| deadline <= present)?;
        self.near.pop_first();
        Some(key)
    }

    /// A time before which no value is due. It is exact if the first value is near.
    pub(super) fn earliest(&self) -> u64 {
        let near = self.near.first().map(|&(deadline, _)| deadline);
        let tick = self.distant.as_ref().and_then(Distant::next_tick);
        let distant = tick.map(|tick| self.scale.start_of(tick));
        near.into_iter().chain(distant).min().unwrap_or(NEVER)
    }

    /// Forgets all values, and frees the wheel.
    pub(super) fn clear(&mut self) {
        self.near.clear();
        self.distant = None;
    }
}
