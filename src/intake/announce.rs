//! Announcing: the producers' half of the pending queue. The head of `pending` has the protocol.

use super::chunk::Chunk;
use super::pending::Entry;
use crate::base::sync::{Ordering, fence};
use crate::time::tick::NEVER;

impl<P> Chunk<P> {
    /// Announces a slot that the calling thread has armed, as the owner of the chunk.
    #[inline]
    pub(crate) fn announce_new(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        if self.promise.lower_announced(deadline) {
            self.want_look(deadline);
        }
    }

    /// Announces a slot that has become New in another way, or whose deadline was moved to a sooner time.
    /// Any thread may call it.
    pub(crate) fn announce_moved(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        if deadline < self.promise.look_by() {
            self.push_entry(deadline, deadline);
        }
    }

    #[cold]
    #[inline(never)]
    fn want_look(&self, deadline: u64) {
        if self.promise.want(deadline) {
            self.push_entry(NEVER, deadline);
        } else {
            self.wake_for(deadline);
        }
    }

    fn push_entry(&self, look_by: u64, deadline: u64) {
        if self.context.pending.push(Entry { look_by, chunk: self.id }) {
            self.context.alarm.call();
        }
        self.wake_for(deadline);
    }

    /// Wakes the worker if it would sleep beyond the deadline.
    fn wake_for(&self, deadline: u64) {
        fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
        self.context.alarm.submitted(deadline);
    }
}
