//! Arithmetic between durations, nanoseconds and ticks, for the timer. The wheels for your own loop have `wheel/ticks`.
//!
//! Inside the timer a time is the number of nanoseconds since the timer's origin, in 64 bits: 584
//! years. A *delay* is relative and a *deadline* is absolute. `timebase` turns a delay into a deadline, and
//! the slot rounds it up to 8 ns. The worker turns that into a *tick* with functions here, and
//! `wheel/hashed` turns a tick into bucket and round. All arithmetic saturates, and a saturated
//! deadline never fires.
//!
//! **Steps.** A slot keeps a deadline in steps of 8 ns, rounded up. A tick begins at a step too, at the first
//! one that is not before the exact time. Otherwise a deadline at the start of a tick would be rounded up past
//! it, and would wait for the next tick. Ticks of 777,777 ns begin at 0, 777,784, 1,555,560 and so on.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// A deadline that no clock reaches.
pub(crate) const NEVER: u64 = u64::MAX;

/// Deadlines and the starts of ticks are multiples of this, in nanoseconds. A power of two.
pub(crate) const DEADLINE_STEP: u64 = 8;

/// The last step that is not after `time`.
#[inline]
fn step_at(time: u64) -> u64 {
    time & !(DEADLINE_STEP - 1)
}

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

/// The first multiple of a period after `due` that lies after `now`. `None` beyond the end of time.
pub(crate) fn next_beat(due: Instant, now: Instant, period: Duration) -> Option<Instant> {
    let late = now.saturating_duration_since(due).as_nanos();
    let since_beat = late % period.as_nanos().max(1);
    let since_beat = Duration::from_nanos(u64::try_from(since_beat).ok()?);
    now.checked_sub(since_beat)?.checked_add(period)
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

    /// The first tick that does not begin before `deadline`. A timeout filed under it is never early, and is
    /// late by less than a tick, counted from its deadline rounded up.
    ///
    /// `tick_at(deadline - 1)` is the last tick that begins before `deadline`, so this is the next one.
    #[inline]
    pub(crate) fn tick_not_before(self, deadline: u64) -> u64 {
        if deadline == 0 { 0 } else { self.tick_at(deadline - 1) + 1 }
    }

    /// The tick that `now` lies in: the last one that begins by then.
    ///
    /// Tick n has begun if its exact time, rounded up to a step, is not after `now`. This holds exactly if
    /// that time is not after the last step by `now`. The greatest such n is that step divided by the length.
    #[inline]
    pub(crate) fn tick_at(self, now: u64) -> u64 {
        step_at(now) / self.tick
    }

    /// The time at which `tick` begins.
    #[inline]
    pub(crate) fn start_of(self, tick: u64) -> u64 {
        let exact = tick.saturating_mul(self.tick.get());
        exact.checked_add(DEADLINE_STEP - 1).map_or(NEVER, step_at)
    }
}

#[cfg(test)]
mod tests;
