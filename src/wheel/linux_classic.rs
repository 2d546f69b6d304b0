//! The wheel of Linux before 4.8: a cascade of five levels.

use super::cascade::{Cascade, Layout};
use super::level::Level;
use super::structure::Unlimited;
use super::values::Wheel;

/// Five levels for 2^32 ticks: one of 256 buckets, four of 64, with cascades.
///
/// These are the timers of Linux before 4.8. `tv1` has 256 buckets of one tick. `tv2` to `tv5` have
/// 64 buckets each, of 2^8, 2^14, 2^20 and 2^26 ticks. The delay selects the level, and bits of the
/// deadline select the bucket.
///
/// It is exact. `insert` is O(1) within reach, `remove` is O(1) amortised, `next_expiry` is O(1). A
/// timeout is moved down at most four times. The 512 buckets take 32 KiB; an entry takes 16 bytes
/// besides the value.
///
/// **Beyond 2^32 ticks**: the levels reach 2^32 - 1 ticks from now, 49.7 days at a tick of 1 ms. A
/// longer timeout waits apart, in a sorted map, until the levels reach it. So there is no limit, and no
/// timeout is early. (Linux files such a timeout at the limit, and refiles it each time it comes up there.
/// Then a younger timeout of the same tick can overtake an older one.)
///
/// Two things differ from Linux: empty ticks are skipped, and the order of insertion holds within a
/// tick.
///
/// # Examples
///
/// ```
/// use wheelwork::wheel::{LinuxClassic, Wheel};
///
/// let mut wheel = Wheel::linux_classic();
/// let key = wheel.insert(1000, "one thousand");
/// let place = |wheel: &Wheel<_, LinuxClassic>| wheel.placement(key).map(|at| (at.level, at.bucket));
/// assert_eq!(place(&wheel), Some((2, 3))); // 1000 >> 8
/// wheel.expire(768, |_, _| unreachable!());
/// assert_eq!(place(&wheel), Some((1, 232))); // 1000 & 255
/// assert_eq!(wheel.expire(1000, |_, expired| assert_eq!(expired.deadline, 1000)), 1);
/// ```
pub type LinuxClassic = Cascade<TimerVectors>;

/// The layout: the levels tv1 to tv5. A level spans one unit of the next level.
#[derive(Debug)]
pub struct TimerVectors;

impl Layout for TimerVectors {
    const NAME: &'static str = "LinuxClassic";
    const REACH: u64 = u32::MAX as u64;
    const IS_ALIGNED: bool = false;
}

impl Unlimited for LinuxClassic {}

impl Default for LinuxClassic {
    fn default() -> Self {
        let levels = [(256, 0), (64, 8), (64, 14), (64, 20), (64, 26)];
        let levels = levels.map(|(buckets, shift)| Level::new(buckets, 1 << shift));
        Cascade::new(levels).expect("memory for 512 buckets")
    }
}

impl<T> Wheel<T, LinuxClassic> {
    /// An empty [`LinuxClassic`] wheel.
    pub fn linux_classic() -> Self {
        Self::on(LinuxClassic::default())
    }
}
