//! Sleeping and waking: when a producer wakes the worker. Before a long sleep, the worker publishes the latest deadline
//! for which it must be woken. A producer whose deadline is not later wakes it, unless another already has.
//! `Chunk::want_look` asks for this, so only for a timeout that needs a sooner look at its chunk. `call` wakes the
//! worker for all else: a stop, a sweep, a release, a timeout that is due now, a moved clock.
//!
//! Concepts:
//!
//! - A *producer* is any thread that schedules a timeout or pulls one forward.
//! - Before a sleep beyond the next tick, the worker *arms* the alarm: it counts the arming in `armed`, and stores in
//!   `latest` the latest deadline for which a producer must wake it.
//! - To *unpark* the worker is to end its sleep, or its next sleep if it does not sleep now.
//!
//! | `latest` | the worker | a producer with deadline d |
//! |---|---|---|
//! | 0 | is awake, or sleeps only to the next tick | does nothing |
//! | t > 0 | sleeps until one tick after t | if d <= t, and nobody has rung: unparks the worker, and *rings* afterwards |
//!
//! To *ring* is to store the number of the arming in `rung`. So each arming usually costs one unpark. If a
//! producer is interrupted before it rings, others unpark the worker too.
//!
//! **No wake-up is lost.** The worker stores t, fences, then takes in the pending queue. A producer that
//! pushes an entry fences, then loads `latest`. A producer that need not push one relies on a look that is
//! promised already (see `pending`). Both fences are sequentially consistent, so one of them comes first. If
//! the producer's does, the worker finds the entry and does not sleep past its tick. If the worker's does,
//! the producer sees t, and unparks the worker or finds that somebody has rung.
//!
//! **A producer can rely on a ring.** It loads `latest`, with acquire, and then the number of the arming. So
//! the number that it reads is that of t's arming or a later one. A thread that has rung for that number
//! has loaded it before, and has unparked the worker since. So the wake-up belongs to this arming, or it is
//! still to come. If the worker had used it up before the producer's fence, the producer would not have
//! seen t.
//!
//! Only the worker writes `latest` and `armed`. A producer that is interrupted before it stores `rung` may
//! replace a later number. The next producer then unparks the worker once more.
//!
//! The worker's half is in `worker/sleep`. `pending` shows that the queue itself misses no timeout.
//!
//! A task or a clock that parks on the worker thread may consume the unpark token. So no argument relies on
//! the token alone. A thread that unparks the worker has first changed a state (a queue, the command to
//! stop, the clock), and the worker checks all of these between storing t and parking. In between, it runs no code of
//! the user's.

use crate::base::parker::Parker;
use crate::base::sync::{AtomicU64, Ordering, fence};
use std::time::Duration;

#[cfg(asleep)]
#[path = "../../tests/whole/asleep.rs"]
mod asleep;

#[derive(Debug)]
#[repr(align(128))] // every producer reads it and few write it, so it has its own cache line
pub(crate) struct Alarm {
    /// The latest deadline for which the worker must be woken; 0 if the alarm is not armed.
    latest: AtomicU64,
    /// The number of times that the alarm was armed.
    armed: AtomicU64,
    /// The number of an arming for which a producer has unparked the worker.
    rung: AtomicU64,
    /// The deadline for which a producer last woke the worker, or `NOBODY`.
    request: AtomicU64,
    parker: Parker,
    #[cfg(asleep)]
    pub(crate) asleep: asleep::Asleep,
}

/// No producer woke the worker. No deadline that wakes it is so late.
const NOBODY: u64 = u64::MAX;

/// Whether a producer woke the worker since the alarm was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// No producer woke it.
    No,
    /// A producer woke it for a timeout due at this time. The timeout may have been cancelled since.
    For(u64),
}

#[cfg(test)]
std::thread_local! {
    /// How often this thread has called a worker.
    pub(crate) static CALLS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Alarm {
    pub(crate) fn new() -> Self {
        let [latest, armed, rung] = [0; 3].map(AtomicU64::new);
        Self {
            latest,
            armed,
            rung,
            request: AtomicU64::new(NOBODY),
            parker: Parker::new(),
            #[cfg(asleep)]
            asleep: asleep::Asleep::default(),
        }
    }

    /// Wakes the worker if it would sleep beyond `deadline`. Producers call it after they have pushed an entry, and
    /// fenced.
    #[inline]
    pub(crate) fn ring_for(&self, deadline: u64) {
        // Acquire: pairs with the release of `arm`.
        if deadline <= self.latest.load(Ordering::Acquire) {
            self.ring(deadline);
        }
    }

    #[cold]
    fn ring(&self, deadline: u64) {
        let armed = self.armed.load(Ordering::Relaxed);
        if self.rung.load(Ordering::Acquire) != armed {
            // Released by unpark, acquired by the worker's park. A worker that has not parked may
            // miss it. It then wakes up one extra time.
            self.request.store(deadline, Ordering::Relaxed);
            self.parker.unpark();
            self.rung.store(armed, Ordering::Release);
        }
    }

    /// Wakes the worker for any other reason: a wanted sweep or release, a timeout that is due now, a stop, a
    /// moved clock.
    pub(crate) fn call(&self) {
        #[cfg(test)]
        CALLS.set(CALLS.get() + 1);
        self.parker.unpark();
    }

    /// Producers must wake the worker for deadlines up to `latest`, one tick before its sleep ends. The worker checks the
    /// pending queue afterwards. The fence pairs with the one after the push of an entry.
    pub(crate) fn arm(&self, latest: u64) {
        let armed = self.armed.load(Ordering::Relaxed);
        self.armed.store(armed + 1, Ordering::Relaxed);
        self.latest.store(latest, Ordering::Release);
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

    /// Whether a producer has woken the worker since the last `disarm`.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn was_used(&self) -> bool {
        self.request.load(Ordering::Relaxed) != NOBODY
    }

    /// Producers need not wake the worker any more. Returns whether one has.
    pub(crate) fn disarm(&self) -> Woken {
        self.latest.store(0, Ordering::Relaxed);
        match self.request.swap(NOBODY, Ordering::Relaxed) {
            NOBODY => Woken::No,
            deadline => Woken::For(deadline),
        }
    }

    pub(crate) fn parker(&self) -> &Parker {
        &self.parker
    }
}

#[cfg(all(test, loom))]
mod model;
