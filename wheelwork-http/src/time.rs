//! Times as nanoseconds since a second before the start of the timer.

use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// As good as never, as a duration that can be added to the current time.
pub(crate) const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);

#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(duration.subsec_nanos().into())
}

/// The end of a limit that begins at `from`.
#[inline]
pub(crate) fn after(from: u64, limit: Option<Duration>) -> u64 {
    limit.map_or(NEVER, |limit| from.saturating_add(nanos(limit)))
}

/// The clock of a timer.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) timer: HashedWheelTimer,
    origin: Instant,
}

impl Clock {
    pub(crate) fn new(timer: HashedWheelTimer) -> Self {
        let start = timer.started_at();
        Self { origin: start.checked_sub(Duration::from_secs(1)).unwrap_or(start), timer }
    }

    /// Never 0 or 1, which the words of a connection use.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.nanos_at(self.timer.now())
    }

    #[inline]
    pub(crate) fn nanos_at(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.origin)).max(2)
    }

    /// A time that never comes is far away.
    pub(crate) fn instant(&self, nanos: u64) -> Instant {
        let at = self.origin.checked_add(Duration::from_nanos(nanos));
        at.unwrap_or_else(|| self.timer.now() + FAR)
    }
}
