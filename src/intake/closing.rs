//! Closing: one word, by which a timer admits nothing more and its slots are emptied. The head of `worker/end`
//! has the protocol.

use super::context::Context;
use super::slot::Phase;
use crate::base::sync::{Ordering, fence};

/// The timer admits nothing more, and its worker ends.
const CLOSED: u8 = 1;

/// Nobody will collect the pending timeouts, so they are cancelled and not returned.
const CANCELS: u8 = 2;

/// A thread has begun to empty the slots.
const EMPTIED: u8 = 4;

impl Context {
    /// Closes the timer. Its pending timeouts will be returned.
    pub(crate) fn close(&self) {
        self.set(CLOSED);
    }

    /// Closes the timer, or has closed it before. Its pending timeouts will be cancelled.
    pub(crate) fn close_and_cancel(&self) {
        self.set(CLOSED | CANCELS);
    }

    pub(super) fn begin_emptying(&self) {
        self.set(EMPTIED);
    }

    /// The fence is that of the closing, or of the emptying thread.
    fn set(&self, bits: u8) {
        self.closing.fetch_or(bits, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn has(&self, bit: u8) -> bool {
        self.closing.load(Ordering::Relaxed) & bit != 0
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.has(CLOSED)
    }

    /// Whether a timeout that goes on may be too late for the emptying.
    pub(crate) fn is_emptied(&self) -> bool {
        self.has(EMPTIED)
    }

    /// How the end of the timer ends its pending timeouts.
    pub(crate) fn end_of_pending(&self) -> Phase {
        if self.has(CANCELS) { Phase::Cancelled } else { Phase::Returned }
    }
}
