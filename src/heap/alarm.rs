//! Sleeping and waking: when a producer wakes the worker.
//!
//! Concepts:
//!
//! - A *producer* is any thread that schedules a timeout or pulls one forward.
//! - Before a sleep beyond the next tick, the worker *arms* the alarm: it stores in `latest` the latest
//!   deadline for which a producer must wake it.
//! - To *unpark* the worker is to end its sleep, or its next sleep if it does not sleep now.
//!
//! | `latest` | the worker | a producer with deadline d |
//! |---|---|---|
//! | 0 | is awake, or sleeps only to the next tick | does nothing |
//! | t > 0 | sleeps until one tick after t | if d <= t: swaps in 0; the producer that swapped t out unparks the worker |
//!
//! **No wake-up is lost.** The worker stores t, fences, then checks the earliest deadline of every
//! heap. A producer that lowers this deadline fences, then loads `latest`. A producer that need not
//! lower it relies on the producer that did. Both fences are sequentially consistent, so one of them
//! comes first. If the producer's does, the worker finds the new deadline and does not sleep past its
//! tick. If the worker's does, the producer sees t (or the 0 of another producer, which unparks). Every
//! change of `latest` is a read-modify-write with acquire and release. So the changes form a chain: a
//! load that is ordered after one of them cannot return an older value.
//!
//! The worker's half is in `worker/sleep`. That the queues themselves miss no timeout is shown in `heap`.
//!
//! A task that parks on the worker thread may consume the unpark token. So no argument relies on
//! the token alone. A thread that unparks the worker has first changed a state (a queue, the command to
//! stop, the clock), and the worker checks all of these between storing t and parking.

use crate::base::parker::Parker;
use crate::base::sync::{AtomicU64, Ordering, fence};
use std::time::Duration;

#[derive(Debug)]
#[repr(align(128))] // every producer reads it and few write it, so it has its own cache line
pub(crate) struct Alarm {
    /// The latest deadline for which the worker must be woken; 0 if the alarm is not armed.
    latest: AtomicU64,
    /// The deadline for which a producer last woke the worker.
    request: AtomicU64,
    parker: Parker,
}

/// Whether a producer woke the worker since the alarm was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// No producer woke it.
    No,
    /// A producer woke it for a timeout due at this time. The timeout may have been cancelled since.
    For(u64),
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { latest: AtomicU64::new(0), request: AtomicU64::new(0), parker: Parker::new() }
    }

    /// Wakes the worker if it would sleep beyond `deadline`, or beyond the time at which it should scan a
    /// queue. Producers call it after a fence of `Heap::announce`.
    #[inline]
    pub(crate) fn submitted(&self, deadline: u64) {
        if deadline <= self.latest.load(Ordering::Relaxed) {
            self.wake_for(deadline);
        }
    }

    #[cold]
    fn wake_for(&self, deadline: u64) {
        if self.latest.swap(0, Ordering::AcqRel) != 0 {
            // Released by unpark, acquired by the worker's park. A worker that has not parked may
            // read the previous value. It then wakes up one extra time.
            self.request.store(deadline, Ordering::Relaxed);
            self.parker.unpark();
        }
    }

    /// Wakes the worker for any other reason: a long queue, a wanted scan, sweep or
    /// release, an entry that catches up, a stop, a moved clock.
    pub(crate) fn call(&self) {
        self.parker.unpark();
    }

    /// Announces that the worker will sleep until one tick after `latest`. The worker checks the
    /// heaps afterwards. The fence pairs with the one of `Heap::announce`.
    pub(crate) fn arm(&self, latest: u64) {
        self.latest.swap(latest, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Puts the worker to sleep, for `limit` at most. May return at any time.
    pub(crate) fn sleep(&self, limit: Option<Duration>) {
        self.parker.park(limit);
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn is_armed(&self) -> bool {
        self.latest.load(Ordering::Relaxed) != 0
    }

    /// Withdraws the worker's announcement.
    pub(crate) fn disarm(&self) -> Woken {
        if self.latest.swap(0, Ordering::AcqRel) == 0 {
            Woken::For(self.request.load(Ordering::Relaxed))
        } else {
            Woken::No
        }
    }

    pub(crate) fn parker(&self) -> &Parker {
        &self.parker
    }
}
