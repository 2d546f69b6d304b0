//! The hashed wheel.

use super::keyed::{Key, Wheel};
use super::ring::Ring;
use super::structure::Core;

/// As in Netty: a wheel of more buckets than this is a mistake.
pub(crate) const MAX_TICKS_PER_WHEEL: usize = 1 << 30;

/// One ring of buckets, with rounds.
///
/// After Netty's `HashedWheelTimer` and scheme 6 of Varghese and Lauck (1987). It is exact.
/// `insert` and `next_expiry` are O(1), `remove` O(1) amortised. Values that share a bucket but not
/// a round never hide each other; but a bucket is walked when anything in it is due, so timeouts
/// much longer than a turn cost a look each time.
///
/// It allocates for its buckets up front (41 bytes each) and then about 8 bytes for each entry
/// besides the value.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::HashedWheel;
///
/// let mut wheel = HashedWheel::new(64)?;
/// let far = wheel.insert(10_000, "far");
/// wheel.insert(3, "near");
/// assert_eq!(wheel.remaining_rounds(far), Some(156)); // 10,000 / 64
/// assert_eq!(wheel.next_expiry(), Some(3));
///
/// let mut fired = Vec::new();
/// wheel.expire(5, |tick, value| fired.push((tick, value)));
/// assert_eq!(fired, [(3, "near")]);
/// assert_eq!(wheel.remove(far), Some("far"));
/// assert!(wheel.is_empty());
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
pub type HashedWheel<T> = Wheel<T, Ring>;

/// The number of ticks in a turn was zero or above 2^30, or there is no memory for so many buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a wheel of {ticks_per_wheel} ticks: expected 1 to 1073741824 (2^30), and memory for them")]
pub struct WheelSizeError {
    /// What was asked for.
    pub ticks_per_wheel: usize,
}

impl<T> HashedWheel<T> {
    /// A wheel of `ticks_per_wheel` buckets, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// If the size is zero or above 2^30, or if memory for the buckets is refused.
    pub fn new(ticks_per_wheel: usize) -> Result<Self, WheelSizeError> {
        let error = WheelSizeError { ticks_per_wheel };
        if !(1..=MAX_TICKS_PER_WHEEL).contains(&ticks_per_wheel) {
            return Err(error);
        }
        Ring::new(ticks_per_wheel.next_power_of_two()).map(Self::on).map_err(|_| error)
    }

    /// How often the pointer will still pass the bucket of `key` before the pass that expires it:
    /// `(deadline - current_tick) / ticks_per_wheel`, as in Netty.
    pub fn remaining_rounds(&self, key: Key) -> Option<u64> {
        let ahead = self.deadline(key)?.saturating_sub(self.current_tick());
        Some(ahead / self.ticks_per_wheel() as u64)
    }

    /// The bucket that `key` lies in: `max(deadline, current_tick) & (ticks_per_wheel - 1)`.
    pub fn bucket(&self, key: Key) -> Option<usize> {
        Some(self.structure.bucket_of(self.deadline(key)?))
    }

    /// The number of buckets.
    pub fn ticks_per_wheel(&self) -> usize {
        self.structure.bucket_count()
    }
}
