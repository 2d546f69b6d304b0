//! Arithmetic between durations, nanoseconds and ticks.
//!
//! Inside the timer a time is the number of nanoseconds since the timer's origin, in 64 bits: 584
//! years. A *delay* is relative and a *deadline* is absolute. `timer/handle` makes a deadline of a delay,
//! and the slot rounds it up to 8 ns. `worker/transfer` makes a *tick* of a deadline with the functions
//! here, and `wheel/hashed` a bucket and a round of a tick. All arithmetic saturates, and a saturated
//! deadline never fires.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// A deadline that no clock reaches.
pub(crate) const NEVER: u64 = u64::MAX;

/// The nanoseconds of a duration. `NEVER` if they do not fit.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    (duration.as_secs().checked_mul(1_000_000_000))
        .and_then(|n| n.checked_add(u64::from(duration.subsec_nanos())))
        .unwrap_or(NEVER)
}

/// The instant `nanos` after `origin`. If an `Instant` cannot lie so far ahead (on Linux it can),
/// the result is a century after `origin`, which stands for never.
pub(crate) fn instant_after(origin: Instant, nanos: u64) -> Instant {
    const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
    let exact = origin.checked_add(Duration::from_nanos(nanos));
    exact.or_else(|| origin.checked_add(A_CENTURY)).unwrap_or(origin)
}

/// The length of a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickScale {
    tick: NonZeroU64,
}

impl TickScale {
    pub(crate) fn new(tick_nanos: NonZeroU64) -> Self {
        Self { tick: tick_nanos }
    }

    pub(crate) fn tick_nanos(self) -> u64 {
        self.tick.get()
    }

    /// The first tick that does not begin before `deadline`. A timeout filed under it is never
    /// early.
    #[inline]
    pub(crate) fn tick_not_before(self, deadline: u64) -> u64 {
        deadline.div_ceil(self.tick.get())
    }

    /// The tick that `now` lies in.
    #[inline]
    pub(crate) fn tick_at(self, now: u64) -> u64 {
        now / self.tick
    }

    /// The time at which `tick` begins.
    #[inline]
    pub(crate) fn start_of(self, tick: u64) -> u64 {
        tick.saturating_mul(self.tick.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_02_a_deadline_never_maps_to_a_tick_that_begins_before_it() {
        let scale = TickScale::new(NonZeroU64::new(7).unwrap());
        for deadline in 0..100 {
            let tick = scale.tick_not_before(deadline);
            let start = scale.start_of(tick);
            assert!(start >= deadline && start < deadline + 7);
            assert_eq!(scale.tick_at(start), tick);
        }
    }

    #[test]
    fn rule_10_the_longest_duration_saturates() {
        assert_eq!(nanos(Duration::MAX), NEVER);
        assert_eq!(nanos(Duration::from_nanos(1_000_000_001)), 1_000_000_001);
        for tick in [1, 50_000, 100_000_000, u64::MAX] {
            let scale = TickScale::new(NonZeroU64::new(tick).unwrap());
            for deadline in [NEVER, NEVER - 1] {
                assert!(scale.start_of(scale.tick_not_before(deadline)) >= deadline);
            }
        }
    }
}
