//! The simple wheel: a cascade with a single level, so nothing is ever moved down.

use super::cascade::{Cascade, Layout};
use super::hashed::{MAX_TICKS_PER_WHEEL, WheelSizeError};
use super::key::Key;
use super::level::Level;
use super::structure::TokenWheel;
use super::values::Wheel;
use crate::base::refused::Refused;
use std::fmt;

/// One ring of buckets without rounds, for delays shorter than one turn.
///
/// Scheme 4 of Varghese and Lauck (1987), the base of all other wheels. The bucket of a timeout is
/// its deadline modulo the number of buckets, and all timeouts in a bucket are due in the same
/// tick. A delay of a turn or longer has no bucket and is refused.
///
/// `insert` costs as much as in a [`Hashed`](super::Hashed) wheel. `next_expiry` is O(1), `remove` O(1) amortised. A
/// bucket takes 64 bytes, up front, and up to 80 if their number is no power of two; an entry takes 16 bytes besides
/// the value.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::Wheel;
///
/// let mut wheel = Wheel::simple(8)?;
/// wheel.insert(7, "fits")?;
/// let refused = wheel.insert(8, "does not").unwrap_err();
/// assert_eq!((refused.delay, refused.ticks_per_wheel), (8, 8));
/// assert_eq!(refused.into_value(), "does not");
/// assert_eq!(wheel.expire(7, |_, expired| assert_eq!(expired.value, "fits")), 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub type Simple = Cascade<OneLevel>;

/// The delay is not shorter than one turn of the wheel. The error gives the value back.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::Wheel;
///
/// let mut wheel = Wheel::simple(60)?;
/// let refused = wheel.insert(60, "a turn ahead").unwrap_err();
/// assert_eq!((refused.delay, refused.into_value()), (60, "a turn ahead"));
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
#[derive(thiserror::Error)]
#[error("a delay of {delay} ticks: expected less than {ticks_per_wheel}, one turn of the wheel")]
#[non_exhaustive]
pub struct DelayError<T> {
    /// The number of ticks from the last expired tick to the deadline.
    pub delay: u64,
    /// The number of buckets. The delay must be less than this.
    pub ticks_per_wheel: usize,
    value: Refused<T>,
}

impl<T> DelayError<T> {
    /// Returns the refused value.
    pub fn into_value(self) -> T {
        self.value.into_inner()
    }
}

impl<T> fmt::Debug for DelayError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayError")
            .field("delay", &self.delay)
            .field("ticks_per_wheel", &self.ticks_per_wheel)
            .finish_non_exhaustive()
    }
}

/// The layout: one level, whose buckets span one tick each.
#[derive(Debug)]
pub struct OneLevel;

impl Layout for OneLevel {
    const NAME: &'static str = "Simple";
}

impl<T> Wheel<T, Simple> {
    /// A [`Simple`] wheel of `ticks_per_wheel` buckets, for delays of less than that many ticks.
    ///
    /// # Errors
    ///
    /// If the size is zero or above 2^30, or if memory for the buckets is refused.
    pub fn simple(ticks_per_wheel: usize) -> Result<Self, WheelSizeError> {
        let error = WheelSizeError { ticks_per_wheel };
        if !(1..=MAX_TICKS_PER_WHEEL).contains(&ticks_per_wheel) {
            return Err(error);
        }
        // Every tick is in reach, because `check` has refused the others.
        let level = Level::new(ticks_per_wheel, 1).map(Level::reaching_every_tick);
        Cascade::new([level]).map(Self::on).map_err(|_| error)
    }

    /// Files `value` under the absolute tick `deadline`. An overdue value expires with the next
    /// tick.
    ///
    /// # Errors
    ///
    /// If the delay, counted from the last expired tick, is not shorter than one turn. The error
    /// has both numbers and gives the value back.
    ///
    /// # Panics
    ///
    /// If the wheel already holds 2^32 - 64 values.
    #[inline]
    pub fn insert(&mut self, deadline: u64, value: T) -> Result<Key, DelayError<T>> {
        match self.check(deadline) {
            Ok(()) => Ok(self.file(deadline, value)),
            Err(DelayError { delay, ticks_per_wheel, .. }) => {
                Err(DelayError { delay, ticks_per_wheel, value: value.into() })
            }
        }
    }

    /// Moves a value to the absolute tick `deadline`, like `reschedule` of the other wheels. False if the
    /// value has left the wheel.
    ///
    /// # Errors
    ///
    /// If the delay, counted from the last expired tick, is not shorter than one turn. The value keeps
    /// its deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use wheelwork::wheel::Wheel;
    /// let mut wheel = Wheel::simple(64)?;
    /// let key = wheel.insert(10, "value").expect("less than a turn");
    /// assert!(wheel.reschedule(key, 50)?);
    /// assert!(wheel.reschedule(key, 64).is_err());
    /// assert_eq!(wheel.deadline(key), Some(50));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule(&mut self, key: Key, deadline: u64) -> Result<bool, DelayError<()>> {
        self.check(deadline)?;
        Ok(self.move_to(key, deadline))
    }

    /// Checks that a deadline is in reach.
    #[inline]
    fn check(&self, deadline: u64) -> Result<(), DelayError<()>> {
        let delay = deadline.saturating_sub(self.current_tick().saturating_sub(1));
        let ticks_per_wheel = self.ticks_per_wheel();
        if delay < ticks_per_wheel as u64 {
            return Ok(());
        }
        Err(DelayError { delay, ticks_per_wheel, value: ().into() })
    }

    /// The number of buckets.
    pub fn ticks_per_wheel(&self) -> usize {
        self.structure().bucket_count()
    }
}
