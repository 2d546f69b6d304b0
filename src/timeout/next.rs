//! What a run answers as it ends.

use crate::time::tick::nanos;
use std::time::{Duration, Instant};

/// What becomes of a timeout after a run of its task; from [`TimerTask::run`](crate::TimerTask::run).
///
/// The next run cannot begin before this answer, so runs of one timeout never overlap.
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
/// (0..3).for_each(|_| clock.advance(Duration::from_secs(1)));
/// assert_eq!(left.iter().collect::<Vec<_>>(), [2, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a run ends with its answer"]
pub struct Next<T>(Option<(T, When)>);

/// When a timeout runs again.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// So many nanoseconds after the run.
    After(u64),
    /// Not before the next tick.
    At(Instant),
    /// Within the worker's present pass, in its turn among all that is due.
    Missed(Instant),
}

impl<T> Next<T> {
    /// The timeout has expired for good.
    pub fn done() -> Self {
        Self(None)
    }

    /// The timeout runs `task` again, `delay` after the end of this run: the same timeout, the same
    /// handles, and no allocation. [`Duration::ZERO`] means the next tick.
    ///
    /// If the timeout was cancelled meanwhile, or the timer stopped, it ends with this run instead, and
    /// the task is dropped.
    pub fn after(task: T, delay: Duration) -> Self {
        Self(Some((task, When::After(nanos(delay)))))
    }

    /// As [`after`](Self::after), at an instant. One that has passed means the next tick.
    pub fn at(task: T, deadline: Instant) -> Self {
        Self(Some((task, When::At(deadline))))
    }

    /// As `at`, for a run that was missed: it does not wait for a tick.
    pub(crate) fn missed(task: T, deadline: Instant) -> Self {
        Self(Some((task, When::Missed(deadline))))
    }

    pub(super) fn map<U>(self, into: impl FnOnce(T) -> U) -> Next<U> {
        Next(self.0.map(|(task, when)| (into(task), when)))
    }

    pub(super) fn into_parts(self) -> Option<(T, When)> {
        self.0
    }
}
