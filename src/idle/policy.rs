//! How long a connection may be silent, and how old it may be.

use super::kind::IdleKind;
use crate::base::sync::Arc;
use crate::time::tick::nanos;
use std::fmt;
use std::time::Duration;

/// How long a connection may be silent, and how old it may be, before it is reported.
///
/// Every kind is off by default, and `None` turns it off again. [`Duration::ZERO`] means now: the connection is reported
/// in each tick, touched or not. [`Duration::MAX`] never passes. Clones share one allocation, so make a policy once and
/// watch many connections with it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use wheelwork::idle::IdlePolicy;
///
/// // No reads for a minute, or no progress of a write for ten seconds.
/// let policy = IdlePolicy::new()
///     .reader(Duration::from_secs(60))
///     .waiting_write(Duration::from_secs(10));
/// assert_eq!(policy, policy.clone());
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
#[must_use = "a policy is an argument of the calls that watch"]
pub struct IdlePolicy(Arc<Limits>);

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Limits {
    /// The duration of each kind in nanoseconds.
    after: [Option<u64>; IdleKind::LIMITED.len()],
    /// From the report of the age to the next one.
    grace: Option<u64>,
    jitter: u64,
}

impl IdlePolicy {
    /// A policy with every kind off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports a connection that had no reads for `after`.
    pub fn reader(self, after: impl Into<Option<Duration>>) -> Self {
        self.limit(IdleKind::Reader, after.into())
    }

    /// Reports a connection that had no writes for `after`.
    pub fn writer(self, after: impl Into<Option<Duration>>) -> Self {
        self.limit(IdleKind::Writer, after.into())
    }

    /// Reports a connection that was silent in both directions: it had neither reads nor writes for `after`. This is a
    /// third duration: it does not replace those of [`reader`](Self::reader) and [`writer`](Self::writer).
    pub fn both(self, after: impl Into<Option<Duration>>) -> Self {
        self.limit(IdleKind::Both, after.into())
    }

    /// Reports a connection whose write has waited for `after` without progress: the peer does not read. The system hides
    /// some progress: see [`Outgoing`](super::Outgoing). A connection that has nothing to write is never reported.
    /// An [`IdleStream`](super::IdleStream) knows when a write waits; without one, call
    /// [`Watch::record_waiting_write`](super::Watch::record_waiting_write).
    ///
    /// If [`set_policy`](super::Watch::set_policy) turns it on while a write waits, the wait counts from the next
    /// attempt of that write.
    #[doc(alias("WriteTimeoutHandler"))]
    pub fn waiting_write(self, after: impl Into<Option<Duration>>) -> Self {
        self.limit(IdleKind::WaitingWrite, after.into())
    }

    /// Reports a connection at the age `after`, even if it is busy or paused, and again after each `grace`. With no
    /// grace, it is reported once. The age counts from [`watch`](super::IdleTimeouts::watch), or from the first
    /// change of the policy that turns it on. No [scale](super::IdleTimeouts::scale) applies.
    ///
    /// At the first report, a server ends the connection softly: it takes no new request. At the next one, it closes
    /// it. An [`IdleStream`](super::IdleStream) fails from the first report on unless it is paused, and from the second
    /// one on even then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let idle = IdleTimeouts::new(&timer, |_: &mut u32, event| match event.first {
    ///     true => Answer::KeepWatching, // say that the connection takes no new request
    ///     false => Answer::StopWatching, // close it
    /// });
    /// let minute = Duration::from_secs(60);
    /// let watch = idle.watch(7, &IdlePolicy::new().max_age(60 * minute, 5 * minute))?;
    /// clock.advance(60 * minute);
    /// assert_eq!(idle.watched(), 1);
    /// clock.advance(5 * minute);
    /// assert_eq!(idle.watched(), 0);
    /// # drop(watch);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_age(
        self,
        after: impl Into<Option<Duration>>,
        grace: impl Into<Option<Duration>>,
    ) -> Self {
        let grace = grace.into().map(nanos);
        self.limit(IdleKind::Age, after.into()).with(|limits| limits.grace = grace)
    }

    /// Adds a fixed per-connection delay of up to `most` to all durations but the grace, so that connections
    /// accepted in one burst are not reported in one burst. The default is zero.
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
    /// let policy = IdlePolicy::new().both(Duration::from_secs(60)).jitter(Duration::from_secs(20));
    /// let burst: Vec<_> = (0..100).map(|id| idle.watch(id, &policy)).collect::<Result<_, _>>()?;
    /// clock.advance(Duration::from_secs(70));
    /// assert!((1..100).contains(&idle.watched()), "some are reported, some are not yet");
    /// clock.advance(Duration::from_secs(11)); // the last ones: 80 s, and a tick
    /// assert_eq!(idle.watched(), 0);
    /// # drop(burst);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn jitter(self, most: Duration) -> Self {
        self.with(|limits| limits.jitter = nanos(most))
    }

    fn limit(self, kind: IdleKind, after: Option<Duration>) -> Self {
        self.with(|limits| limits.after[kind as usize] = after.map(nanos))
    }

    fn with(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.0
    }
}

impl Limits {
    /// Whether the kind is on. Only kinds that have a duration are asked for, here and below.
    pub(super) fn has(&self, kind: IdleKind) -> bool {
        self.after[kind as usize].is_some()
    }

    /// From the report of the age to the next one. `None` if the age is off, or reported once.
    pub(super) fn grace(&self) -> Option<u64> {
        self.grace.filter(|_| self.has(IdleKind::Age)).map(|grace| grace.max(1))
    }

    /// The duration for one connection, with its jitter and the scale. `None` if the kind is off.
    pub(super) fn after(&self, kind: IdleKind, jitter_share: u32, scale: Scale) -> Option<u64> {
        let after = self.after[kind as usize]?;
        let share = (u128::from(self.jitter) * u128::from(jitter_share)) >> u32::BITS;
        let scale = if kind == IdleKind::Age { Scale::ONE } else { scale };
        Some(scale.apply(after.saturating_add(share as u64)).max(1))
    }
}

/// The current factor for all durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale(pub(super) f64);

impl Scale {
    pub(super) const ONE: Self = Self(1.0);

    fn apply(self, nanos: u64) -> u64 {
        if self == Self::ONE || nanos == u64::MAX {
            return nanos; // exact
        }
        // The product is rounded to an f64 first. The exact one would be too long by a nanosecond, and so by a tick, if
        // the factor is 0.1, which as an f64 is more than a tenth. Beyond 104 days, the error is a few nanoseconds.
        (nanos as f64 * self.0).ceil() as u64 // saturates
    }
}

impl fmt::Debug for IdlePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { after, grace, jitter } = *self.limits();
        let duration = |nanos: Option<u64>| nanos.map(Duration::from_nanos);
        let mut out = f.debug_struct("IdlePolicy");
        for kind in IdleKind::LIMITED {
            out.field(kind.name(), &duration(after[kind as usize]));
        }
        out.field("grace", &duration(grace));
        out.field("jitter", &Duration::from_nanos(jitter)).finish()
    }
}

#[cfg(test)]
mod tests;
