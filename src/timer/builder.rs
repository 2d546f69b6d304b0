//! The builder: checks the settings, starts the worker's thread, and warns of too many live timers.

use super::error::BuildError;
use super::hashed_wheel_timer::{Handle, HashedWheelTimer};
use crate::base::logging::warning;
use crate::base::sync::Arc;
use crate::base::sync::thread::{self, JoinHandle};
use crate::executor::{Dispatch, Executor, OnRefusal};
use crate::time::tick::{TickScale, nanos};
use crate::time::{Clock, Follower, FollowingTimer, Timebase};
use crate::timeout::Shared;
use crate::wheel::{
    Exact, Hashed, Hierarchical, LinuxClassic, MAX_TICKS_PER_WHEEL, WheelSizeError,
};
use crate::worker::{Control, Ending, Worker};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const DEFAULT_TICK: Duration = Duration::from_millis(100);
// The texts of `BuildError` have these limits too.
const SHORTEST_TICK: Duration = Duration::from_micros(50);
const LONGEST_TICK: Duration = Duration::from_nanos(1 << 62);
const LONGEST_TURN_NANOS: u64 = 1 << 63;

/// More live timers than this cause one warning, like in Netty: one timer is meant to be shared.
const MANY_TIMERS: usize = 64;

/// The number of live timers in this process. Relaxed, like the flag for the warning: they guard
/// nothing.
static LIVE_TIMERS: AtomicUsize = AtomicUsize::new(0);

/// The structure under a [`HashedWheelTimer`](crate::HashedWheelTimer); see
/// [`Builder::wheel`](crate::timer::Builder::wheel).
///
/// All guarantees of the timer hold with each structure. [Choosing a wheel](crate::guide::choosing_a_wheel) compares
/// them. The non-cascading wheel of Linux is not offered, because it is not exact: see
/// [`wheel::Linux`](crate::wheel::Linux).
///
/// # Examples
///
/// Many delays are much longer than a turn of the wheel, which is 51 s by default:
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::timer::WheelKind;
///
/// let timer = HashedWheelTimer::builder().wheel(WheelKind::Hierarchical).build()?;
/// timer.new_timeout(|| println!("a day later"), Duration::from_secs(24 * 60 * 60))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WheelKind {
    /// One ring of `ticks_per_wheel` buckets, with rounds:
    /// [`wheel::Hashed`](crate::wheel::Hashed). It takes the least memory, and is the fastest
    /// unless delays are many turns long.
    #[default]
    Hashed,
    /// Levels of `ticks_per_wheel` buckets each, allocated on demand:
    /// [`wheel::Hierarchical`](crate::wheel::Hierarchical).
    Hierarchical,
    /// One level of 256 buckets and four of 64:
    /// [`wheel::LinuxClassic`](crate::wheel::LinuxClassic).
    LinuxClassic,
}

impl HashedWheelTimer {
    /// A timer with the defaults: a tick of 100 ms, 512 buckets, no limit of pending timeouts, and tasks
    /// that run on the worker.
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
}

/// Builds a [`HashedWheelTimer`]. Created by [`HashedWheelTimer::builder`].
/// [Sizing](crate::guide::sizing) helps to choose the settings.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::executor::ThreadPool;
///
/// let timer = HashedWheelTimer::builder()
///     .tick_duration(Duration::from_millis(10))
///     .ticks_per_wheel(4_096)
///     .max_pending_timeouts(10_000_000)
///     .executor(ThreadPool::with_size(2, 1_000)?)
///     .thread_name("sessions")
///     .build()?;
/// # drop(timer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    tick_duration: Option<Duration>,
    wheel: WheelKind,
    ticks_per_wheel: Option<usize>,
    max_pending_timeouts: Option<usize>,
    executor: Option<Arc<dyn Executor>>,
    on_refusal: Option<OnRefusal>,
    thread_name: Option<String>,
    stack_size: Option<usize>,
    clock: Option<Arc<dyn Clock>>,
}

impl Builder {
    /// The length of a tick, at least 50 µs. A timeout may be late by this much. The default is 100
    /// ms.
    pub fn tick_duration(self, tick_duration: Duration) -> Self {
        Self { tick_duration: Some(tick_duration), ..self }
    }

    /// The structure that the timer runs on. The default is the hashed wheel.
    ///
    /// ```
    /// use wheelwork::HashedWheelTimer;
    /// use wheelwork::timer::WheelKind;
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
    /// For the hashed wheel, this is at most 2^30, and rounded up to a power of two. For a
    /// hierarchical wheel, this is the number of buckets in each level, 2 to 65,536. The classic
    /// Linux wheel has fixed sizes: with it, [`build`](Self::build) refuses this setting.
    pub fn ticks_per_wheel(self, ticks_per_wheel: usize) -> Self {
        Self { ticks_per_wheel: Some(ticks_per_wheel), ..self }
    }

    /// The greatest number of timeouts that may be pending at once, at least 1. The default is no
    /// limit.
    ///
    /// The limit is exact: a timeout is refused only if as many others are pending, being scheduled or just ending. A
    /// cancel that has returned has made room, and so has an end that a count shows. But a thread that learns from
    /// [`is_cancelled`](crate::Timeout::is_cancelled) or [`is_pending`](crate::Timeout::is_pending) that another thread
    /// ends a timeout may still be refused for a moment.
    /// The number of pending timeouts can exceed the limit in two cases. A timeout that goes on after a
    /// run is always admitted; there are at most as many of these as the executor had jobs at once. A
    /// [`Sleep`](crate::future::Sleep) counts, but is never refused. The timeouts of the
    /// [`idle`](crate::idle) manager do not count.
    ///
    /// A limit costs a schedule and a cancel one atomic operation each, on a counter that all threads share.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, RefusalReason};
    /// let timer = HashedWheelTimer::builder().max_pending_timeouts(1).build()?;
    /// timer.new_timeout(|| (), Duration::from_secs(30))?;
    /// let refused = timer.new_timeout(|| (), Duration::from_secs(30)).unwrap_err();
    /// assert_eq!(refused.reason(), RefusalReason::LimitReached { limit: 1 });
    /// let task = refused.into_task(); // to run it at once, for example
    /// # task();
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn max_pending_timeouts(self, limit: usize) -> Self {
        Self { max_pending_timeouts: Some(limit), ..self }
    }

    /// The executor that runs the tasks. By default, they run on the worker.
    pub fn executor(self, executor: impl Executor) -> Self {
        Self { executor: Some(Arc::new(executor)), ..self }
    }

    /// The policy for a job that the executor refuses. By default, it runs on the worker. Without an executor,
    /// [`build`](Self::build) refuses this setting.
    ///
    /// # Examples
    ///
    /// ```
    /// use wheelwork::HashedWheelTimer;
    /// use wheelwork::executor::{OnRefusal, ThreadPool};
    ///
    /// let pool = ThreadPool::with_size(4, 1000)?;
    /// let timer = HashedWheelTimer::builder()
    ///     .executor(pool.clone())
    ///     .on_refusal(OnRefusal::callback(|job| {
    ///         eprintln!("the pool is full: {:?} is dropped", job.timeout());
    ///     }))
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_refusal(self, on_refusal: OnRefusal) -> Self {
        Self { on_refusal: Some(on_refusal), ..self }
    }

    /// The name of the worker thread. The default is `wheelwork-timer`.
    pub fn thread_name(self, name: impl Into<String>) -> Self {
        Self { thread_name: Some(name.into()), ..self }
    }

    /// The stack size of the worker thread, in bytes. Inline tasks run on this stack. The default
    /// is that of the standard library.
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// The clock that the timer runs on. The default is the system's monotonic clock.
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// Starts the worker thread.
    ///
    /// # Errors
    ///
    /// If a setting is out of its range, if it would have no effect beside the other settings, if there is no memory
    /// for the buckets or no file descriptor for the clock, or if the thread cannot be started. On
    /// WebAssembly without threads, none can.
    pub fn build(self) -> Result<HashedWheelTimer, BuildError> {
        // There is neither a thread nor a clock, and to read one would panic.
        if cfg!(all(target_family = "wasm", target_os = "unknown")) {
            let source = std::io::ErrorKind::Unsupported.into();
            return Err(BuildError::ThreadStart { source });
        }
        let (scale, size) = (self.tick_scale()?, self.ticks_per_wheel.unwrap_or(512));
        match self.wheel {
            WheelKind::Hashed => {
                let wheel = self.hashed(scale, size)?;
                self.start(scale, wheel)
            }
            WheelKind::Hierarchical => {
                let wheel = Hierarchical::with_buckets(size).map_err(BuildError::LevelSize)?;
                self.start(scale, wheel)
            }
            WheelKind::LinuxClassic => match self.ticks_per_wheel {
                Some(ticks_per_wheel) => Err(BuildError::FixedSize { ticks_per_wheel }),
                None => self.start(scale, LinuxClassic::default()),
            },
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
        if self.executor.is_none() && self.on_refusal.is_some() {
            return Err(BuildError::NoExecutor);
        }
        let name = self.thread_name.unwrap_or_else(|| "wheelwork-timer".to_owned());
        if name.contains('\0') {
            return Err(BuildError::ThreadName { name });
        }
        let time = Timebase::starting_now(self.clock.clone());
        let buckets = wheel.bucket_count();
        let (shared, table) = Shared::new(time, scale, self.max_pending_timeouts, buckets);
        let control = Arc::new(Control::new(shared));
        // A clock may wait for the worker from here on, so `ending` must exist even if no thread starts.
        let ending = Ending(control.clone());
        let follower: Arc<dyn FollowingTimer> = control.clone();
        let pace = control.shared.gate.time.attach(Follower::new(&follower));
        #[cfg(all(target_os = "linux", feature = "boottime", not(any(loom, shuttle))))]
        if pace == crate::time::Pace::WithSuspends {
            let counted = control.shared.alarm.parker().count_suspends();
            counted.map_err(|source| BuildError::Sleep { source })?;
        }
        let on_refusal = self.on_refusal.unwrap_or_default();
        let dispatch = self.executor.map(|executor| Dispatch { executor, on_refusal });
        let worker = Worker::new(ending, table, wheel, dispatch, pace);
        let thread = start_thread(name, self.stack_size, worker)?;
        control.shared.alarm.parker().adopt(thread.thread());
        *control.thread.lock() = Some(thread);
        let handle = Handle {
            control,
            #[cfg(feature = "metrics")]
            published: crate::base::sync::Mutex::new(crate::metrics::Lateness::default()),
        };
        Ok(HashedWheelTimer(Arc::new(handle)))
    }

    fn tick_scale(&self) -> Result<TickScale, BuildError> {
        let tick_duration = self.tick_duration.unwrap_or(DEFAULT_TICK);
        Some(tick_duration)
            .filter(|tick| (SHORTEST_TICK..=LONGEST_TICK).contains(tick))
            .and_then(|tick| NonZeroU64::new(nanos(tick)))
            .map(TickScale::new)
            .ok_or(BuildError::TickDuration { tick_duration })
    }

    fn hashed(&self, scale: TickScale, ticks_per_wheel: usize) -> Result<Hashed, BuildError> {
        if !(1..=MAX_TICKS_PER_WHEEL).contains(&ticks_per_wheel) {
            return Err(BuildError::TicksPerWheel(WheelSizeError { ticks_per_wheel }));
        }
        let ticks_per_wheel = ticks_per_wheel.next_power_of_two();
        if scale.start_of(ticks_per_wheel as u64) > LONGEST_TURN_NANOS {
            let tick_duration = self.tick_duration.unwrap_or(DEFAULT_TICK);
            return Err(BuildError::TurnTooLong { tick_duration, ticks_per_wheel });
        }
        Hashed::new(ticks_per_wheel).map_err(|_| BuildError::WheelMemory { ticks_per_wheel })
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
        worker.run_thread();
    });
    started.map_err(|source| BuildError::ThreadStart { source })
}

/// Counts one live timer, from before its thread starts until the thread ends.
struct LiveTimer;

impl LiveTimer {
    fn count() -> Self {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let live = LIVE_TIMERS.fetch_add(1, Ordering::Relaxed) + 1;
        if live > MANY_TIMERS && !WARNED.swap(true, Ordering::Relaxed) {
            warning!(
                "{live} live timers in this process: expected at most {MANY_TIMERS}; share one"
            );
        }
        Self
    }
}

impl Drop for LiveTimer {
    fn drop(&mut self) {
        LIVE_TIMERS.fetch_sub(1, Ordering::Relaxed);
    }
}
