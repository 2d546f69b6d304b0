//! A timestamp: a time that was taken once and is used for many touches.

use crate::time::tick::nanos;
use std::time::Instant;

/// A timestamp shared by many touches, from [`IdleTimeouts::now`].
///
/// An event loop takes one when its poll returns, and uses it for all connections that are ready. A
/// touch then needs neither a clock read nor arithmetic on an [`Instant`]. A timestamp is valid only
/// for the timer that it was taken from.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, Watch};
/// # let clock = ManualClock::new();
/// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
/// # let policy = IdlePolicy::new().both(Duration::from_secs(60));
/// let ready: Vec<Watch> = vec![idle.watch(1, &policy)?, idle.watch(2, &policy)?];
/// let before = idle.now();
/// clock.advance(Duration::from_secs(5));
/// let now = idle.now();
/// assert!(before < now);
/// for watch in &ready {
///     watch.touch_at(now);
/// }
/// assert_eq!(ready[1].silent_for(), Duration::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`IdleTimeouts::now`]: super::IdleTimeouts::now
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The timestamp of `instant`; the origin's if `instant` is earlier.
    #[inline]
    pub(super) fn new(origin: Instant, instant: Instant) -> Self {
        Self(nanos(instant.saturating_duration_since(origin)))
    }

    /// Nanoseconds since the timer's origin.
    #[inline]
    pub(super) fn nanos(self) -> u64 {
        self.0
    }
}

/// A time for the `_at` methods of [`Watch`](super::Watch): a [`Timestamp`], or an [`Instant`] of
/// the timer's clock.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock};
/// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
/// # let timer = HashedWheelTimer::builder().clock(ManualClock::new()).build()?;
/// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
/// let watch = idle.watch(7, &IdlePolicy::new().both(Duration::from_secs(60)))?;
/// watch.record_read_at(idle.now()); // the cheapest
/// watch.record_read_at(timer.now()); // an instant that the program has anyway
/// assert_eq!(watch.silent_for(), Duration::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait IntoTimestamp: sealed::Sealed {}

impl IntoTimestamp for Timestamp {}
impl IntoTimestamp for Instant {}

pub(super) mod sealed {
    use super::{Instant, Timestamp};

    pub trait Sealed: Copy {
        fn timestamp(self, origin: Instant) -> Timestamp;
    }

    impl Sealed for Timestamp {
        #[inline]
        fn timestamp(self, _origin: Instant) -> Timestamp {
            self
        }
    }

    impl Sealed for Instant {
        #[inline]
        fn timestamp(self, origin: Instant) -> Timestamp {
            Timestamp::new(origin, self)
        }
    }
}
