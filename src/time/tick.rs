//! Arithmetic between durations, nanoseconds and ticks.
//!
//! Inside the timer a time is the number of nanoseconds since the timer's origin, in 64 bits: 584
//! years. A *delay* is relative and a *deadline* is absolute. `timebase` makes a deadline of a delay, and
//! the slot rounds it up to 8 ns. The worker makes a *tick* of a deadline with the functions here, and
//! `wheel/hashed` a bucket and a round of a tick. All arithmetic saturates, and a saturated
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
mod tests {
    use super::*;

    fn scale(length: u64) -> TickScale {
        TickScale::new(NonZeroU64::new(length).unwrap())
    }

    /// Lengths and times: the beginning of time, around many starts of ticks, and shortly before `NEVER`.
    fn each_time(mut check: impl FnMut(TickScale, u64)) {
        let odd = [50_000, 50_001, 777_777, 16_666_666, 333_333_333, u64::MAX / 3, u64::MAX];
        for length in (1..=40).chain(odd) {
            let last = u64::MAX / length;
            let ticks = (1..40).chain(10_000..10_040).chain(last.saturating_sub(3)..=last);
            let starts = ticks.map(|tick| tick.saturating_mul(length));
            let around = starts.flat_map(|at| at.saturating_sub(20)..=at.saturating_add(20));
            for time in (0..400).chain(around).chain(NEVER - 20..=NEVER) {
                check(scale(length), time);
            }
        }
    }

    #[test]
    fn rule_02_a_deadline_never_maps_to_a_tick_that_begins_before_it() {
        each_time(|scale, deadline| {
            let tick = scale.tick_not_before(deadline);
            assert!(scale.start_of(tick) >= deadline, "{scale:?}, {deadline}");
            if tick > 0 {
                assert!(scale.start_of(tick - 1) < deadline, "{scale:?}, {deadline}: late");
            }
        });
    }

    /// Ticks shorter than a step share starts: then it is the last one of them.
    #[test]
    fn rule_02_the_present_tick_is_the_last_that_has_begun() {
        each_time(|scale, now| {
            let tick = scale.tick_at(now);
            assert!(scale.start_of(tick) <= now, "{scale:?}, {now}");
            let next = scale.start_of(tick + 1);
            assert!(next > now || next == NEVER, "{scale:?}, {now}");
        });
    }

    /// Also if the deadline was rounded up to a step.
    #[test]
    fn rule_02_a_deadline_at_the_start_of_a_tick_does_not_wait_for_the_next() {
        let long = [50_000, 50_001, 777_777, 16_666_666, 333_333_333];
        for length in (DEADLINE_STEP..=40).chain(long) {
            for tick in (0..2000).chain(1 << 32..(1 << 32) + 100) {
                let (scale, start) = (scale(length), scale(length).start_of(tick));
                assert!(start % DEADLINE_STEP == 0 && start - tick * length < DEADLINE_STEP);
                assert_eq!((scale.tick_not_before(start), scale.tick_at(start)), (tick, tick));
                assert_eq!(scale.tick_not_before(tick * length), tick);
            }
        }
        for length in 1..DEADLINE_STEP {
            for tick in 0..2000 {
                let (scale, start) = (scale(length), scale(length).start_of(tick));
                let sharing = scale.tick_not_before(start)..=scale.tick_at(start);
                assert!(sharing.contains(&tick), "{length} ns, tick {tick}: {sharing:?}");
                assert_eq!(
                    [sharing.start(), sharing.end()].map(|&n| scale.start_of(n)),
                    [start; 2]
                );
            }
        }
    }

    #[test]
    fn rule_10_the_longest_duration_saturates() {
        assert_eq!(nanos(Duration::MAX), NEVER);
        assert_eq!(nanos(Duration::from_nanos(1_000_000_001)), 1_000_000_001);
        for length in [1, 8, 50_000, 777_777, 100_000_000, u64::MAX] {
            let scale = scale(length);
            for deadline in [NEVER, NEVER - 1] {
                assert!(scale.start_of(scale.tick_not_before(deadline)) >= deadline);
            }
        }
    }
}
