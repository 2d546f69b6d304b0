//! The last activity of a connection: the words that its handle writes and a check reads.
//!
//! A *touch* stores the time of a read, of a write, or of both. It is one to three stores, and does not involve the
//! timer: a later check reads the time, and plans the next check from it. A *pause* suspends the watching until it is
//! resumed. The word `pauses` has these states:
//!
//! | `pauses` | state | transitions |
//! |---|---|---|
//! | 0 | watched | pause -> 1; the handle is dropped during the callback -> `ABANDONED` |
//! | n > 0 | paused n times | pause -> n + 1; resume: touch, then -> n - 1; the handle is dropped during the callback -> `ABANDONED` |
//! | `ABANDONED` | the handle was dropped while the callback has the connection | begin -> 0, for the seat's next user |
//!
//! `ABANDONED` counts as paused, so a report that is queued is not delivered. It does not free the seat: `row` does.
//!
//! **The event or the touch wins.** A touch is a relaxed store and takes no lock. This suffices. If
//! the touch happens before the check, by any synchronisation that the program has, the check's
//! load sees this touch or a later one, because a load never goes back behind a store that happens before it
//! (coherence). So there is no event. If neither happens before the other, they race, and either may win. These stores
//! publish no other data. If two threads touch, a thread that was interrupted after it read the clock may store its
//! earlier time over the later one. `Watch` says so: to keep the later time would take a read-modify-write per touch.
//!
//! **A pause covers its silence.** `resume` stores the time, and then takes its pause back with
//! release. A check loads `pauses` with acquire, and then loads the times. So if a check sees that
//! a connection is no longer paused, it also sees the touch of the resume, and does not report a
//! silence that the pause has covered. `activity/model` checks this.

use super::kind::IdleKind;
use super::policy::IdlePolicy;
use super::timestamp::IntoTimestamp;
use crate::base::sync::{Arc, AtomicU64, AtomicUsize, Ordering};
use crate::time::tick::NEVER;
use std::sync::OnceLock;
use std::time::Instant;

/// The value of `pauses` if the handle was dropped while the callback has the connection.
const ABANDONED: usize = usize::MAX;

/// The number of connections in one block.
pub(super) const BLOCK: usize = 64;

/// The last activity of one connection. Times are nanoseconds since the timer's origin.
pub(super) struct Activity {
    read: AtomicU64,
    wrote: AtomicU64,
    /// The number of pauses that have not been resumed, or `ABANDONED`.
    pauses: AtomicUsize,
}

/// The activity of a connection as a check sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) paused: bool,
    read: u64,
    wrote: u64,
    /// `NEVER` if no write waits.
    write_waits_since: u64,
}

impl Reading {
    /// A connection that is not paused: its last read and write, and since when a write waits.
    #[cfg(test)]
    pub(super) fn of([read, wrote]: [u64; 2], write_waits_since: Option<u64>) -> Self {
        let write_waits_since = write_waits_since.unwrap_or(NEVER);
        Self { paused: false, read, wrote, write_waits_since }
    }

    #[cfg(test)]
    pub(super) fn in_a_pause(self) -> Self {
        Self { paused: true, ..self }
    }

    /// The last read or write.
    pub(super) fn last(&self) -> u64 {
        self.read.max(self.wrote)
    }

    /// The last activity against this kind of silence. `NEVER` if it goes on.
    pub(super) fn since(&self, kind: IdleKind) -> u64 {
        match kind {
            IdleKind::Reader => self.read,
            IdleKind::Writer => self.wrote,
            IdleKind::WaitingWrite => self.write_waits_since,
            IdleKind::Both | IdleKind::Age | IdleKind::TimerStopped => self.last(),
        }
    }

    /// The begin of a silence of this kind. `None` if there is none, or a pause.
    pub(super) fn silent_since(&self, kind: IdleKind) -> Option<u64> {
        Some(self.since(kind)).filter(|&since| !self.paused && since != NEVER)
    }

    /// Whether there was no activity of this kind after `since`, and there is no pause.
    pub(super) fn is_silent_since(&self, kind: IdleKind, since: u64) -> bool {
        self.silent_since(kind).is_some_and(|last| last <= since)
    }
}

impl Activity {
    fn new() -> Self {
        Self { read: AtomicU64::new(0), wrote: AtomicU64::new(0), pauses: AtomicUsize::new(0) }
    }

    /// Resets the words for the seat's next connection. Relaxed: no other thread uses the seat now,
    /// and the shard's lock orders this before later checks.
    pub(super) fn begin(&self, now: u64) {
        self.touch(now);
        self.pauses.store(0, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn record_read(&self, now: u64) {
        self.read.store(now, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn record_write(&self, now: u64) {
        self.wrote.store(now, Ordering::Relaxed);
    }

    /// Notes progress against this kind of silence, unless a later one was recorded.
    pub(super) fn progress(&self, kind: IdleKind, at: u64) {
        match kind {
            IdleKind::Reader => self.read.fetch_max(at, Ordering::Relaxed),
            _ => self.wrote.fetch_max(at, Ordering::Relaxed),
        };
    }

    #[inline]
    pub(super) fn touch(&self, now: u64) {
        self.record_read(now);
        self.record_write(now);
    }

    /// Adds a pause. Relaxed: a check that does not see it yet has won the race.
    pub(super) fn pause(&self) {
        self.pauses.fetch_add(1, Ordering::Relaxed);
    }

    /// Touches the connection and takes one pause back. Returns false if it was not paused.
    pub(super) fn resume(&self, now: u64) -> bool {
        // Relaxed: this is only a hint; the `fetch_update` below decides.
        if self.pauses.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Another thread may have recorded a later time.
        self.progress(IdleKind::Reader, now);
        self.progress(IdleKind::Writer, now);
        let less = |pauses: usize| pauses.checked_sub(1);
        // Release: pairs with the acquire in `reading`.
        self.pauses.fetch_update(Ordering::Release, Ordering::Relaxed, less).is_ok()
    }

    /// Notes that the handle was dropped while its connection is being reported. Relaxed, like a
    /// pause.
    pub(super) fn abandon(&self) {
        self.pauses.store(ABANDONED, Ordering::Relaxed);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.pauses.load(Ordering::Relaxed) == ABANDONED
    }

    /// `waiting`: when a write began to wait; `NEVER` if none waits.
    fn reading(&self, waiting: u64) -> Reading {
        // Acquire: pairs with the release in `resume`. It must come before the loads of the times.
        let paused = self.pauses.load(Ordering::Acquire) > 0;
        let read = self.read.load(Ordering::Relaxed);
        let wrote = self.wrote.load(Ordering::Relaxed);
        let write_waits_since = waiting.max(wrote);
        Reading { paused, read, wrote, write_waits_since }
    }
}

/// The shard of a connection, as its handle uses it.
pub(super) trait Watcher: Send + Sync {
    /// The current time, in nanoseconds since the timer's origin.
    fn now(&self) -> u64;
    fn leave(&self, seat: u32);
    fn set_policy(&self, seat: u32, policy: IdlePolicy);
}

/// The activities of neighbouring seats, and the shard that watches them.
pub(super) struct ActivityBlock {
    pub(super) watcher: Arc<dyn Watcher>,
    /// The timer's origin.
    origin: Instant,
    activities: [Activity; BLOCK],
    /// When a write began to wait; `NEVER` if none waits. Only for blocks with a connection whose policy asks for it.
    waiting: OnceLock<Box<[AtomicU64; BLOCK]>>,
}

impl ActivityBlock {
    pub(super) fn new(watcher: Arc<dyn Watcher>, origin: Instant) -> Self {
        let activities = std::array::from_fn(|_| Activity::new());
        Self { watcher, origin, activities, waiting: OnceLock::new() }
    }

    #[inline]
    pub(super) fn activity(&self, seat: u32) -> &Activity {
        &self.activities[seat as usize % BLOCK]
    }

    /// Resets the words of a seat for its next connection.
    pub(super) fn begin(&self, seat: u32, now: u64) {
        self.activity(seat).begin(now);
        self.end_waiting_write(seat);
    }

    /// From now on it is recorded when a write begins to wait.
    pub(super) fn watch_waiting_writes(&self) {
        self.waiting.get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU64::new(NEVER))));
    }

    /// A write has moved bytes.
    #[inline]
    pub(super) fn record_write(&self, seat: u32, now: u64) {
        self.activity(seat).record_write(now);
        self.end_waiting_write(seat);
    }

    /// A write waits from now on, unless one does.
    pub(super) fn record_waiting_write(&self, seat: u32, now: impl FnOnce() -> u64) {
        let Some(waiting) = self.waiting_of(seat) else { return };
        if waiting.load(Ordering::Relaxed) == NEVER {
            waiting.store(now(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn end_waiting_write(&self, seat: u32) {
        if let Some(waiting) = self.waiting_of(seat) {
            waiting.store(NEVER, Ordering::Relaxed);
        }
    }

    #[inline]
    fn waiting_of(&self, seat: u32) -> Option<&AtomicU64> {
        self.waiting.get().map(|waiting| &waiting[seat as usize % BLOCK])
    }

    pub(super) fn reading(&self, seat: u32) -> Reading {
        let waiting = self.waiting_of(seat).map_or(NEVER, |since| since.load(Ordering::Relaxed));
        self.activity(seat).reading(waiting)
    }

    #[inline]
    pub(super) fn nanos_at(&self, at: impl IntoTimestamp) -> u64 {
        at.timestamp(self.origin).nanos()
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.watcher.now()
    }
}

/// A watcher for tests whose handles never call it.
#[cfg(test)]
pub(super) struct NoWatcher;

#[cfg(test)]
impl Watcher for NoWatcher {
    fn now(&self) -> u64 {
        0
    }
    fn leave(&self, _seat: u32) {}
    fn set_policy(&self, _seat: u32, _policy: IdlePolicy) {}
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod model;
