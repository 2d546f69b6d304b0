//! Where the time comes from.

use std::fmt;
use std::time::Instant;

/// A source of time for a timer.
///
/// The default is [`SystemClock`]. [`ManualClock`](super::ManualClock) is for tests. A clock of your own must never go
/// back, and must run at the pace of the system's monotonic clock unless its
/// [`attach`](Self::attach) says otherwise, because the worker sleeps by the latter.
pub trait Clock: Send + Sync + 'static {
    /// The present instant. Called once for each timeout that is scheduled with a delay.
    ///
    /// A panic on a caller's thread is that caller's, and changes nothing. A panic on the worker is
    /// caught and counted ([`Metrics::panicked`](crate::Metrics::panicked)): the worker goes on with
    /// the last time that it knows, so nothing is early, and asks again after a tick, or 100 ms if
    /// that is less. Until the clock answers, timeouts are late, and a
    /// [`catch_up`](Follower::catch_up) may return before they have run.
    fn now(&self) -> Instant;

    /// Called once by each timer that is built on this clock.
    ///
    /// A clock that stands still between jumps keeps the `Follower`, calls its
    /// [`catch_up`](Follower::catch_up) after each jump, and returns [`Pace::OnCall`]. It must not call
    /// that in here: the timer is not running yet, so the call would wait for ever.
    fn attach(&self, follower: Follower) -> Pace {
        drop(follower);
        Pace::RealTime
    }
}

/// Whether a clock moves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pace {
    /// As the system's monotonic clock does: the worker sleeps until the next due tick.
    RealTime,
    /// Only in jumps, each announced to the [`Follower`]: the worker sleeps until it is called.
    OnCall,
}

/// A timer as a clock sees it.
#[derive(Clone)]
pub struct Follower(std::sync::Weak<dyn Follow>);

/// What a worker does for a clock.
pub(crate) trait Follow: Send + Sync {
    /// Wakes the worker; returns the request's number.
    fn request_catch_up(&self) -> u64;
    /// Waits until that request is answered.
    fn wait(&self, request: u64);
}

impl Follower {
    pub(crate) fn new(timer: std::sync::Weak<dyn Follow>) -> Self {
        Self(timer)
    }

    /// Wakes the worker and waits until everything that is due has been handed to the executor, or
    /// the timer has stopped. Called on the worker of any timer, it does not wait.
    pub fn catch_up(&self) {
        if let Some(timer) = self.0.upgrade() {
            timer.wait(timer.request_catch_up());
        }
    }

    /// As `catch_up` for all of them at once: none waits for another to be called.
    pub(super) fn catch_up_all(followers: &[Follower]) {
        let timers: Vec<_> = followers.iter().filter_map(|f| f.0.upgrade()).collect();
        let asked: Vec<_> = timers.iter().map(|timer| timer.request_catch_up()).collect();
        timers.iter().zip(asked).for_each(|(timer, request)| timer.wait(request));
    }

    /// Whether the timer is still there.
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
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }
}
