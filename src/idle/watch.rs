//! The handle of a watched connection.

use super::activity::Activity;
use super::event::Seat;
use super::policy::IdlePolicy;
use super::timestamp::IntoTimestamp;
use std::fmt;
use std::time::Duration;

/// A watched connection: tell it of every read and write. Dropping it stops watching.
///
/// `read`, `wrote` and `touch` take no lock and touch no wheel: one or two relaxed stores into
/// memory of the connection's own, after a clock read. The `_at` forms save the clock read: an event
/// loop takes the time once, when its poll returns ([`IdleTimeouts::now`](super::IdleTimeouts::now)).
/// `watch`, `set_policy` and the drop take a lock for a moment.
///
/// A touch that happens before the check makes that there is no event. If it races with the check,
/// either wins. Of several touches the last one counts, even if its time is the earliest; but a time
/// that is older than that of the touch before can make the report late by the difference.
///
/// Share it between a reader and a writer by reference or in an [`Arc`](std::sync::Arc).
#[must_use = "dropping the handle stops watching"]
pub struct Watch(Seat);

impl Watch {
    pub(super) fn new(seat: Seat) -> Self {
        Self(seat)
    }

    /// Bytes have been read.
    #[inline]
    pub fn read(&self) {
        self.activity().read(self.0.block.now());
    }

    /// Bytes have been written: call it whenever some have gone out, so that a slow peer to whom
    /// they do flow is not idle.
    #[inline]
    pub fn wrote(&self) {
        self.activity().wrote(self.0.block.now());
    }

    /// There was activity: both of them.
    #[inline]
    pub fn touch(&self) {
        self.activity().touch(self.0.block.now());
    }

    /// As [`read`](Self::read), at a [`Timestamp`](super::Timestamp) or an
    /// [`Instant`](std::time::Instant): no clock is read.
    ///
    /// Take the time after the read, not before: from an instant that is older than the bytes, the
    /// silence is counted too soon by the difference.
    #[inline]
    pub fn read_at(&self, at: impl IntoTimestamp) {
        self.activity().read(self.0.block.nanos_at(at));
    }

    /// As [`wrote`](Self::wrote), at a known time, as [`read_at`](Self::read_at).
    #[inline]
    pub fn wrote_at(&self, at: impl IntoTimestamp) {
        self.activity().wrote(self.0.block.nanos_at(at));
    }

    /// As [`touch`](Self::touch), at a known time, as [`read_at`](Self::read_at).
    #[inline]
    pub fn touch_at(&self, at: impl IntoTimestamp) {
        self.activity().touch(self.0.block.nanos_at(at));
    }

    /// From now on the connection is not idle, whatever it does, until [`resume`](Self::resume): a
    /// request is being worked on, an upload goes on elsewhere. Pauses nest. Takes no lock.
    pub fn pause(&self) {
        self.activity().pause();
    }

    /// Takes one pause back, and counts as a touch. False if it was not paused. Takes no lock.
    pub fn resume(&self) -> bool {
        self.activity().resume(self.0.block.now())
    }

    /// As [`pause`](Self::pause), until the guard is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, idle::{Answer, IdlePolicy, IdleTimeouts}};
    /// # let timer = HashedWheelTimer::new()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// # let policy = IdlePolicy::new().all(Duration::from_secs(30));
    /// # let watch = idle.watch(7, &policy)?;
    /// {
    ///     let _working = watch.paused();
    ///     // answer the request
    /// }
    /// // idle for 30 s from here, if nothing else comes
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paused(&self) -> Paused<'_> {
        self.pause();
        Paused(self)
    }

    /// Has the connection watched by another policy from now on. What has been silent already
    /// counts: with a duration that has passed, it is reported at the next tick. A report that is
    /// under way goes on. O(1), under the lock of the connection's shard.
    pub fn set_policy(&self, policy: &IdlePolicy) {
        self.0.block.watcher.set_policy(self.0.number, policy.clone());
    }

    /// For how long nothing has been read or written.
    pub fn silent_for(&self) -> Duration {
        let [_, _, since] = self.activity().reading().since;
        Duration::from_nanos(self.0.block.now().saturating_sub(since))
    }

    #[inline]
    fn activity(&self) -> &Activity {
        self.0.block.activity(self.0.number)
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

/// A pause that ends when this is dropped; from [`Watch::paused`].
#[derive(Debug)]
#[must_use = "dropping the guard ends the pause"]
pub struct Paused<'a>(&'a Watch);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.resume();
    }
}
