//! Catching up: timeouts that run at once, without a look and without a wait for the next tick: missed runs
//! that an executor has asked for, and internal timeouts of this tick. (A missed run that is asked for on the
//! worker waits in `Worker::missed`.) If the tick ends first, the others run in the next pass.
//!
//! Such an entry does not go through the pending queue, but through `catching_up`. The thread that pushes it
//! there wakes the worker afterwards. The worker checks the
//! queue between arming the alarm and its sleep. So it finds the entry, or its sleep ends immediately.

use super::shared::Shared;
use crate::base::sync::{Ordering, fence};
use crate::wheel::Token;

/// An entry that catches up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchUp {
    pub(crate) token: Token,
    pub(crate) deadline: u64,
}

impl<T> Shared<T> {
    /// Makes an entry catch up. The fence is step 2 of a producer while its timer is closed (see `worker/end`).
    pub(crate) fn catch_up(&self, entry: CatchUp) {
        self.catching_up.push((entry.token, entry.deadline));
        fence(Ordering::SeqCst);
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// Takes the next entry that catches up. Only the worker calls it.
    #[inline]
    pub(crate) fn next_catching_up(&self) -> Option<CatchUp> {
        self.catching_up.pop().map(|(token, deadline)| CatchUp { token, deadline })
    }

    #[inline]
    pub(crate) fn is_catching_up(&self) -> bool {
        !self.catching_up.is_empty()
    }

    /// The number of entries that catch up.
    pub(crate) fn catching_up(&self) -> usize {
        self.catching_up.len()
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
