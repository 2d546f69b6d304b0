//! A time that is known already.

use crate::time::tick::nanos;
use std::time::Instant;

/// An instant as the idle timeouts of one timer count it; from [`IdleTimeouts::now`].
///
/// An event loop takes one when its poll returns and uses it for all the connections that are
/// ready: that saves each of them a clock read, and the arithmetic of an [`Instant`] as well. It
/// means nothing to another timer.
///
/// [`IdleTimeouts::now`]: super::IdleTimeouts::now
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Before the origin counts as the origin.
    #[inline]
    pub(super) fn new(origin: Instant, instant: Instant) -> Self {
        Self(nanos(instant.saturating_duration_since(origin)))
    }

    /// Since the timer's origin.
    #[inline]
    pub(super) fn nanos(self) -> u64 {
        self.0
    }
}

/// What the `_at` methods of [`Watch`](super::Watch) take for a time: a [`Timestamp`], or an
/// [`Instant`] by the timer's clock.
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
