//! The key of a value, and a value that has expired.

/// Names a value in a [`Wheel`](super::Wheel) or a [`DelayLine`](super::DelayLine). Once its value has left, a
/// key finds nothing, until 2^32 other values have been in the same slot.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::Wheel;
///
/// let mut wheel = Wheel::hashed(64)?;
/// let key = wheel.insert(3, "value");
/// assert_eq!((wheel.get(key), wheel.deadline(key)), (Some(&"value"), Some(3)));
/// wheel.expire(3, |_, _| ());
/// assert_eq!(wheel.get(key), None);
/// assert_eq!(wheel.remove(key), None);
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub(crate) index: u32,
    pub(super) generation: u32,
}

/// A value that has expired. Its key finds nothing any more, but tells which value it was.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Expired, Wheel};
///
/// let mut wheel = Wheel::hashed(64)?;
/// let inserted = wheel.insert(3, "value");
/// let Some(Expired { key, deadline, value, .. }) = wheel.pop(5) else { panic!("it is due") };
/// assert_eq!((key, deadline, value), (inserted, 3, "value"));
/// # Ok::<(), wheelwork::wheel::WheelSizeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Expired<T> {
    /// The key that its insertion returned.
    pub key: Key,
    /// The absolute tick at which it was due.
    pub deadline: u64,
    /// The value.
    pub value: T,
}
