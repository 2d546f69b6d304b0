//! The trait `Clock`: where a timer gets the time from.

use super::jobs::Jobs;
use crate::base::sync::Arc;
use std::fmt;
use std::time::Instant;

/// A source of time for a timer.
///
/// The default is [`SystemClock`]. [`ManualClock`](super::ManualClock) is for tests. A clock of
/// your own must never go back. The worker sleeps by the system's monotonic clock, so your clock
/// must run at the same pace, unless its [`attach`](Self::attach) says otherwise.
///
/// # Examples
///
/// A clock that counts its reads:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::{Duration, Instant};
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::time::Clock;
///
/// struct Counting(Arc<AtomicU64>);
///
/// impl Clock for Counting {
///     fn now(&self) -> Instant {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         Instant::now()
///     }
/// }
///
/// let reads = Arc::new(AtomicU64::new(0));
/// let timer = HashedWheelTimer::builder().clock(Counting(reads.clone())).build()?;
/// timer.new_timeout(|| (), Duration::from_secs(30))?;
/// assert!(reads.load(Ordering::Relaxed) > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The current instant. Called once for each timeout that is scheduled with a delay. The timer holds no lock
    /// meanwhile.
    ///
    /// A panic on a thread that schedules reaches the caller, and the timer is unchanged. But one that comes as a
    /// `StreamTimeout` (feature `stream`) yields an item is caught, so that the item is not lost; the wait for the next
    /// item then has no limit. A panic on the worker is caught and counted
    /// ([`Metrics::panicked`](crate::metrics::Metrics::panicked)). The worker then continues with the last time that it
    /// knows, so no timeout is early. It reads the clock again after a tick or 100 ms, whichever is shorter. Until the
    /// clock works again, timeouts are late, and a [`catch_up`](Follower::catch_up) may return before they have run.
    ///
    /// The guard of a pause ([`Watch::pause`](crate::idle::Watch::pause)) reads the clock as it is dropped. A panic there
    /// is caught, and the connection stays paused.
    ///
    /// A panic at the end of a run, on the worker or on an executor, is caught and counted too. A fixed
    /// rate keeps its schedule, as if the run had missed none. If the next run would count from the end of this one, as
    /// with a fixed delay or [`Next::after`](crate::task::Next::after), the timeout is cancelled, because that end is
    /// not known. A panic in [`Run::now`](crate::task::Run::now) is the task's.
    fn now(&self) -> Instant;

    /// Called once by each timer that is built on this clock.
    ///
    /// A clock that stands still between jumps keeps the `Follower`, calls its
    /// [`catch_up`](Follower::catch_up) after each jump, and returns [`Pace::OnCall`]. A clock at the
    /// pace of real time that may also jump ahead, such as one that is set, keeps it and calls `catch_up` too, but returns
    /// [`Pace::RealTime`]. Neither must call `catch_up` inside `attach`: the timer does not run yet, so that call would
    /// never return.
    fn attach(&self, follower: Follower) -> Pace {
        drop(follower);
        Pace::RealTime
    }
}

/// How a clock moves.
///
/// # Examples
///
/// A clock that runs an hour ahead keeps the pace of the system's:
///
/// ```
/// use std::time::{Duration, Instant};
/// use wheelwork::time::{Clock, Follower, Pace};
///
/// struct Ahead;
///
/// impl Clock for Ahead {
///     fn now(&self) -> Instant {
///         Instant::now() + Duration::from_secs(3600)
///     }
///     fn attach(&self, _: Follower) -> Pace {
///         Pace::RealTime // also what `attach` returns by default
///     }
/// }
/// # wheelwork::HashedWheelTimer::builder().clock(Ahead).build()?;
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pace {
    /// At the pace of the system's monotonic clock. The worker sleeps until the next due tick.
    RealTime,
    /// At the pace of Linux's `CLOCK_BOOTTIME`: like real time, and it also moves while the machine is suspended. The
    /// worker sleeps by that clock, so it wakes when the machine resumes and something is due.
    #[cfg(all(target_os = "linux", feature = "boottime", not(any(loom, shuttle))))]
    WithSuspends,
    /// Only in jumps. The clock announces each jump to its [`Follower`], and the worker sleeps
    /// until then.
    OnCall,
}

/// A clock's handle to a timer that runs on it.
///
/// # Examples
///
/// A clock that moves in jumps:
///
/// ```
/// use std::sync::Mutex;
/// use std::time::{Duration, Instant};
/// use wheelwork::time::{Clock, Follower, Pace};
///
/// struct Jumping { now: Mutex<Instant>, followers: Mutex<Vec<Follower>> }
///
/// impl Jumping {
///     fn jump(&self, by: Duration) {
///         *self.now.lock().unwrap() += by;
///         let followers = self.followers.lock().unwrap().clone();
///         followers.iter().for_each(Follower::catch_up); // all due timeouts have run then
///     }
/// }
///
/// impl Clock for Jumping {
///     fn now(&self) -> Instant {
///         *self.now.lock().unwrap()
///     }
///     fn attach(&self, follower: Follower) -> Pace {
///         self.followers.lock().unwrap().push(follower);
///         Pace::OnCall
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Follower(std::sync::Weak<dyn FollowingTimer>);

/// The timer behind a [`Follower`]: a call upwards, to the worker.
pub(crate) trait FollowingTimer: Send + Sync {
    /// Wakes the worker; returns the request's number.
    fn request_catch_up(&self) -> u64;
    /// Waits until that request is answered, if this thread may wait for it.
    fn wait(&self, request: u64);
    /// Whether this thread may wait for the worker and its jobs.
    fn may_wait(&self) -> bool;
    /// The start of the next tick in which the worker will run something. It has passed if the worker has not caught
    /// up.
    fn next_due(&self) -> Option<Instant>;
    /// The jobs of the timer's executor.
    fn jobs(&self) -> &Jobs;
}

impl Follower {
    pub(crate) fn new(timer: &Arc<dyn FollowingTimer>) -> Self {
        Self(Arc::downgrade(timer))
    }

    /// Wakes the worker and waits until it has handed all due timeouts to the executor, or until
    /// the timer has stopped. On the worker thread of any timer it does not wait.
    pub fn catch_up(&self) {
        if let Some(timer) = self.0.upgrade() {
            let request = timer.request_catch_up();
            timer.wait(request);
        }
    }

    /// The instant at which the next tick begins in which something is due: a timeout, a future, or a check
    /// of the idle manager. `None` if nothing is pending that is ever due, or after a stop.
    ///
    /// The worker counts by the same rule. A timeout whose tick it has expired already, such as the first run of
    /// a series that begins at once, is due in the next tick. So once the timer has caught up with the clock, the
    /// instant lies ahead. Before that, it may have passed.
    ///
    /// A clock that jumps to this instant, and then catches up, misses no tick in which something happens.
    ///
    /// O(slots): it reads every slot of the timer.
    pub fn next_due(&self) -> Option<Instant> {
        self.0.upgrade()?.next_due()
    }

    /// The timer, unless it is gone.
    pub(super) fn timer(&self) -> Option<Arc<dyn FollowingTimer>> {
        self.0.upgrade()
    }

    /// Whether the timer still exists.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("is_alive", &self.is_alive()).finish()
    }
}

/// The system's monotonic clock, [`Instant::now`].
///
/// # Examples
///
/// ```
/// use std::time::Instant;
/// use wheelwork::time::{Clock, SystemClock};
///
/// let before = Instant::now();
/// assert!(SystemClock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }
}
