//! The search for the earliest live entry, which makes a structure's `next_expiry` exact.
//!
//! A structure does not know that a timeout was cancelled (its entry is *dead*) or pushed back (its
//! entry lies in a tick that is too early). The search asks the owner of the deadlines about each
//! entry. It drops dead entries and refiles those that are due later. An entry that is due beyond the
//! structure's reach is refiled only if it lies in the nearer half of this reach. In the farther half it counts
//! as found. Otherwise each search would move it on by the time that has passed.

use super::token::Due;

/// The state of an entry's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The timeout is live and due in the entry's tick.
    Due,
    /// The timeout is live and due in this later tick.
    Later(u64),
    /// The entry is dead: it belongs to no pending timeout.
    Dead,
}

/// The result of [`Exact::confirm_next`](super::structure::Exact::confirm_next).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLive {
    /// The next timeout, or one that is due beyond the structure's reach.
    At(Due),
    /// No timeout is due up to the last tick of the search.
    Later,
    /// The budget ran out before a live entry was found.
    Unknown,
}

/// A search for the earliest live entry.
#[derive(Debug)]
pub(crate) struct Confirm<F> {
    check: F,
    /// The number of entries that may still be checked.
    budget: usize,
    /// The middle and the last tick of the structure's reach.
    middle: u64,
    reach: u64,
    pub(super) found: Option<Due>,
    /// Entries to refile under a later tick.
    pub(super) later: Vec<Due>,
}

/// Reading this many entries of a bucket counts as one check.
const READ_PER_CHECK: usize = 64;

impl<F: FnMut(Due) -> Standing> Confirm<F> {
    pub(super) fn new(budget: usize, (current, reach): (u64, u64), check: F) -> Self {
        let middle = current.midpoint(reach);
        Self { check, budget, middle, reach, found: None, later: Vec::new() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.found.is_some() || self.budget == 0
    }

    /// Checks an entry. Returns false if the caller must drop it.
    pub(super) fn keeps(&mut self, due: Due) -> bool {
        self.budget -= 1;
        match (self.check)(due) {
            Standing::Later(tick) if tick <= self.reach || due.tick < self.middle => {
                self.later.push(Due { tick, ..due });
            }
            Standing::Due | Standing::Later(_) => self.found = Some(due),
            Standing::Dead => {}
        }
        self.found.is_some()
    }

    /// Charges the budget for `entries` that were read, including those of other ticks.
    pub(super) fn charge(&mut self, entries: usize) {
        self.budget = self.budget.saturating_sub(entries / READ_PER_CHECK);
    }
}
