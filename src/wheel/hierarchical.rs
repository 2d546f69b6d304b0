//! The hierarchical wheel: a cascade whose levels are made on demand, as in Kafka.

use super::cascade::{Cascade, Layout, cascade};
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
/// times. Each bucket of an existing level takes 64 bytes; an entry takes 16 bytes besides the
/// value.
///
/// Two things differ from Kafka. After all expired timeouts have been handed over, the levels'
/// clocks go on to the present, so a timeout that is inserted after a quiet period does not land
/// too high. And the order of insertion holds within a tick.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::HierarchicalWheel;
///
/// let mut wheel = HierarchicalWheel::new(20)?;
/// let key = wheel.insert(450, "four hundred and fifty");
/// let place = |wheel: &HierarchicalWheel<_>| wheel.placement(key).map(|at| (at.level, at.bucket));
/// assert_eq!(place(&wheel), Some((3, 1)));
/// wheel.expire(400, |_, _| unreachable!());
/// assert_eq!(place(&wheel), Some((2, 2)));
/// wheel.expire(440, |_, _| unreachable!());
/// assert_eq!(place(&wheel), Some((1, 10)));
/// assert_eq!(wheel.expire(450, |tick, _| assert_eq!(tick, 450)), 1);
/// # Ok::<(), wheelwork::wheel::LevelSizeError>(())
/// ```
pub type HierarchicalWheel<T> = Wheel<T, Hierarchical>;

cascade! {
    /// The structure of a [`HierarchicalWheel`].
    Hierarchical, Powers
}

/// The number of buckets in each level was below 2 or above 65,536, or memory for them was refused.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::HierarchicalWheel;
///
/// assert_eq!(HierarchicalWheel::<u32>::new(1).unwrap_err().buckets, 1);
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

/// Levels of n buckets, each n times coarser than the one below.
#[derive(Debug)]
pub(super) struct Powers {
    size: u64,
    windows: Vec<Window>,
}

/// The window of a level: `span` ticks, beginning at its clock.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// The wheel's clock, rounded down to the unit.
    clock: u64,
    /// The number of ticks in a bucket.
    unit: u64,
    /// `u64::MAX` in the last level that can exist, which reaches every tick.
    span: u64,
}

impl Window {
    fn reaches(&self, tick: u64) -> bool {
        tick - self.clock < self.span || self.span == u64::MAX
    }
}

impl Powers {
    fn new(size: u64) -> Self {
        Self { size, windows: vec![Window { clock: 0, unit: 1, span: size }] }
    }

    /// The window of the level above `below`. Its clock is that of `below`, rounded down to the new
    /// unit.
    fn overflow(&self, below: Window) -> Window {
        let unit = below.span;
        let span = unit.saturating_mul(self.size);
        Window { clock: below.clock - below.clock % unit, unit, span }
    }
}

impl Layout for Powers {
    const NAME: &'static str = "Hierarchical";

    fn level(&self, level: usize) -> (usize, u64) {
        (self.size as usize, self.windows[level].unit)
    }

    #[inline]
    fn place(&mut self, tick: u64) -> usize {
        if let Some(level) = self.windows.iter().position(|window| window.reaches(tick)) {
            return level;
        }
        while let Some(&top) = self.windows.last().filter(|window| !window.reaches(tick)) {
            self.windows.push(self.overflow(top));
        }
        self.windows.len() - 1
    }

    /// Goes up from the finest level until a level's clock stays the same.
    fn advance(&mut self, clock: u64) {
        for window in &mut self.windows {
            if clock - window.clock < window.unit {
                return;
            }
            window.clock = clock - clock % window.unit;
        }
    }
}

impl Hierarchical {
    pub(crate) fn with_buckets(buckets: usize) -> Result<Self, LevelSizeError> {
        let error = LevelSizeError { buckets };
        if !(2..=MAX_BUCKETS).contains(&buckets) {
            return Err(error);
        }
        Cascade::new(Powers::new(buckets as u64), 1).map(Self).map_err(|_| error)
    }
}

impl Unlimited for Hierarchical {}

impl<T> HierarchicalWheel<T> {
    /// A wheel whose levels have `buckets` buckets each. Kafka's have 20.
    ///
    /// # Errors
    ///
    /// If `buckets` is below 2 or above 65,536, or if memory for them is refused.
    pub fn new(buckets: usize) -> Result<Self, LevelSizeError> {
        Hierarchical::with_buckets(buckets).map(Self::on)
    }

    /// The number of levels made so far.
    pub fn levels(&self) -> usize {
        self.structure().0.levels()
    }
}
