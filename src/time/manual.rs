//! A clock for tests that moves only when it is told to.

use super::{Clock, Follower, Pace};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::time::tick::nanos;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock for tests: time stands still until [`advance`](Self::advance).
///
/// Clones share the same time; keep one and give one to the builder. Several timers can run on one
/// clock. A panic of a task, such as a failed `assert`, is caught and does not fail the test: check
/// [`metrics().panicked`](crate::Metrics::panicked).
/// [Tests with virtual time](crate::guide::virtual_time) has the rest.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use std::{sync::Arc, time::Duration};
/// use wheelwork::{HashedWheelTimer, ManualClock};
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let fired = Arc::new(AtomicUsize::new(0));
/// let seen = fired.clone();
/// timer.new_timeout(move || { seen.fetch_add(1, SeqCst); }, Duration::from_secs(3600))?;
///
/// clock.advance(Duration::from_secs(3599));
/// assert_eq!(fired.load(SeqCst), 0);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(fired.load(SeqCst), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ManualClock(Arc<Inner>);

struct Inner {
    origin: Instant,
    /// Nanoseconds since `origin`. The acquire load in `elapsed` pairs with the release of the
    /// `fetch_update` in `advance`: a thread that reads a time also sees everything that happened
    /// before the clock was moved to it.
    elapsed: AtomicU64,
    followers: Mutex<Vec<Follower>>,
}

impl ManualClock {
    /// A clock that shows the present instant.
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            origin: Instant::now(),
            elapsed: AtomicU64::new(0),
            followers: Mutex::new(Vec::new()),
        }))
    }

    /// Moves the time ahead in one jump. Returns when every timer on this clock has handed all due
    /// timeouts to its executor, in the order of ticks.
    ///
    /// A timeout is due once the tick of its deadline has begun. With the default tick of 100 ms, a delay
    /// of 10 ms runs after `advance` by 100 ms, and not after 10 ms. So move the time by whole ticks, or
    /// build the timer with a short tick.
    ///
    /// With the inline executor, their tasks have all run by then. A task that runs during the jump
    /// sees the time at the jump's end, and delays that it schedules count from there. A jump of
    /// zero makes each worker do one more pass, in which it expires everything that is due by
    /// now. Timeouts that are not due may [wait outside the wheel](crate::Metrics::queue_depth). In
    /// a task on the worker of any timer, and for timers of the parent of a forked process, `advance` moves
    /// the time and does not wait. The time saturates after 584 years.
    pub fn advance(&self, by: Duration) {
        let by = nanos(by);
        let moved = self.0.elapsed.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(now.saturating_add(by).min(LAST))
        });
        debug_assert!(moved.is_ok(), "the closure always returns a value");
        Follower::catch_up_all(&self.living_followers());
    }

    /// How far the time has been moved since this clock was created.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.elapsed.load(Ordering::Acquire))
    }

    fn living_followers(&self) -> Vec<Follower> {
        let mut followers = self.0.followers.lock();
        followers.retain(Follower::is_alive);
        followers.clone()
    }
}

/// The last time of the clock. One nanosecond more would mean never.
const LAST: u64 = u64::MAX - 1;

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        let elapsed = self.elapsed();
        self.0.origin.checked_add(elapsed).unwrap_or(self.0.origin)
    }

    fn attach(&self, follower: Follower) -> Pace {
        let mut followers = self.0.followers.lock();
        followers.retain(Follower::is_alive);
        followers.push(follower);
        Pace::OnCall
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("elapsed", &self.elapsed()).finish()
    }
}
