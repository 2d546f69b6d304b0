//! `HashedWheelTimer` and its builder.

#[cfg(all(test, loom))]
mod model;

use crate::clock::{Clock, Follow, Follower, Timebase};
use crate::error::{BuildError, ScheduleError, StopError};
use crate::executor::{Dispatch, Executor, OnRefusal};
use crate::inbox::{self, Refusal, Shard};
use crate::logging::warning;
use crate::metrics::Metrics;
use crate::periodic::{Period, Periodic};
use crate::shared::Shared;
use crate::station::{Ending, Station};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Mutex};
use crate::tick::{TickScale, nanos};
use crate::timeout::{Task, Timeout, TimerShard, TimerTask};
use crate::unprocessed::Unprocessed;
use crate::wheel::{
    Exact, Hashed, Hierarchical, LinuxClassic, MAX_TICKS_PER_WHEEL, WheelKind, WheelSizeError,
};
use crate::worker::{self, Worker};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SHORTEST_TICK: Duration = Duration::from_micros(50);
const LONGEST_TICK: Duration = Duration::from_nanos(1 << 62);
const LONGEST_TURN_NANOS: u64 = 1 << 63;

/// More live timers than this are warned of, once, as in Netty: a timer is made to be shared.
const MANY_TIMERS: usize = 64;

/// Relaxed, as whether that was said: they guard nothing.
static LIVE_TIMERS: AtomicUsize = AtomicUsize::new(0);

/// A timer for very many timeouts that seldom fire.
///
/// Clones are handles to the same timer. When the last one is dropped, the worker cancels what is
/// pending and ends; the drop does not wait for it. To get what is pending back, call
/// [`stop`](Self::stop). A pending task that holds a handle keeps its timer alive.
///
/// See the [crate's page](crate) for the guarantees.
#[derive(Clone)]
pub struct HashedWheelTimer(Arc<Handle>);

struct Handle {
    station: Arc<Station>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl HashedWheelTimer {
    /// A timer with the defaults: a tick of 100 ms, 512 ticks in a turn, no limit, tasks run on
    /// the worker.
    ///
    /// # Errors
    ///
    /// If the worker thread cannot be started.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// A builder with the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs `task` once, `delay` from now, unless it is cancelled before.
    ///
    /// Never early by [`Instant`], and late by less than a tick plus scheduling while the worker
    /// keeps up. [`Duration::ZERO`] means the next tick, [`Duration::MAX`] never. Timeouts that one
    /// thread schedules for the same tick run in the order it scheduled them.
    ///
    /// Costs one read of the processor's clock (of `Instant` where the system does not use that),
    /// one lock that only threads of the same shard share, and the boxing of the task, which is no
    /// allocation if it captures nothing.
    ///
    /// # Errors
    ///
    /// If the timer is stopped or the limit of pending timeouts is reached. The task is inside.
    #[inline]
    pub fn new_timeout<T: TimerTask>(
        &self,
        task: T,
        delay: Duration,
    ) -> Result<Timeout, ScheduleError<T>> {
        let deadline = self.shared().time.now_or_later().saturating_add(nanos(delay));
        self.schedule(task, deadline, false)
    }

    /// As [`new_timeout`](Self::new_timeout), at an instant: no clock is read. An instant in the
    /// past means the next tick.
    ///
    /// # Errors
    ///
    /// As `new_timeout`.
    #[inline]
    pub fn new_timeout_at<T: TimerTask>(
        &self,
        task: T,
        deadline: Instant,
    ) -> Result<Timeout, ScheduleError<T>> {
        self.schedule(task, self.shared().time.nanos_at(deadline), false)
    }

    /// Runs `task` again and again, until its timeout is cancelled, the timer stops, or it panics.
    /// Arming it again allocates nothing. A run in progress is not a pending timeout.
    ///
    /// # Errors
    ///
    /// As [`new_timeout`](Self::new_timeout), and if the period is zero.
    pub fn new_periodic<F>(&self, task: F, period: Period) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut() + Send + 'static,
    {
        if period.every.is_zero() {
            return Err(ScheduleError::ZeroPeriod { task });
        }
        let delay = period.initial_delay.unwrap_or(period.every);
        let deadline = self.shared().time.now_or_later().saturating_add(nanos(delay));
        let scheduled = self.schedule(Periodic { task, period }, deadline, true);
        scheduled.map_err(|error| error.map(|periodic| periodic.task))
    }

    #[inline]
    fn schedule<T: TimerTask>(
        &self,
        task: T,
        deadline: u64,
        repeats: bool,
    ) -> Result<Timeout, ScheduleError<T>> {
        if let Some(quota) = &self.shared().quota {
            if let Err(limit) = quota.acquire() {
                self.shared().metrics.over_limit();
                return Err(ScheduleError::LimitReached { limit, task });
            }
        }
        self.admit(task, deadline, repeats)
    }

    /// As [`new_timeout_at`](Self::new_timeout_at), in place of a timeout that was accepted and whose
    /// task has been dropped: always within the limit, as one that arms itself again.
    pub(crate) fn replace_timeout_at<T: TimerTask>(
        &self,
        task: T,
        deadline: Instant,
    ) -> Result<Timeout, ScheduleError<T>> {
        self.shared().begins_again();
        self.admit(task, self.shared().time.nanos_at(deadline), false)
    }

    /// What counts already as pending.
    #[inline]
    fn admit<T: TimerTask>(
        &self,
        task: T,
        deadline: u64,
        repeats: bool,
    ) -> Result<Timeout, ScheduleError<T>> {
        let station = &*self.0.station;
        let task = Box::new(task);
        let home = &station.shards[inbox::home(station.shards.len())];
        let admitted = home.shard.lock().admit(task, |task| task as Task, deadline, repeats);
        match admitted {
            Ok((index, ask)) => {
                station.shared.answer(ask, deadline);
                Ok(Timeout::pinned(home.clone(), index))
            }
            Err((refusal, task)) => Err(self.refused(*task, refusal)),
        }
    }

    #[cold]
    fn refused<T>(&self, task: T, refusal: Refusal) -> ScheduleError<T> {
        self.shared().ended(1);
        match refusal {
            Refusal::Full => ScheduleError::LimitReached { limit: inbox::SHARD_CAPACITY, task },
            Refusal::Closed | Refusal::Phase(_) => ScheduleError::Stopped { task },
        }
    }

    /// The present instant by the timer's clock.
    #[inline]
    pub fn now(&self) -> Instant {
        self.shared().time.now_instant()
    }

    /// The length of a tick.
    pub fn tick_duration(&self) -> Duration {
        Duration::from_nanos(self.shared().scale.tick_nanos())
    }

    /// The instant that ticks are counted from: tick n begins n ticks later. Deadlines at a tick's
    /// begin are met without the wait for the next one.
    pub fn started_at(&self) -> Instant {
        self.shared().time.instant_at(0)
    }

    /// Timeouts accepted, and not yet run, cancelled or returned. Exact: 0 after `stop`.
    pub fn pending_timeouts(&self) -> usize {
        self.0.station.with_all_shards(|states| states.iter().map(|s| s.live()).sum())
    }

    /// A snapshot of what the timer has done so far.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.0.station.with_all_shards(|states| {
            for state in states {
                metrics.add(state.counts());
                metrics.pending += state.live() as u64;
                metrics.queue_depth += state.queued() as u64;
            }
        });
        self.shared().metrics.fill(&mut metrics);
        metrics
    }

    /// Ends the timer and returns what has not expired, ordered by deadline.
    ///
    /// From here on every `new_timeout` is refused, and nothing more is handed to the executor. The
    /// call waits for a task that runs on the worker, and for no other task that was handed over
    /// before. When several threads stop a timer, all return when it has ended, and each timeout goes
    /// to exactly one of them. One of those that call `stop` also waits for the end of the worker's
    /// thread, and so for the drop of the executor and of thread-locals that tasks have used there.
    ///
    /// # Errors
    ///
    /// If called by a task on the timer's own worker: it would wait for itself. Two timers whose
    /// tasks stop each other do wait for ever; use [`stop_timeout`](Self::stop_timeout) there.
    pub fn stop(&self) -> Result<Vec<Unprocessed>, StopError> {
        self.stop_until(None)
    }

    /// Stops the timer as [`stop`](Self::stop) does, and waits for `limit` at the longest. It waits
    /// neither for the end of the worker's thread nor for the drop of the executor.
    ///
    /// Only a task can make it fail. If the worker runs no task and hands none over, the call ends
    /// the timer itself, without the worker: even with a limit of zero, even if the worker's thread
    /// does not get a processor. The call takes the returned timeouts out one by one, and the limit
    /// does not interrupt that.
    ///
    /// # Errors
    ///
    /// The errors of `stop`, and one if the worker is still busy with a task: it names the task's
    /// timeout. The timer is closed all the same, and nothing more runs after that task. Pending
    /// timeouts stay pending until the task ends; call again to get them.
    pub fn stop_timeout(&self, limit: Duration) -> Result<Vec<Unprocessed>, StopError> {
        self.stop_until(Some(limit))
    }

    fn stop_until(&self, limit: Option<Duration>) -> Result<Vec<Unprocessed>, StopError> {
        let station = &*self.0.station;
        if station.shared.alarm.parker().is_current_thread() {
            return Err(StopError::FromWorker);
        }
        station.close();
        station.lifecycle.order_return();
        station.shared.alarm.call();
        if let Some(limit) = limit {
            // A limit beyond the end of time is no limit.
            let until = Instant::now().checked_add(limit);
            let running = || StopError::StillRunning { limit, timeout: station.running() };
            return station.finish_until(until).ok_or_else(running);
        }
        let unprocessed = station.lifecycle.wait_finished(None).unwrap_or_default();
        // The drop of the executor and of the values that tasks have stored in the thread may take
        // longer than any limit. A panic there ends with the thread.
        let thread = self.0.thread.lock().take();
        thread.map(JoinHandle::join);
        Ok(unprocessed)
    }

    /// Whether the timer has ended, after a stop: nothing runs or is handed over any more. The
    /// worker's thread may take a moment longer.
    pub fn is_stopped(&self) -> bool {
        self.0.station.lifecycle.is_finished()
    }

    fn shared(&self) -> &Shared {
        &self.0.station.shared
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.station.close();
        let uncollected = self.station.lifecycle.order_cancel();
        self.station.shared.alarm.call();
        uncollected.into_iter().for_each(Unprocessed::cancel);
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

/// Makes a [`HashedWheelTimer`]; from [`HashedWheelTimer::builder`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    tick_duration: Duration,
    wheel: WheelKind,
    ticks_per_wheel: usize,
    max_pending_timeouts: Option<usize>,
    executor: Option<Arc<dyn Executor>>,
    on_refusal: OnRefusal,
    thread_name: String,
    stack_size: Option<usize>,
    clock: Option<Arc<dyn Clock>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            tick_duration: Duration::from_millis(100),
            wheel: WheelKind::default(),
            ticks_per_wheel: 512,
            max_pending_timeouts: None,
            executor: None,
            on_refusal: OnRefusal::default(),
            thread_name: "wheelwork-timer".to_owned(),
            stack_size: None,
            clock: None,
        }
    }
}

impl Builder {
    /// The length of a tick, from 50 µs: how late a timeout may be. The default is 100 ms.
    pub fn tick_duration(self, tick_duration: Duration) -> Self {
        Self { tick_duration, ..self }
    }

    /// The structure that the timer runs on. The default is the hashed wheel.
    ///
    /// ```
    /// use wheelwork::{HashedWheelTimer, WheelKind};
    ///
    /// let timer = HashedWheelTimer::builder()
    ///     .wheel(WheelKind::Hierarchical)
    ///     .ticks_per_wheel(64) // in each level
    ///     .build()?;
    /// # Ok::<(), wheelwork::BuildError>(())
    /// ```
    pub fn wheel(self, wheel: WheelKind) -> Self {
        Self { wheel, ..self }
    }

    /// The number of buckets. The default is 512.
    ///
    /// Of the hashed wheel: at most 2^30, rounded up to a power of two. Of each level of a
    /// hierarchical wheel: 2 to 65,536. The classic Linux wheel has its own sizes and ignores this.
    pub fn ticks_per_wheel(self, ticks_per_wheel: usize) -> Self {
        Self { ticks_per_wheel, ..self }
    }

    /// How many timeouts may be pending at once, at least 1. The default is no limit.
    ///
    /// A limit costs one counter that all threads share. Timeouts that arm themselves again are
    /// always let in, and so is the one with which [`idle`](crate::idle) replaces its own that an
    /// executor has dropped. So the number can exceed the limit by as many as the executor has had at
    /// once.
    pub fn max_pending_timeouts(self, limit: usize) -> Self {
        Self { max_pending_timeouts: Some(limit), ..self }
    }

    /// Where tasks run. The default is on the worker.
    pub fn executor(self, executor: impl Executor) -> Self {
        Self { executor: Some(Arc::new(executor)), ..self }
    }

    /// What happens to a job that the executor refuses. The default is that it runs on the worker.
    pub fn on_refusal(self, on_refusal: OnRefusal) -> Self {
        Self { on_refusal, ..self }
    }

    /// The name of the worker thread.
    pub fn thread_name(self, name: impl Into<String>) -> Self {
        Self { thread_name: name.into(), ..self }
    }

    /// The stack size of the worker thread, on which inline tasks run. The default is the standard
    /// library's.
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// Where the time comes from. The default is the monotonic system clock.
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// Starts the worker thread.
    ///
    /// # Errors
    ///
    /// If a value is out of its range, or if the thread cannot be started.
    pub fn build(self) -> Result<HashedWheelTimer, BuildError> {
        let scale = self.tick_scale()?;
        match self.wheel {
            WheelKind::Hashed => {
                let wheel = self.hashed(scale)?;
                self.start(scale, wheel)
            }
            WheelKind::Hierarchical => {
                let wheel = Hierarchical::with_buckets(self.ticks_per_wheel)?;
                self.start(scale, wheel)
            }
            WheelKind::LinuxClassic => self.start(scale, LinuxClassic::default()),
        }
    }

    fn start(
        self,
        scale: TickScale,
        wheel: impl Exact + Send + 'static,
    ) -> Result<HashedWheelTimer, BuildError> {
        if self.max_pending_timeouts == Some(0) {
            return Err(BuildError::NoPendingAllowed);
        }
        if self.thread_name.contains('\0') {
            return Err(BuildError::ThreadName { name: self.thread_name });
        }
        let station = Arc::new(self.station(scale, wheel.bucket_count()));
        // From here on a clock may wait for the worker, even if its thread cannot start.
        let ending = Ending::of(station.clone());
        let weak: std::sync::Weak<Station> = Arc::downgrade(&station);
        let pace = station.shared.time.attach(Follower::new(weak as std::sync::Weak<dyn Follow>));
        let Self { executor, on_refusal, .. } = self;
        let dispatch = executor.map(|executor| Dispatch { executor, on_refusal });
        let worker = Worker::new(station.clone(), wheel, dispatch, pace, ending);
        let thread = start_thread(self.thread_name, self.stack_size, worker)?;
        station.shared.alarm.parker().adopt(thread.thread());
        Ok(HashedWheelTimer(Arc::new(Handle { station, thread: Mutex::new(Some(thread)) })))
    }

    fn tick_scale(&self) -> Result<TickScale, BuildError> {
        let tick_duration = self.tick_duration;
        Some(tick_duration)
            .filter(|tick| (SHORTEST_TICK..=LONGEST_TICK).contains(tick))
            .and_then(|tick| NonZeroU64::new(nanos(tick)))
            .map(TickScale::new)
            .ok_or(BuildError::TickDuration { tick_duration })
    }

    fn hashed(&self, scale: TickScale) -> Result<Hashed, BuildError> {
        let size_error = WheelSizeError { ticks_per_wheel: self.ticks_per_wheel };
        if !(1..=MAX_TICKS_PER_WHEEL).contains(&self.ticks_per_wheel) {
            return Err(size_error.into());
        }
        let ticks_per_wheel = self.ticks_per_wheel.next_power_of_two();
        if scale.start_of(ticks_per_wheel as u64) > LONGEST_TURN_NANOS {
            let tick_duration = self.tick_duration;
            return Err(BuildError::TurnTooLong { tick_duration, ticks_per_wheel });
        }
        Hashed::new(ticks_per_wheel).map_err(|_| size_error.into())
    }

    fn station(&self, scale: TickScale, buckets: usize) -> Station {
        let time = Timebase::starting_now(self.clock.clone());
        let shared = Arc::new(Shared::new(time, scale, self.max_pending_timeouts));
        let count = inbox::shard_count();
        let part = buckets / count;
        let shards = (0..count)
            .map(|n| Arc::new(TimerShard { shard: Shard::new(n, part), shared: shared.clone() }))
            .collect();
        Station::new(shared, shards)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("tick_duration", &self.tick_duration)
            .field("wheel", &self.wheel)
            .field("ticks_per_wheel", &self.ticks_per_wheel)
            .field("max_pending_timeouts", &self.max_pending_timeouts)
            .field("on_refusal", &self.on_refusal)
            .field("thread_name", &self.thread_name)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

fn start_thread(
    name: String,
    stack_size: Option<usize>,
    worker: Worker<impl Exact + Send + 'static>,
) -> Result<JoinHandle<()>, BuildError> {
    let mut builder = thread::Builder::new().name(name);
    if let Some(bytes) = stack_size {
        builder = builder.stack_size(bytes);
    }
    let counted = LiveTimer::count();
    let started = builder.spawn(move || {
        let _until_the_end = counted;
        worker::live(worker);
    });
    started.map_err(|source| BuildError::ThreadStart { source })
}

/// One of the live timers, from before its thread starts until that ends.
struct LiveTimer;

impl LiveTimer {
    fn count() -> Self {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let live = LIVE_TIMERS.fetch_add(1, Ordering::Relaxed) + 1;
        if live > MANY_TIMERS && !WARNED.swap(true, Ordering::Relaxed) {
            warning!("{live} live timers in this process: a timer is made to be shared");
        }
        Self
    }
}

impl Drop for LiveTimer {
    fn drop(&mut self) {
        LIVE_TIMERS.fetch_sub(1, Ordering::Relaxed);
    }
}
