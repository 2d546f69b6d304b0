//! A mark on something that waits in a queue, so that other threads need not queue it again.
//!
//! A thread queues the thing first and marks it afterwards. So a thread that finds the mark can rely on
//! it, even if the thread that sets it is interrupted at any point. Two threads that queue the thing at
//! once leave it in the queue twice, which costs the worker a second look.
//!
//! | value | means | changed by |
//! |---|---|---|
//! | even | not marked | a thread that has queued the thing: plus 1, if the value is still the one that it saw before it queued the thing |
//! | odd | marked: the thing is in the queue, or the worker has just taken it out | the worker, when it has taken the thing out: to the next even number |
//!
//! The worker also increases an even value. So a thread cannot set the mark for an entry that the worker
//! has already taken out. (The value wraps after 2^31 changes. A thread would have to be interrupted for
//! exactly that many.)

use crate::base::sync::{AtomicU32, Ordering};

#[derive(Debug)]
pub(super) struct Mark(AtomicU32);

/// The value of a mark at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen(u32);

impl Seen {
    #[inline]
    pub(super) fn is_set(self) -> bool {
        self.0 % 2 == 1
    }
}

impl Mark {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Acquire: pairs with the release of `set`, so a thread that finds the mark also finds the queue with
    /// the thing.
    #[inline]
    pub(super) fn load(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Sets the mark. The caller has queued the thing since it has loaded `seen`.
    pub(super) fn set(&self, Seen(seen): Seen) {
        let _ = self.0.compare_exchange(seen, seen | 1, Ordering::Release, Ordering::Relaxed);
    }

    /// Removes the mark. Only the worker calls it. Ordered by the fence that follows at the caller.
    pub(super) fn clear(&self) {
        let next_even = |value: u32| Some((value | 1).wrapping_add(1));
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next_even);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn rule_02_a_mark_is_not_set_for_an_entry_that_was_taken_out() {
        let mark = Mark::new();
        let before = mark.load();
        mark.clear(); // the worker has taken the entry out before its thread sets the mark
        mark.set(before);
        assert!(!mark.load().is_set());
        mark.set(mark.load());
        assert!(mark.load().is_set());
        mark.set(before);
        mark.set(mark.load());
        assert!(mark.load().is_set());
        mark.clear();
        assert!(!mark.load().is_set());
    }

    #[test]
    fn a_mark_wraps() {
        let mark = Mark(AtomicU32::new(u32::MAX));
        assert!(mark.load().is_set());
        mark.clear();
        assert!(!mark.load().is_set());
    }
}
