//! Ticks of a wheel for your own loop, worked out from instants. Time can pause, and run faster or slower. The timer
//! has `time/tick`.
//!
//! A wheel's *own* time is the number of nanoseconds since its start in which time was not paused, multiplied
//! by the speed. The ticks divide it. All conversions round so that nothing is early.

use crate::time::tick::nanos;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The speed 1 in the unit of `Ticks::speed`.
const REAL_TIME: u64 = 1 << SPEED_BITS;

const SPEED_BITS: u32 = 32;

/// Converts instants into ticks, for a [`Wheel`](super::Wheel) or a [`DelayLine`](super::DelayLine) that is
/// driven by real time.
///
/// Time can be paused, as in a game whose menu is open, and can run faster or slower. Each method that depends on
/// the current time gets it from the caller, so a simulation can pass its own instants. An instant before the last
/// pause, resume or change of speed counts as the instant of that one.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use wheelwork::wheel::Ticks;
///
/// let (start, ms) = (Instant::now(), Duration::from_millis(1));
/// let mut ticks = Ticks::new(10 * ms, start)?;
/// assert_eq!(ticks.at(start + 25 * ms), 2);          // the tick that has begun last
/// assert_eq!(ticks.after(start + 25 * ms, 10 * ms), 4); // the first one not before 35 ms
/// assert_eq!(ticks.start_of(4), Some(start + 40 * ms));
///
/// ticks.pause(start + 30 * ms);
/// assert_eq!(ticks.start_of(4), None);
/// ticks.resume(start + 1000 * ms);
/// ticks.set_speed(start + 1000 * ms, 2.0).expect("a possible speed");
/// assert_eq!(ticks.start_of(4), Some(start + 1005 * ms));
/// # Ok::<(), wheelwork::wheel::ZeroDurationError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// The length of a tick in nanoseconds of own time.
    tick: NonZeroU64,
    /// At the instant `real`, the own time was `own`.
    real: Instant,
    own: u64,
    /// Own time for each real time, in units of 2^-32.
    speed: u64,
    is_paused: bool,
}

/// The length of a tick, or the period of an interval, is zero.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use wheelwork::wheel::Ticks;
///
/// let refused = Ticks::new(Duration::ZERO, Instant::now()).unwrap_err();
/// assert_eq!(refused.to_string(), "the duration must be greater than zero");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the duration must be greater than zero")]
#[non_exhaustive]
pub struct ZeroDurationError;

/// The speed of time is not between 2^-32 and 2^31.
///
/// # Examples
///
/// ```
/// # use std::time::{Duration, Instant};
/// # let mut ticks = wheelwork::wheel::Ticks::new(Duration::from_millis(1), Instant::now())?;
/// let refused = ticks.set_speed(Instant::now(), -1.0).unwrap_err();
/// assert_eq!(refused.speed, -1.0);
/// # Ok::<(), wheelwork::wheel::ZeroDurationError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a speed of {speed}: expected 2^-32 to 2^31")]
#[non_exhaustive]
pub struct SpeedError {
    /// The requested speed.
    pub speed: f64,
}

impl Ticks {
    /// Ticks of the length `tick`, counted from `start`. Time runs at speed 1.
    ///
    /// # Errors
    ///
    /// If the length is zero.
    pub fn new(tick: Duration, start: Instant) -> Result<Self, ZeroDurationError> {
        let tick = NonZeroU64::new(nanos(tick)).ok_or(ZeroDurationError)?;
        Ok(Self { tick, real: start, own: 0, speed: REAL_TIME, is_paused: false })
    }

    /// The tick that has begun last: the current one, for [`pop`](super::Wheel::pop). It is rounded down, so a deadline
    /// that is worked out from it can be early: [`after`](Self::after) and
    /// [`DelayLine::for_duration`](super::DelayLine::for_duration) are not.
    #[inline]
    pub fn at(&self, now: Instant) -> u64 {
        self.own_at(now) / self.tick
    }

    /// The first tick that does not begin before `delay` from now, counted in own time. A `delay` beyond 584
    /// years is tick `u64::MAX`, which never comes.
    #[inline]
    pub fn after(&self, now: Instant, delay: Duration) -> u64 {
        let own = if self.is_paused { self.own } else { self.own_if_it_runs(now, REAL_TIME - 1) };
        self.tick_not_before(own.saturating_add(nanos(delay)))
    }

    /// The first tick that does not begin before the instant `deadline`, if the speed stays as it is. While time
    /// is paused, the result is as if it went on.
    #[inline]
    pub fn not_before(&self, deadline: Instant) -> u64 {
        self.tick_not_before(self.own_if_it_runs(deadline, REAL_TIME - 1))
    }

    /// The instant at which a tick begins, if the speed stays as it is. If the tick began before the last pause,
    /// resume or change of speed, this is the instant of that one. `None` if it never begins: while time is
    /// paused, and after 584 years.
    pub fn start_of(&self, tick: u64) -> Option<Instant> {
        let own = tick.checked_mul(self.tick.get()).filter(|_| !self.is_paused)?;
        let left = u128::from(own.saturating_sub(self.own)) << SPEED_BITS;
        let real = u64::try_from(left.div_ceil(u128::from(self.speed))).ok()?;
        self.real.checked_add(Duration::from_nanos(real))
    }

    /// The own time since the start.
    pub fn elapsed(&self, now: Instant) -> Duration {
        Duration::from_nanos(self.own_at(now))
    }

    /// The length of a tick, in own time.
    pub fn tick_duration(&self) -> Duration {
        Duration::from_nanos(self.tick.get())
    }

    /// Stops time. Until [`resume`](Self::resume), no further tick begins.
    pub fn pause(&mut self, now: Instant) {
        self.change(now, |ticks| ticks.is_paused = true);
    }

    /// Lets time go on. A value that was due in a minute when time was paused is due in a minute again.
    pub fn resume(&mut self, now: Instant) {
        self.change(now, |ticks| ticks.is_paused = false);
    }

    /// Whether time is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Sets how fast own time runs: with 2, twice as fast as real time. The speed is rounded to a multiple of
    /// 2^-32. A paused time stays paused.
    ///
    /// # Errors
    ///
    /// If the speed is not between 2^-32 and 2^31.
    pub fn set_speed(&mut self, now: Instant, speed: f64) -> Result<(), SpeedError> {
        let rounded = (speed * REAL_TIME as f64).round();
        if !(1.0..=(1u64 << 63) as f64).contains(&rounded) {
            return Err(SpeedError { speed });
        }
        self.change(now, |ticks| ticks.speed = rounded as u64);
        Ok(())
    }

    /// How fast own time runs while it is not paused.
    pub fn speed(&self) -> f64 {
        self.speed as f64 / REAL_TIME as f64
    }

    fn change(&mut self, now: Instant, change: impl FnOnce(&mut Self)) {
        self.own = self.own_at(now);
        self.real = self.real.max(now);
        change(self);
    }

    #[inline]
    fn own_at(&self, now: Instant) -> u64 {
        if self.is_paused { self.own } else { self.own_if_it_runs(now, 0) }
    }

    /// The own time at an instant if time is not paused, rounded down after `more` was added, in the unit of `speed`.
    #[inline]
    fn own_if_it_runs(&self, at: Instant, more: u64) -> u64 {
        let real = nanos(at.saturating_duration_since(self.real));
        let scaled = u128::from(real) * u128::from(self.speed) + u128::from(more);
        self.own.saturating_add(u64::try_from(scaled >> SPEED_BITS).unwrap_or(u64::MAX))
    }

    /// The first tick that does not begin before this own time, and `u64::MAX` beyond 584 years. No rounding to steps as
    /// in `time::tick`: these ticks may be shorter than a step.
    #[inline]
    pub(super) fn tick_not_before(&self, own: u64) -> u64 {
        if own == u64::MAX { u64::MAX } else { own.div_ceil(self.tick.get()) }
    }
}

#[cfg(test)]
mod tests;
