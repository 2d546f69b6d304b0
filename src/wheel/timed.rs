//! A wheel that is told the time in instants.

use super::key::{Expired, Key};
use super::structure::{Structure, Unlimited};
use super::ticks::{SpeedError, Ticks};
use super::values::Wheel;
use std::fmt;
use std::time::{Duration, Instant};

/// A [`Wheel`] that is told the time in instants, and works out the ticks. Its time can be paused and
/// scaled.
///
/// Nothing is early: a deadline belongs to the first tick that does not begin before it. So a value is late by
/// less than a tick, if the caller comes in time. A [`Linux`](super::Linux) wheel adds its own lateness, which counts
/// from the time that [`insert`](Self::insert) and [`reschedule`](Self::reschedule) get.
///
/// Every method that depends on the current time gets it from the caller. A loop reads the clock once per turn; a
/// simulation passes its own instants.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use wheelwork::wheel::{Ticks, TimedWheel, Wheel};
///
/// let (start, ms) = (Instant::now(), Duration::from_millis(1));
/// let mut spells = TimedWheel::new(Wheel::hashed(64)?, Ticks::new(10 * ms, start)?);
/// spells.insert(start, 95 * ms, "the shield fades");
/// assert_eq!(spells.next_deadline(), Some(start + 100 * ms));
///
/// spells.pause(start + 50 * ms); // the menu is open
/// assert_eq!(spells.next_deadline(), None);
/// spells.resume(start + 5000 * ms);
/// assert_eq!(spells.next_deadline(), Some(start + 5050 * ms));
/// assert!(spells.pop(start + 5049 * ms).is_none());
/// let expired = spells.pop(start + 5050 * ms).expect("it is due");
/// assert_eq!(expired.value, "the shield fades");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TimedWheel<T, S> {
    wheel: Wheel<T, S>,
    ticks: Ticks,
}

impl<T, S: Unlimited> TimedWheel<T, S> {
    /// Inserts a value that is due `delay` from now, in the wheel's own time.
    ///
    /// # Panics
    ///
    /// If the wheel already holds 2^32 - 64 values.
    #[inline]
    pub fn insert(&mut self, now: Instant, delay: Duration, value: T) -> Key {
        self.wheel.tell(self.ticks.at(now));
        self.wheel.insert(self.ticks.after(now, delay), value)
    }

    /// Inserts a value that is due at an instant, if the speed stays as it is. It is not told the time, so in a
    /// [`Linux`](super::Linux) wheel the delay counts from the time that the wheel was last told.
    ///
    /// # Panics
    ///
    /// If the wheel already holds 2^32 - 64 values.
    #[inline]
    pub fn insert_at(&mut self, deadline: Instant, value: T) -> Key {
        self.wheel.insert(self.ticks.not_before(deadline), value)
    }

    /// Moves a value to `delay` from now, in the wheel's own time; see [`Wheel::reschedule`]. False if it has
    /// left the wheel.
    #[inline]
    pub fn reschedule(&mut self, key: Key, now: Instant, delay: Duration) -> bool {
        self.wheel.tell(self.ticks.at(now));
        self.wheel.reschedule(key, self.ticks.after(now, delay))
    }

    /// Moves a value to an instant. False if it has left the wheel.
    #[inline]
    pub fn reschedule_at(&mut self, key: Key, deadline: Instant) -> bool {
        self.wheel.reschedule(key, self.ticks.not_before(deadline))
    }
}

impl<T, S: Structure> TimedWheel<T, S> {
    /// Makes a wheel that is told the time in instants, which `ticks` converts.
    pub fn new(wheel: Wheel<T, S>, ticks: Ticks) -> Self {
        Self { wheel, ticks }
    }

    /// Takes out the next value that is due; see [`Wheel::pop`].
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Expired<T>> {
        self.wheel.pop(self.ticks.at(now))
    }

    /// Pops the next due value, reading at most `budget` entries.
    pub(super) fn pop_within(&mut self, now: Instant, budget: &mut usize) -> Option<Expired<T>> {
        self.wheel.pop_within(self.ticks.at(now), budget)
    }

    /// Expires all values that are due, and returns their number; see [`Wheel::expire`].
    ///
    /// The callback gets the wheel in ticks. To insert there at instants, copy the [`Ticks`] first, which are `Copy`:
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use wheelwork::wheel::{Ticks, TimedWheel, Wheel};
    /// # let (now, ms) = (Instant::now(), Duration::from_millis(1));
    /// # let mut wheel = TimedWheel::new(Wheel::hashed(64)?, Ticks::new(10 * ms, now)?);
    /// # wheel.insert(now, 10 * ms, "again");
    /// # let now = now + 20 * ms;
    /// let ticks = *wheel.ticks();
    /// let count = wheel.expire(now, |wheel, expired| {
    ///     wheel.insert(ticks.after(now, 50 * ms), expired.value);
    /// });
    /// assert_eq!((count, wheel.next_deadline()), (1, Some(now + 50 * ms)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expire(
        &mut self,
        now: Instant,
        expired: impl FnMut(&mut Wheel<T, S>, Expired<T>),
    ) -> usize {
        self.wheel.expire(self.ticks.at(now), expired)
    }

    /// Expires at most about `limit` values. Returns true if nothing is due any more; see
    /// [`Wheel::expire_at_most`].
    #[must_use = "values may still be due"]
    pub fn expire_at_most(
        &mut self,
        now: Instant,
        limit: usize,
        expired: impl FnMut(&mut Wheel<T, S>, Expired<T>),
    ) -> bool {
        self.wheel.expire_at_most(self.ticks.at(now), limit, expired)
    }

    /// The instant at which the caller should come again. No value expires before it. `None` if the wheel is
    /// empty, if no value ever comes due (a delay beyond 584 years), or while time is paused.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.ticks.start_of(self.wheel.next_expiry()?)
    }

    /// Stops time; see [`Ticks::pause`].
    pub fn pause(&mut self, now: Instant) {
        self.ticks.pause(now);
    }

    /// Lets time go on.
    pub fn resume(&mut self, now: Instant) {
        self.ticks.resume(now);
    }

    /// Sets how fast time runs.
    ///
    /// # Errors
    ///
    /// If the speed is not between 2^-32 and 2^31.
    pub fn set_speed(&mut self, now: Instant, speed: f64) -> Result<(), SpeedError> {
        self.ticks.set_speed(now, speed)
    }

    /// The ticks, which convert instants.
    pub fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    /// The wheel.
    pub fn wheel(&self) -> &Wheel<T, S> {
        &self.wheel
    }

    /// The wheel, for everything that does not depend on the time: `get_mut`, `remove`, `drain`.
    pub fn wheel_mut(&mut self) -> &mut Wheel<T, S> {
        &mut self.wheel
    }
}

impl<T, S: Structure> fmt::Debug for TimedWheel<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedWheel")
            .field("wheel", &self.wheel)
            .field("ticks", &self.ticks)
            .finish()
    }
}
