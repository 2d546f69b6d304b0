//! The hierarchical wheel: a cascade whose levels are made on demand, as in Kafka.

use super::cascade::{Cascade, Layout};
use super::level::Level;
use super::structure::Unlimited;
use super::values::Wheel;

/// A new level is made during an insert, so it must not be large.
const MAX_BUCKETS: usize = 1 << 16;

/// A wheel of levels that are made on demand. With n buckets in a level, each level is n times
/// coarser than the one below.
///
/// Scheme 7 of Varghese and Lauck (1987), laid out like Kafka's `TimingWheel`. Level 1 has n
/// buckets of one tick, level k + 1 has n buckets of n^k ticks. Each level has a window that starts
/// at its clock. A timeout goes to the finest level whose window reaches it. When a bucket of an
/// upper level expires, its timeouts are filed again and land in a lower level.
///
/// Its range is unlimited and it is exact. `insert` is O(m) for m levels, with m = log(delay) /
/// log(n). `remove` is O(1) amortised, `next_expiry` is O(m). A timeout is moved down at most m - 1
/// times. Each bucket of an existing level takes 64 bytes, or up to 80 if n is no power of two; an entry takes 16 bytes
/// besides the value.
///
/// Two things differ from Kafka. After all expired timeouts have been handed over, the levels'
/// clocks go on to the current tick, so a timeout that is inserted after a quiet period does not land
/// too high. And the order of insertion holds within a tick.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{Hierarchical, Wheel};
///
/// let mut wheel = Wheel::hierarchical(20)?;
/// let key = wheel.insert(450, "four hundred and fifty");
/// let place = |wheel: &Wheel<_, Hierarchical>| wheel.placement(key).map(|at| (at.level, at.bucket));
/// assert_eq!(place(&wheel), Some((3, 1)));
/// wheel.expire(400, |_, _| unreachable!());
/// assert_eq!(place(&wheel), Some((2, 2)));
/// wheel.expire(440, |_, _| unreachable!());
/// assert_eq!(place(&wheel), Some((1, 10)));
/// assert_eq!(wheel.expire(450, |_, expired| assert_eq!(expired.deadline, 450)), 1);
/// # Ok::<(), wheelwork::wheel::LevelSizeError>(())
/// ```
pub type Hierarchical = Cascade<Powers>;

/// The number of buckets in each level was below 2 or above 65,536, or memory for them was refused.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::Wheel;
///
/// assert_eq!(Wheel::<u32, _>::hierarchical(1).unwrap_err().buckets, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", size_error(*buckets))]
#[non_exhaustive]
pub struct LevelSizeError {
    /// The requested number of buckets in a level.
    pub buckets: usize,
}

fn size_error(buckets: usize) -> String {
    if (2..=MAX_BUCKETS).contains(&buckets) {
        format!("no memory for levels of {buckets} buckets")
    } else {
        format!("levels of {buckets} buckets: expected 2 to 65536")
    }
}

/// The layout: levels of n buckets, each n times coarser than the one below.
#[derive(Debug)]
pub struct Powers;

impl Layout for Powers {
    const NAME: &'static str = "Hierarchical";
}

impl Hierarchical {
    pub(crate) fn with_buckets(buckets: usize) -> Result<Self, LevelSizeError> {
        let error = LevelSizeError { buckets };
        if !(2..=MAX_BUCKETS).contains(&buckets) {
            return Err(error);
        }
        Self::new([Level::new(buckets, 1)]).map_err(|_| error)
    }
}

impl Unlimited for Hierarchical {}

impl<T> Wheel<T, Hierarchical> {
    /// A [`Hierarchical`] wheel whose levels have `buckets` buckets each. Kafka's have 20.
    ///
    /// # Errors
    ///
    /// If `buckets` is below 2 or above 65,536, or if memory for them is refused.
    pub fn hierarchical(buckets: usize) -> Result<Self, LevelSizeError> {
        Hierarchical::with_buckets(buckets).map(Self::on)
    }

    /// The number of levels made so far.
    pub fn levels(&self) -> usize {
        self.structure().levels()
    }
}
