//! `HashedWheelTimer`: schedules timeouts, and reports on the timer. `stop` ends it.

use crate::base::sync::Arc;
use crate::intake::SLOTS;
use crate::intake::shared::Gate;
use crate::metrics::{Metrics, ThreadMetrics};
use crate::timeout::{
    Admit, Internal, Period, Periodic, RefusalReason, Repeat, ScheduleError, Shared, Timeout,
    TimerTask, schedule,
};
use crate::worker::Control;
use std::fmt;
use std::time::{Duration, Instant};

/// A timer for very many timeouts that rarely fire.
///
/// Clones are handles to the same timer. When the last one is dropped, the worker cancels the pending timeouts and ends;
/// the drop does not wait for that. If a stop gave up waiting and the timer has ended since, the drop itself cancels what
/// no stop has returned. To get the pending timeouts back, call [`stop`](Self::stop). With the feature `log` or
/// `tracing`, a drop that cancels timeouts is a warning. A pending task that holds a handle keeps its timer alive: let it
/// hold a [`WeakTimer`](crate::timer::WeakTimer).
///
/// The [crate documentation](crate) lists the guarantees.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
///
/// let timer = HashedWheelTimer::new()?;
/// let clone = timer.clone(); // the same timer, for another thread
/// std::thread::spawn(move || clone.new_timeout(|| (), Duration::from_secs(30))).join().unwrap()?;
/// assert_eq!(timer.pending_timeouts(), 1);
/// assert_eq!(timer.stop()?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("hrtimer", "timer_list", "Scheduler", "timing wheel"))]
#[derive(Clone)]
pub struct HashedWheelTimer(pub(super) Arc<Handle>);

/// The state that all handles of one timer share. Its drop ends the timer.
pub(super) struct Handle {
    pub(super) control: Arc<Control>,
    /// The lateness that `publish_metrics` has already recorded.
    #[cfg(feature = "metrics")]
    pub(super) published: crate::base::sync::Mutex<crate::metrics::Lateness>,
}

impl HashedWheelTimer {
    /// Runs `task` once, `delay` from now, unless the timeout is cancelled first. A task is a closure, or a type
    /// that implements [`TimerTask`]. For a closure that takes its run: [`task_fn`](crate::task::task_fn).
    ///
    /// The task never runs early, measured by [`Instant`]. While the worker keeps up, it is late by
    /// less than a tick plus scheduling. [`Duration::ZERO`] means the next tick, [`Duration::MAX`]
    /// never. Timeouts that one thread schedules for the same tick run in the order in which it
    /// scheduled them.
    ///
    /// The call reads the processor's counter (or `Instant`, where the system does not use that counter),
    /// writes to memory of the calling thread, and executes a memory fence. A task of up to two pointers, 16 bytes on
    /// 64-bit systems, is stored in its slot. A larger task, or one that is aligned to more than a pointer, costs an
    /// allocation. A thread without a free slot takes a chunk of 62 slots from a pool, or allocates one. It takes no
    /// lock, except for a moment as a thread schedules for the first time, and perhaps as it needs another chunk.
    ///
    /// # Errors
    ///
    /// If the timer is stopped, or the limit of pending timeouts is reached. The error contains the
    /// task.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let timeout = timer.new_timeout(|| println!("no answer"), Duration::from_secs(30))?;
    /// timeout.reschedule(Duration::from_secs(60))?; // a sign of life
    /// assert!(timeout.cancel()); // the answer
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("setTimeout", "newTimeout", "schedule", "after_func"))]
    #[inline]
    pub fn new_timeout<T: TimerTask>(
        &self,
        task: T,
        delay: Duration,
    ) -> Result<Timeout, ScheduleError<T>> {
        let timer = &self.0.control.timer;
        schedule(timer, task, timer.gate.time.deadline_after(delay), Admit::Once)
    }

    /// Runs `task` once at an instant, like [`new_timeout`](Self::new_timeout). Reads no clock. A
    /// past instant means the next tick.
    ///
    /// # Errors
    ///
    /// The errors of `new_timeout`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let arrival = timer.now(); // the request may wait in a queue from now on
    /// let deadline = arrival + Duration::from_secs(5);
    /// let timeout = timer.new_timeout_at(|| println!("too late"), deadline)?;
    /// assert!(timeout.deadline() >= Some(deadline)); // rounded up to 8 ns
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("deadline timer", "deadline_timer"))]
    #[inline]
    pub fn new_timeout_at<T: TimerTask>(
        &self,
        task: T,
        deadline: Instant,
    ) -> Result<Timeout, ScheduleError<T>> {
        let timer = &self.0.control.timer;
        schedule(timer, task, timer.gate.time.nanos_at(deadline), Admit::Once)
    }

    /// Runs `task` repeatedly, until its timeout is cancelled, the timer stops, the task panics, or
    /// it returns [`ControlFlow::Break`](std::ops::ControlFlow::Break). A closure that returns
    /// nothing goes on. Further runs allocate nothing. During a run, the timeout is not pending. The closure takes
    /// no argument: for a task that sees its [`Run`](crate::task::Run), implement [`TimerTask`] and return
    /// [`Next::after`](crate::task::Next::after).
    ///
    /// A [`Duration`] as the period means [`Period::fixed_rate`].
    ///
    /// # Errors
    ///
    /// The errors of [`new_timeout`](Self::new_timeout), and one if the period is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// use std::ops::ControlFlow;
    ///
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let mut left = 3;
    /// let countdown = move || {
    ///     left -= 1;
    ///     if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// };
    /// let timeout = timer.new_periodic(countdown, Duration::from_secs(1))?;
    /// # clock.advance(Duration::from_secs(9));
    /// // nine seconds later
    /// assert_eq!(timer.metrics().expired, 3);
    /// assert!(timeout.is_expired());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("setInterval", "scheduleAtFixedRate", "scheduleWithFixedDelay"))]
    pub fn new_periodic<F, R>(
        &self,
        task: F,
        period: impl Into<Period>,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: Repeat,
    {
        let period = period.into();
        if period.every.is_zero() {
            return Err(ScheduleError::new(RefusalReason::ZeroPeriod, task));
        }
        let delay = period.initial_delay.unwrap_or(period.every);
        let deadline = self.gate().time.deadline_after(delay);
        let due = self.gate().time.instant_at(deadline);
        let periodic = Periodic { task, period, due };
        let scheduled = schedule(&self.0.control.timer, periodic, deadline, Admit::Series);
        scheduled.map_err(|error| error.map(|periodic| periodic.task))
    }

    /// Schedules an internal timeout: no limit refuses it, no count includes it, and no stop returns it.
    /// At the end of the timer, the worker's thread cancels it. Reads no clock.
    pub(crate) fn schedule_internal<T: TimerTask>(
        &self,
        task: T,
        deadline: Instant,
        admit: Admit,
    ) -> Result<Internal, ScheduleError<T>> {
        let Control { internals, timer, .. } = &*self.0.control;
        let deadline = self.gate().time.nanos_at(deadline);
        internals.schedule(timer, task, deadline, admit)
    }

    /// The current instant by the timer's clock.
    #[inline]
    pub fn now(&self) -> Instant {
        self.gate().time.now_instant()
    }

    /// The length of a tick.
    pub fn tick_duration(&self) -> Duration {
        Duration::from_nanos(self.gate().scale.tick_nanos())
    }

    /// The earliest deadline of all that the timer waits for: timeouts, futures, and the checks of its
    /// [idle managers](crate::idle). `None` if nothing is pending, or if all of it waits for ever.
    ///
    /// It includes every call that has returned on this thread. A timeout that runs is not pending. A pending
    /// timeout runs in the first tick that begins at its deadline or later.
    ///
    /// O(slots): it reads every slot of the timer, so it is for tests, and for looking into a running
    /// program. It waits for no lock that a task holds.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// assert_eq!(timer.next_deadline(), None);
    /// timer.new_timeout(|| (), Duration::from_secs(60))?;
    /// let first = timer.new_timeout(|| (), Duration::from_secs(30))?;
    /// assert_eq!(timer.next_deadline(), first.deadline());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_deadline(&self) -> Option<Instant> {
        let earliest = self.0.control.earliest_deadline();
        earliest.map(|deadline| self.gate().time.instant_at(deadline))
    }

    /// The instant from which ticks are counted. Tick n begins n tick lengths later, rounded up to a
    /// multiple of 8 ns, as deadlines are. A deadline exactly at the start of a tick does not wait for the
    /// next tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// // The number of the current tick.
    /// let running = timer.now() - timer.started_at();
    /// let step = running.as_nanos() / 8 * 8;
    /// let tick = step / timer.tick_duration().as_nanos();
    /// # let _ = tick;
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn started_at(&self) -> Instant {
        self.gate().time.instant_at(0)
    }

    /// The number of timeouts that were accepted, and have not yet run, been cancelled or been returned.
    /// It includes every call that has returned, and can miss calls of other threads that run at the
    /// same time. It is 0 after `stop`.
    ///
    /// O(threads that schedule).
    pub fn pending_timeouts(&self) -> usize {
        self.shared().counts.pending() as usize
    }

    /// The number of pending timeouts that are not in the wheel. Most of them wait in their slots for much of their
    /// life, so a large number is normal.
    ///
    /// O(slots), like [`next_deadline`](Self::next_deadline). It can miss what other threads do meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// timer.new_timeout(|| (), Duration::from_secs(30))?;
    /// assert_eq!(timer.queue_depth(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue_depth(&self) -> usize {
        self.0.control.queue_depth()
    }

    /// A snapshot of the timer's counters.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// timer.new_timeout(|| (), Duration::from_secs(30))?.cancel();
    /// let metrics = timer.metrics();
    /// assert_eq!((metrics.scheduled, metrics.cancelled, metrics.pending), (1, 1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.shared().counts.snapshot();
        metrics.slots = (self.shared().table.len() * SLOTS) as u64;
        metrics
    }

    /// What each living thread has scheduled here. A thread is listed from its first timeout or future on.
    ///
    /// It takes a lock for a short time. Only threads that ask for counts, that schedule for the
    /// first time, or that end can wait for it.
    ///
    /// O(threads that schedule).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// assert!(timer.thread_metrics().is_empty(), "no thread has scheduled yet");
    /// timer.new_timeout(|| (), Duration::from_secs(30))?;
    /// assert_eq!(timer.thread_metrics()[0].scheduled, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn thread_metrics(&self) -> Vec<ThreadMetrics> {
        self.shared().counts.thread_metrics()
    }

    /// What the ends of the timer share.
    pub(crate) fn control(&self) -> &Control {
        &self.0.control
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.control.shared
    }

    #[inline]
    pub(crate) fn gate(&self) -> &Gate {
        &self.0.control.timer.gate
    }
}

impl fmt::Debug for HashedWheelTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedWheelTimer")
            .field("tick_duration", &self.tick_duration())
            .field("pending_timeouts", &self.pending_timeouts())
            .field("is_stopped", &self.is_stopped())
            .finish_non_exhaustive()
    }
}
