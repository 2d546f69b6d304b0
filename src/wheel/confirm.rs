//! The search for the earliest entry that stands.

use super::token::Due;

/// Whether an entry still stands for a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Yes, and that is due in the tick of the entry.
    Due,
    /// Yes, but that is due in this later tick.
    Later(u64),
    /// No.
    Dead,
}

/// What [`Exact::confirm_next`](super::structure::Exact::confirm_next) has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This comes next.
    At(Due),
    /// Nothing comes up to the last tick that was looked at.
    Later,
    /// The budget ran out before an entry was found that stands.
    Unknown,
}

/// A search for the earliest entry that stands.
#[derive(Debug)]
pub(crate) struct Confirm<F> {
    check: F,
    /// Looks that are left.
    budget: usize,
    pub(super) found: Option<Due>,
    /// Entries that are to be filed again.
    pub(super) later: Vec<Due>,
}

/// Entries that are passed over at the price of one look.
const PASSED_PER_LOOK: usize = 64;

impl<F: FnMut(Due) -> Standing> Confirm<F> {
    pub(super) fn new(budget: usize, check: F) -> Self {
        Self { check, budget, found: None, later: Vec::new() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.found.is_some() || self.budget == 0
    }

    /// Looks at an entry; false if it is to be dropped.
    pub(super) fn keeps(&mut self, due: Due) -> bool {
        self.budget -= 1;
        match (self.check)(due) {
            Standing::Due => self.found = Some(due),
            Standing::Later(tick) => self.later.push(Due { tick, ..due }),
            Standing::Dead => {}
        }
        self.found.is_some()
    }

    /// So many entries were read, whether they were of the tick or not.
    pub(super) fn has_passed(&mut self, entries: usize) {
        self.budget = self.budget.saturating_sub(entries / PASSED_PER_LOOK);
    }
}
