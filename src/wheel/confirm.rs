//! The search for the earliest live entry, which makes a structure's `next_expiry` exact.
//!
//! A structure does not know that a timeout was cancelled (its entry is *dead*) or pushed back (its
//! entry lies in a tick that is too early). The search asks the owner of the deadlines about each
//! entry. It drops dead entries and refiles those that are due later.

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
pub(crate) enum Next {
    /// The next timeout.
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
    pub(super) found: Option<Due>,
    /// Entries to refile under a later tick.
    pub(super) later: Vec<Due>,
}

/// Reading this many entries of a bucket counts as one check.
const READ_PER_CHECK: usize = 64;

impl<F: FnMut(Due) -> Standing> Confirm<F> {
    pub(super) fn new(budget: usize, check: F) -> Self {
        Self { check, budget, found: None, later: Vec::new() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.found.is_some() || self.budget == 0
    }

    /// Checks an entry. Returns false if the caller must drop it.
    pub(super) fn keeps(&mut self, due: Due) -> bool {
        self.budget -= 1;
        match (self.check)(due) {
            Standing::Due => self.found = Some(due),
            Standing::Later(tick) => self.later.push(Due { tick, ..due }),
            Standing::Dead => {}
        }
        self.found.is_some()
    }

    /// Charges the budget for `entries` that were read, including those of other ticks.
    pub(super) fn charge(&mut self, entries: usize) {
        self.budget = self.budget.saturating_sub(entries / READ_PER_CHECK);
    }
}
