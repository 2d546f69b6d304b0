//! Announcing: the producers' half of the pending queue. The head of `pending` has the protocol.

use super::chunk::Chunk;
use super::context::Context;
use crate::base::sync::{Ordering, fence};

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
            self.want_look(deadline);
        }
    }

    /// Makes the worker look at the chunk by the deadline. Wakes it if it would sleep beyond that.
    #[cold]
    #[inline(never)]
    fn want_look(&self, deadline: u64) {
        let Some(context) = self.timer.context() else { return };
        let Context { pending, alarm, .. } = &**context;
        self.promise.want(deadline);
        pending.push(self.id);
        fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
        alarm.submitted(deadline);
    }
}
