//! A timestamp: a time that was taken once and is used for many touches.

use crate::time::tick::nanos;
use std::time::Instant;

/// A timestamp shared by many touches, from [`IdleTimeouts::now`].
///
/// An event loop takes one when its poll returns, and uses it for all connections that are ready. A
/// touch then needs neither a clock read nor arithmetic on an [`Instant`]. A timestamp is valid only
/// for the timer that it was taken from.
///
/// [`IdleTimeouts::now`]: super::IdleTimeouts::now
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
pub trait IntoTimestamp: sealed::Sealed {}

impl IntoTimestamp for Timestamp {}
impl IntoTimestamp for Instant {}

pub(super) mod sealed {
    use super::{Instant, Timestamp};

    pub trait Sealed: Copy {
        fn timestamp(self, origin: impl FnOnce() -> Instant) -> Timestamp;
    }

    impl Sealed for Timestamp {
        #[inline]
        fn timestamp(self, _origin: impl FnOnce() -> Instant) -> Timestamp {
            self
        }
    }

    impl Sealed for Instant {
        #[inline]
        fn timestamp(self, origin: impl FnOnce() -> Instant) -> Timestamp {
            Timestamp::new(origin(), self)
        }
    }
}
