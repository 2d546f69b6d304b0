//! Periodic timeouts: tasks whose timeouts go on after each run.
//!
//! This file decides when the next run is due, and whether it is a missed one, also for `future/interval`. `run` puts
//! the timeout back, and `worker/expire` runs missed runs in the current pass. No file below this one knows about
//! periods.
//!
//! After a stall, `MissedTickBehavior` decides: `Burst` runs all missed runs at once, `BurstUpTo` does so unless
//! there are too many, `Delay` skips them and counts from now, and `Skip` skips them and keeps the schedule.

use super::run::Run;
use super::task::{Next, TimerTask};
use crate::time::tick::{DEADLINE_STEP, next_beat};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often a periodic timeout runs, from which point the period counts, and what happens to
/// missed runs.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, MissedTickBehavior, Period};
///
/// let timer = HashedWheelTimer::new()?;
/// let every_second = Period::fixed_rate_with(Duration::from_secs(1), MissedTickBehavior::Skip)
///     .initial_delay(Duration::ZERO);
/// let heartbeat = timer.new_periodic(|| println!("still here"), every_second)?;
/// assert!(heartbeat.cancel());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a period is an argument of the calls that repeat"]
pub struct Period {
    pub(crate) every: Duration,
    pub(crate) initial_delay: Option<Duration>,
    /// `None` for a fixed delay, which misses no run.
    missed: Option<MissedTickBehavior>,
}

/// How a fixed-rate timeout handles missed runs. A run is missed if it is already due when the run
/// before it ends. Modelled on tokio's enum of the same name. With [`Delay`](Self::Delay), an
/// [`Interval`](crate::future::Interval) also counts from the time at which a late tick is taken, as in tokio.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::{HashedWheelTimer, ManualClock, MissedTickBehavior, Period};
/// let runs = |behavior| {
///     let clock = ManualClock::new();
///     let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
///     let second = Duration::from_secs(1);
///     timer.new_periodic(|| (), Period::fixed_rate_with(second, behavior))?;
///     clock.advance_in_one_jump(5 * second); // a stall
///     Ok::<_, Box<dyn std::error::Error>>(timer.metrics().expired)
/// };
/// assert_eq!(runs(MissedTickBehavior::Burst)?, 5);
/// assert_eq!(runs(MissedTickBehavior::BurstUpTo(3))?, 1); // four are missed
/// assert_eq!(runs(MissedTickBehavior::Skip)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The default is [`BurstUpTo`](Self::BurstUpTo) with 100: a short stall loses no run, and a machine that wakes up
/// after a night does not run a heartbeat thirty thousand times.
/// [Suspends and stalls](crate::guide::suspends) lists when time jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedTickBehavior {
    /// Runs every missed run without waiting for a tick, in the order of all due timeouts. A burst that
    /// takes longer than a tick yields to the other timeouts that are due by then, and continues after
    /// them. A task that takes longer than its period never catches up, and uses all remaining time of
    /// the worker. Give such a task another behaviour, or an executor.
    Burst,
    /// Runs missed runs like [`Burst`](Self::Burst), but if there are more than this many, skips all of them like
    /// [`Skip`](Self::Skip). With 0, it is `Skip`.
    ///
    /// A task that takes longer than its period falls behind until that many runs are missed.
    BurstUpTo(u32),
    /// Skips the missed runs, and counts the period from now.
    ///
    /// A timeout of [`new_periodic`](crate::HashedWheelTimer::new_periodic) keeps its schedule as long as no
    /// run is missed: a late run does not delay the next one. A tick of an
    /// [`Interval`](crate::future::Interval) does, if it is taken more than a tick of the timer, and more than
    /// 5 ms, after it was due. With a period of 300 ms, if the tick of 300 is taken at 450, the next is due
    /// at 750.
    Delay,
    /// Skips the missed runs, and keeps the schedule: the next run is at a multiple of the period.
    Skip,
}

/// [`BurstUpTo`](MissedTickBehavior::BurstUpTo) with 100.
impl Default for MissedTickBehavior {
    fn default() -> Self {
        Self::BurstUpTo(100)
    }
}

impl Period {
    /// Each run is due one period after the last one was *due*. Missed runs are handled by the default of
    /// [`MissedTickBehavior`].
    pub fn fixed_rate(every: Duration) -> Self {
        Self::fixed_rate_with(every, MissedTickBehavior::default())
    }

    /// Like [`fixed_rate`](Self::fixed_rate), with another handling of missed runs.
    #[doc(alias("set_missed_tick_behavior"))]
    pub fn fixed_rate_with(every: Duration, missed: MissedTickBehavior) -> Self {
        Self { every, initial_delay: None, missed: Some(missed) }
    }

    /// Each run is due one period after the last one has *ended*. So no run is missed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::Period;
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let second = Duration::from_secs(1);
    /// timer.new_periodic(|| println!("clean up"), Period::fixed_delay(second))?;
    /// clock.advance_in_one_jump(5 * second); // a stall: no run is made up for
    /// assert_eq!(timer.metrics().expired, 1);
    /// clock.advance(second);
    /// assert_eq!(timer.metrics().expired, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fixed_delay(every: Duration) -> Self {
        Self { every, initial_delay: None, missed: None }
    }

    /// The delay of the first run, from now. The default is one period.
    pub fn initial_delay(self, delay: Duration) -> Self {
        Self { initial_delay: Some(delay), ..self }
    }

    /// The time from one run to the next.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use wheelwork::{MissedTickBehavior, Period};
    ///
    /// let period = Period::fixed_rate_with(Duration::from_secs(1), MissedTickBehavior::Skip);
    /// assert_eq!(period.every(), Duration::from_secs(1));
    /// assert_eq!(period.missed_tick_behavior(), Some(MissedTickBehavior::Skip));
    /// ```
    pub fn every(&self) -> Duration {
        self.every
    }

    /// How missed runs are handled. `None` for a fixed delay, which misses none.
    pub fn missed_tick_behavior(&self) -> Option<MissedTickBehavior> {
        self.missed
    }

    /// Computes the instant of the next run, after a run that was due at `due` and ended at `now`.
    /// With `Burst` it may lie in the past. `Delay` counts from `now` if a run was missed, or if `now` is later than `due`
    /// by more than `slack`. `None` if it lies beyond the end of time.
    pub(crate) fn next(&self, due: Instant, now: Instant, slack: Duration) -> Option<Instant> {
        let on_beat = due.checked_add(self.every);
        let missed = on_beat.is_some_and(|next| next <= now);
        let missed = missed || now.saturating_duration_since(due) > slack;
        match self.missed {
            None => now.checked_add(self.every),
            Some(MissedTickBehavior::Delay) if missed => now.checked_add(self.every),
            Some(MissedTickBehavior::Skip) => next_beat(due, now, self.every),
            Some(MissedTickBehavior::BurstUpTo(most)) if self.misses(most, due, now) => {
                next_beat(due, now, self.every)
            }
            Some(_) => on_beat,
        }
    }

    /// Whether more than `most` runs are missed.
    fn misses(&self, most: u32, due: Instant, now: Instant) -> bool {
        let too_many = self.every.checked_mul(most).and_then(|time| time.checked_add(self.every));
        too_many.is_some_and(|time| now.saturating_duration_since(due) >= time)
    }
}

/// A fixed rate.
impl From<Duration> for Period {
    fn from(every: Duration) -> Self {
        Self::fixed_rate(every)
    }
}

/// A task that runs `task` once per period.
pub(crate) struct Periodic<F> {
    pub(crate) task: F,
    pub(crate) period: Period,
    /// The exact instant at which it is due. The timeout's deadline is rounded up, so it would drift.
    pub(crate) due: Instant,
}

impl<F> Periodic<F> {
    /// The instant at which this run was due. If the deadline is not `due` rounded up, a reschedule has
    /// set it.
    fn due(&self, run: &Run<'_>) -> Instant {
        let (due, deadline) = (self.due, run.deadline());
        // Compares first: on Windows, an instant minus one that is up to 100 ns later can be zero.
        let is_rounded = deadline >= due && deadline - due < Duration::from_nanos(DEADLINE_STEP);
        if is_rounded { due } else { deadline }
    }
}

/// The return types of a periodic closure: `()`, or a `ControlFlow<()>` that says whether to continue.
///
/// # Examples
///
/// ```
/// # use std::{ops::ControlFlow, time::Duration};
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # let is_enough = || true;
/// timer.new_periodic(|| println!("for ever"), Duration::from_secs(1))?;
/// let until_enough = move || match is_enough() {
///     true => ControlFlow::Break(()),
///     false => ControlFlow::Continue(()),
/// };
/// timer.new_periodic(until_enough, Duration::from_secs(1))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a periodic task returns `()` or `ControlFlow<()>`, not `{Self}`",
    note = "end the closure's last statement with a semicolon"
)]
pub trait Repeat: sealed::Sealed {}

impl Repeat for () {}
impl Repeat for ControlFlow<()> {}

mod sealed {
    use std::ops::ControlFlow;

    pub trait Sealed {
        fn flow(self) -> ControlFlow<()>;
    }

    impl Sealed for () {
        fn flow(self) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }

    impl Sealed for ControlFlow<()> {
        fn flow(self) -> ControlFlow<()> {
            self
        }
    }
}

impl<F, R> TimerTask for Periodic<F>
where
    F: FnMut() -> R + Send + 'static,
    R: Repeat,
{
    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        if (self.task)().flow().is_break() {
            return Next::done();
        }
        let every = self.period.every;
        if self.period.missed.is_none() {
            return Next::after(self, every);
        }
        let due = self.due(run);
        // If the clock panics, the run counts as on time. The next one is not early then, keeps its beat, and can miss
        // runs itself.
        let now = run.end().unwrap_or(due);
        // A run beyond the end of time waits for ever.
        let Some(next) = self.period.next(due, now, Duration::MAX) else {
            return Next::after(self, Duration::MAX);
        };
        self.due = next;
        Next::on_beat(self, next, next <= now)
    }
}

#[cfg(test)]
mod tests;
