//! Announcing: the producers' half of the pending queue. The head of `pending` has the protocol.

use super::chunk::Chunk;
use super::pending::Entry;
use crate::base::sync::{Ordering, fence};

impl<P> Chunk<P> {
    /// Announces a slot that the calling thread has armed, as the owner of the chunk.
    #[inline]
    pub(crate) fn announce_new(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        if self.promise.lower_announced(deadline) {
            self.push_entry(deadline);
        }
    }

    /// Announces a slot that has become New in another way, or whose deadline was moved to a sooner time.
    /// Any thread may call it.
    pub(crate) fn announce_moved(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        if deadline < self.promise.look_by() {
            self.push_entry(deadline);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_entry(&self, deadline: u64) {
        let (pending, alarm) = (&self.context.pending, &self.context.alarm);
        let is_long = pending.push(Entry { look_by: deadline, chunk: self.id });
        fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
        alarm.submitted(deadline);
        if is_long {
            alarm.call();
        }
    }
}
