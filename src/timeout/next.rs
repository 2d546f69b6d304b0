//! The result of a run: whether and when its timeout goes on.

use crate::time::tick::nanos;
use std::time::{Duration, Instant};

/// The result of a run: the timeout ends, or it goes on and runs again. Returned by
/// [`TimerTask::run`](crate::TimerTask::run).
///
/// The next run cannot begin before this one has returned, so runs of one timeout never overlap.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::{HashedWheelTimer, ManualClock, Next, Run, TimerTask};
/// struct Countdown(u32, mpsc::Sender<u32>);
///
/// impl TimerTask for Countdown {
///     fn run(mut self, _run: &Run<'_>) -> Next<Self> {
///         self.0 -= 1;
///         let _ = self.1.send(self.0);
///         if self.0 > 0 { Next::after(self, Duration::from_secs(1)) } else { Next::done() }
///     }
/// }
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let (sender, left) = mpsc::channel();
/// timer.new_timeout(Countdown(3, sender), Duration::from_secs(1))?;
/// clock.advance_through(Duration::from_secs(3));
/// assert_eq!(left.iter().collect::<Vec<_>>(), [2, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a run returns whether its timeout goes on"]
pub struct Next<T>(Option<(T, When)>);

/// When a timeout runs again.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// This many nanoseconds after the run.
    After(u64),
    /// At this instant, but not before the next tick.
    At(Instant),
    /// Within the worker's present pass, in the order of all due timeouts.
    Missed(Instant),
}

impl<T> Next<T> {
    /// Ends the timeout: it has expired.
    pub fn done() -> Self {
        Self(None)
    }

    /// Runs `task` again, `delay` after the end of this run. The timeout and its handles stay the
    /// same, and nothing is allocated. [`Duration::ZERO`] means the next tick.
    ///
    /// If the timeout was cancelled during this run, it is cancelled now: the task's
    /// [`cancelled`](crate::TimerTask::cancelled) callback is called on this thread. If the timer was stopped
    /// during this run, `stop` returns the timeout, unless the run has outlasted the end of the timer, on an
    /// executor. The timeout is then cancelled too, and if the timer's clock panics at the end of the run.
    pub fn after(task: T, delay: Duration) -> Self {
        Self(Some((task, When::After(nanos(delay)))))
    }

    /// Runs `task` again at an instant, like [`after`](Self::after). A past instant means the next
    /// tick. `run.deadline() + period` gives a fixed rate.
    pub fn at(task: T, deadline: Instant) -> Self {
        Self(Some((task, When::At(deadline))))
    }

    /// Runs `task` again for a missed run: like `at`, but without waiting for a tick.
    pub(crate) fn missed(task: T, deadline: Instant) -> Self {
        Self(Some((task, When::Missed(deadline))))
    }

    pub(crate) fn map<U>(self, into: impl FnOnce(T) -> U) -> Next<U> {
        Next(self.0.map(|(task, when)| (into(task), when)))
    }

    pub(super) fn into_parts(self) -> Option<(T, When)> {
        self.0
    }
}
