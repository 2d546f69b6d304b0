//! `BoottimeClock`: a clock that also runs while the machine is suspended.

use super::clock::{Clock, Follower, Pace};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Linux's clock that also runs while the machine is suspended (`CLOCK_BOOTTIME`). Needs the feature `boottime`.
///
/// Timeouts on it that become due during a suspend run when the machine resumes. The suspend neither extends a
/// timeout, nor delays the worker.
///
/// Its instants are ahead of [`Instant::now`] by the time for which the machine was suspended since the process first
/// used the clock. So compute deadlines for [`new_timeout_at`](crate::HashedWheelTimer::new_timeout_at) from
/// [`HashedWheelTimer::now`](crate::HashedWheelTimer::now).
///
/// The worker sleeps in a timer descriptor, and is woken through another one. So each timer on this clock takes two
/// descriptors, and [`build`](crate::timer::Builder::build) fails if there are none left.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, time::BoottimeClock};
///
/// let leases = HashedWheelTimer::builder().clock(BoottimeClock).build()?;
/// let begun = leases.now();
/// leases.new_timeout(|| println!("the lease has ended"), Duration::from_secs(3600))?;
/// leases.new_timeout_at(|| println!("an hour in the world"), begun + Duration::from_secs(3600))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BoottimeClock;

impl Clock for BoottimeClock {
    fn now(&self) -> Instant {
        static ORIGIN: OnceLock<(Instant, Duration)> = OnceLock::new();
        let (instant, at) = ORIGIN.get_or_init(|| (Instant::now(), since_boot()));
        *instant + since_boot().saturating_sub(*at)
    }

    fn attach(&self, follower: Follower) -> Pace {
        drop(follower);
        Pace::WithSuspends
    }
}

fn since_boot() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    // Neither is negative.
    Duration::new(tv_sec.unsigned_abs(), tv_nsec as u32)
}
