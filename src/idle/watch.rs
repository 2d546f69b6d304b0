//! `Watch`, the handle of a watched connection.

use super::activity::{Activity, Reading};
use super::event::Seat;
#[cfg(any(feature = "tokio", feature = "futures-io"))]
use super::kind::IdleKind;
use super::policy::IdlePolicy;
use super::timestamp::IntoTimestamp;
use crate::base::catch_panic;
use crate::base::logging::warning;
use std::fmt;
use std::time::Duration;

/// The handle of a watched connection. Record every read and write in it. Dropping it stops watching.
///
/// `record_read`, `record_write` and `touch` take no lock and leave the wheel alone. Each is a clock
/// read, and one to three relaxed stores into the connection's own memory. The `_at` forms save the
/// clock read: an event loop takes the time once, when its poll returns
/// ([`IdleTimeouts::now`](super::IdleTimeouts::now)). `watch`, `set_policy` and the drop take a
/// lock for a short time.
///
/// A touch that happens before the check suppresses the event. If it races with the check, either
/// may win. Of several touches the last one counts, even if it was given an earlier time than the one
/// before; the report may then be late by the difference.
///
/// A reader and a writer can share it by reference or in an [`Arc`](std::sync::Arc). If two threads record reads, or
/// both record writes, and one is interrupted between its reading of the clock and its store, a report may be early
/// by the time of that interruption.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
/// let watch = idle.watch(7, &IdlePolicy::new().reader(Duration::from_secs(60)))?;
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(watch.silent_for(), Duration::from_secs(10));
/// watch.record_read(); // bytes have come
/// assert_eq!(watch.silent_for(), Duration::ZERO);
/// drop(watch); // the connection is gone
/// assert_eq!(idle.watched(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the handle stops watching"]
pub struct Watch(Seat);

impl Watch {
    pub(super) fn new(seat: Seat) -> Self {
        Self(seat)
    }

    /// Records that bytes were read.
    #[inline]
    pub fn record_read(&self) {
        self.activity().record_read(self.0.block.now());
    }

    /// Records that bytes were written. Call it after every write that made progress, so that a slow
    /// peer does not count as idle while the system takes bytes for it. Only [`Outgoing`](super::Outgoing) shows what
    /// the peer takes from the system while a write waits.
    #[inline]
    pub fn record_write(&self) {
        self.0.block.record_write(self.0.number, self.0.block.now());
    }

    /// Records that a write waits, for [`IdlePolicy::waiting_write`]: the socket took no bytes. Call it when a write
    /// would block. The wait ends with the next `record_write` or `touch`, so call that even if the write is given up.
    /// Costs a load if no policy asks for it, or if a write waits already.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// let seconds = Duration::from_secs;
    /// let watch = idle.watch(7, &IdlePolicy::new().waiting_write(seconds(10)))?;
    /// clock.advance(seconds(60)); // nothing to write
    /// watch.record_waiting_write(); // the socket is full
    /// clock.advance(seconds(9));
    /// watch.record_write(); // it took some bytes
    /// watch.record_waiting_write();
    /// clock.advance(seconds(9));
    /// assert_eq!(idle.watched(), 1);
    /// clock.advance(seconds(1));
    /// assert_eq!(idle.watched(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn record_waiting_write(&self) {
        self.0.block.record_waiting_write(self.0.number, || self.0.block.now());
    }

    /// No write waits any more, though none has moved bytes.
    #[cfg(any(feature = "tokio", feature = "futures-io"))]
    pub(super) fn end_waiting_write(&self) {
        self.0.block.end_waiting_write(self.0.number);
    }

    /// The peer has taken bytes of a write that waits, and still waits.
    #[cfg(any(feature = "tokio", feature = "futures-io"))]
    pub(super) fn record_taken(&self) {
        self.activity().progress(IdleKind::WaitingWrite, self.0.block.now());
    }

    /// Records both a read and a write.
    #[inline]
    pub fn touch(&self) {
        self.touch_nanos(self.0.block.now());
    }

    /// Like [`record_read`](Self::record_read), at a [`Timestamp`](super::Timestamp) or an
    /// [`Instant`](std::time::Instant). Reads no clock.
    ///
    /// Take the time after the read, not before. The silence is counted from this time, so with a
    /// time before the read, the connection may be reported too early by the difference.
    #[inline]
    pub fn record_read_at(&self, at: impl IntoTimestamp) {
        self.activity().record_read(self.0.block.nanos_at(at));
    }

    /// Like [`record_write`](Self::record_write), at a given time. See
    /// [`record_read_at`](Self::record_read_at).
    #[inline]
    pub fn record_write_at(&self, at: impl IntoTimestamp) {
        self.0.block.record_write(self.0.number, self.0.block.nanos_at(at));
    }

    /// Like [`touch`](Self::touch), at a given time. See [`record_read_at`](Self::record_read_at).
    #[inline]
    pub fn touch_at(&self, at: impl IntoTimestamp) {
        self.touch_nanos(self.0.block.nanos_at(at));
    }

    #[inline]
    fn touch_nanos(&self, now: u64) {
        self.activity().record_read(now);
        self.0.block.record_write(self.0.number, now);
    }

    /// Suspends the watching until the guard is dropped: until then no silence is reported, also not that of a waiting
    /// write, so do not hold the guard while you send an answer. At the end all silences count anew; a write that waits
    /// goes on waiting. Use it while the server works on a request, or while an upload goes on elsewhere. Pauses nest.
    /// Takes no lock.
    ///
    /// The guard borrows the watch. Where it cannot, use [`begin_pause`](Self::begin_pause), or the
    /// [`Pauser`](super::Pauser) of a stream.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, idle::{Answer, IdlePolicy, IdleTimeouts}};
    /// # let timer = HashedWheelTimer::new()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// # let policy = IdlePolicy::new().both(Duration::from_secs(30));
    /// # let watch = idle.watch(7, &policy)?;
    /// {
    ///     let _working = watch.pause();
    ///     // answer the request
    /// }
    /// // the 30 s begin here, if no touch follows
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause(&self) -> PauseGuard<'_> {
        self.begin_pause();
        PauseGuard(self)
    }

    /// Begins a pause without a guard, which lasts until [`end_pause`](Self::end_pause). An event loop can keep its
    /// pauses in its own state in this way.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// let minute = Duration::from_secs(60);
    /// let watch = idle.watch(7, &IdlePolicy::new().both(minute))?;
    /// watch.begin_pause(); // a request begins
    /// watch.begin_pause(); // another one, on the same connection
    /// watch.end_pause();
    /// clock.advance(10 * minute);
    /// assert_eq!(idle.watched(), 1, "the first request goes on");
    /// watch.end_pause();
    /// clock.advance(minute);
    /// assert_eq!(idle.watched(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_pause(&self) {
        self.activity().pause();
    }

    /// Ends one pause. All silences count anew, and a write that waits goes on waiting. Returns false if the connection
    /// was not paused. Takes no lock.
    pub fn end_pause(&self) -> bool {
        self.activity().resume(self.0.block.now())
    }

    /// Ends a pause in a destructor, which may run while a panic unwinds. If the clock panics, the pause goes on.
    pub(super) fn end_pause_on_drop(&self) {
        if catch_panic::panics(|| _ = self.end_pause()) {
            warning!("the clock panicked at the end of a pause; the connection stays paused");
        }
    }

    /// Changes the connection's policy. The silence so far counts: if a new duration has already
    /// passed, the connection is reported at the next tick. A report that has begun continues.
    /// O(1), under the lock of the connection's shard.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::HashedWheelTimer;
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
    /// # let timer = HashedWheelTimer::new()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// let strict = IdlePolicy::new().reader(Duration::from_secs(10)); // until it has logged in
    /// let lenient = IdlePolicy::new().reader(Duration::from_secs(600));
    /// let watch = idle.watch(7, &strict)?;
    /// watch.set_policy(&lenient);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_policy(&self, policy: &IdlePolicy) {
        self.0.block.watcher.set_policy(self.0.number, policy.clone());
    }

    /// The time since the last read or write.
    pub fn silent_for(&self) -> Duration {
        let since = self.last_activity();
        Duration::from_nanos(self.0.block.now().saturating_sub(since))
    }

    /// The last read or write.
    pub(crate) fn last_activity(&self) -> u64 {
        self.reading().last()
    }

    #[inline]
    fn activity(&self) -> &Activity {
        self.0.block.activity(self.0.number)
    }

    pub(super) fn reading(&self) -> Reading {
        self.0.block.reading(self.0.number)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.block.watcher.leave(self.0.number);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("silent_for", &self.silent_for()).finish_non_exhaustive()
    }
}

/// Pauses a watch until it is dropped. Created by [`Watch::pause`] and by
/// [`Feeder::pause`](crate::watchdog::Feeder::pause).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
/// let minute = Duration::from_secs(60);
/// let watch = idle.watch(7, &IdlePolicy::new().both(minute))?;
/// let guard = watch.pause();
/// clock.advance(10 * minute);
/// assert_eq!(idle.watched(), 1); // not reported
/// drop(guard);
/// clock.advance(minute);
/// assert_eq!(idle.watched(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard ends the pause"]
pub struct PauseGuard<'a>(&'a Watch);

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.end_pause_on_drop();
    }
}
