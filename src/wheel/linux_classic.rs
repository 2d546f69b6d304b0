//! The wheel of Linux before 4.8.

use super::cascade::{Cascade, Layout};
use super::structure::Unlimited;
use super::values::Wheel;

/// log2 of the ticks that a bucket of each level spans, tv1 to tv5.
const SHIFTS: [u32; 5] = [0, 8, 14, 20, 26];

/// The longest delay that the last level reaches.
const REACH: u64 = u32::MAX as u64;

/// Five levels for 2^32 ticks: one of 256 buckets, four of 64, with cascades.
///
/// The timers of Linux before 4.8: `tv1` has 256 buckets of one tick, `tv2` to
/// `tv5` have 64 each, of 2^8, 2^14, 2^20 and 2^26 ticks. The delay picks the level, the bits of
/// the deadline pick the bucket.
///
/// It is exact. `insert` is O(1) within reach; `remove` O(1) amortised; `next_expiry` O(1). A timeout
/// is moved down at most four times. The 512 buckets take 32 KiB; an entry takes 16 bytes besides the
/// value.
///
/// **Where 2^32 ticks end**: the levels reach 2^32 - 1 ticks from now, 49.7 days at a tick of 1 ms.
/// What is farther waits apart until a level reaches all of its 2^26 ticks; so there is no limit,
/// and nothing is early. (Linux files it at that distance, and again whenever it comes up there. Then
/// a younger timeout of the same tick can overtake an older one.)
///
/// Unlike in Linux, empty ticks are stepped over, and within a tick the order of insertion holds.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{LinuxClassicWheel, Placement};
///
/// let mut wheel = LinuxClassicWheel::new();
/// let key = wheel.insert(1000, "one thousand");
/// assert_eq!(wheel.placement(key), Some(Placement { level: 2, bucket: 3 })); // 1000 >> 8
/// wheel.expire(768, |_, _| unreachable!());
/// assert_eq!(wheel.placement(key), Some(Placement { level: 1, bucket: 232 })); // 1000 & 255
/// assert_eq!(wheel.expire(1000, |tick, _| assert_eq!(tick, 1000)), 1);
/// ```
pub type LinuxClassicWheel<T> = Wheel<T, LinuxClassic>;

/// What a [`LinuxClassicWheel`] runs on.
pub type LinuxClassic = Cascade<TimerVectors>;

/// tv1 to tv5.
#[derive(Debug, Default)]
pub struct TimerVectors {
    clock: u64,
}

impl Layout for TimerVectors {
    const NAME: &'static str = "LinuxClassic";
    const ERA: u32 = SHIFTS[4];

    fn level(&self, level: usize) -> (usize, u64) {
        (if level == 0 { 256 } else { 64 }, 1 << SHIFTS[level])
    }

    /// The next level's unit is what a level spans.
    #[inline]
    fn place(&mut self, tick: u64) -> usize {
        let delta = tick - self.clock;
        let level = SHIFTS[1..].iter().position(|&shift| delta < 1 << shift);
        level.unwrap_or(SHIFTS.len() - 1)
    }

    fn advance(&mut self, clock: u64) {
        self.clock = clock;
    }

    fn last_in_reach(&self) -> u64 {
        self.clock.saturating_add(REACH)
    }
}

impl Unlimited for LinuxClassic {}

impl Default for LinuxClassic {
    fn default() -> Self {
        Self::new(TimerVectors::default(), SHIFTS.len()).expect("memory for 512 buckets")
    }
}

impl<T> LinuxClassicWheel<T> {
    /// An empty wheel.
    pub fn new() -> Self {
        Self::on(LinuxClassic::default())
    }
}

impl<T> Default for LinuxClassicWheel<T> {
    fn default() -> Self {
        Self::new()
    }
}
