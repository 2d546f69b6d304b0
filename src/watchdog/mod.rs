//! The watchdog: it tells on the timer's worker that a task, a runtime or a shard is stuck.
//!
//! A watched thing is a connection of an idle manager that nobody reads or writes: to feed it is a touch. This
//! file adds its name and its recovery. All else, the races included, is the idle manager's.
//!
//! **The order of a report and its recovery.** `Stall::tell` sets `told` after the callback has returned, or has
//! panicked. A feed that finds it set clears it and reports the recovery. So a recovery comes after its report, and
//! each first report has at most one recovery. A feed during the callback leaves the recovery to the next feed.

use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicBool, Mutex, Ordering};
use crate::idle::{Answer, IdleEvent, IdleKind, IdlePolicy, IdleTimeouts, Watch};
use crate::timer::{HashedWheelTimer, RefusalReason};
use std::fmt;
use std::time::{Duration, Instant};

/// Reports what has not been fed for its limit: a thread, a runtime, a shard.
///
/// The timer has a worker thread of its own. So it tells that a runtime is stuck while that runtime cannot do anything
/// itself, even if the runtime is the timer's executor. [The guide](crate::guide::a_watchdog) says how to watch what.
///
/// Clones are handles to the same watchdog. It keeps its timer alive while a clone exists, or while
/// something is watched.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, Watchdog, WatchdogEvent};
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10)).build()?;
/// let (sender, events) = mpsc::channel();
/// let watchdog = Watchdog::new(&timer, move |name: &str, event| {
///     let _ = sender.send((name.to_owned(), event));
/// });
///
/// let shard = watchdog.watch("shard 3", Duration::from_millis(50))?;
/// shard.feed(); // in each turn of its loop
///
/// let (name, event) = events.recv()?; // now it is stuck
/// assert_eq!(name, "shard 3");
/// assert!(matches!(event, WatchdogEvent::Stuck { first: true, .. }));
///
/// shard.feed(); // it goes on
/// assert!(matches!(events.recv()?.1, WatchdogEvent::Recovered { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Watchdog {
    idle: IdleTimeouts<Arc<Stall>>,
    shared: Arc<Shared>,
}

struct Shared {
    timer: HashedWheelTimer,
    tell: Box<Tell>,
}

impl Shared {
    /// The present. `None` if the clock panics, since that must not lose a recovery.
    fn now(&self) -> Option<Instant> {
        let context = self.timer.context();
        context.now_contained().map(|now| self.timer.gate().time.instant_at(now))
    }

    /// Calls the user's callback, and counts its panic.
    fn tell(&self, name: &str, event: WatchdogEvent) {
        if catch_panic::panics(|| (self.tell)(name, event)) {
            self.timer.context().counts.worker.task_panicked();
            warning!("the callback of a watchdog panicked");
        }
    }
}

/// Gets the name of a watched thing, and what has happened.
type Tell = dyn Fn(&str, WatchdogEvent) + Send + Sync;

/// What a [`Watchdog`] tells of a watched thing.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::WatchdogEvent;
/// fn on_event(name: &str, event: WatchdogEvent) {
///     match event {
///         WatchdogEvent::Stuck { unfed_for, .. } if unfed_for > Duration::from_secs(60) => {
///             eprintln!("{name} is stuck for good");
///             std::process::abort(); // whoever supervises the process starts it again
///         }
///         WatchdogEvent::Stuck { unfed_for, .. } => eprintln!("{name} is stuck: {unfed_for:?}"),
///         WatchdogEvent::Recovered { unfed_for } => eprintln!("{name} was stuck: {unfed_for:?}"),
///         _ => {}
///     }
/// }
/// # on_event("", WatchdogEvent::Recovered { unfed_for: Duration::ZERO });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchdogEvent {
    /// It has not been fed for its limit. Told on the timer's worker, and again after each further limit, until
    /// it is fed.
    Stuck {
        /// The time since it was last fed.
        unfed_for: Duration,
        /// Whether this is the first report since then.
        first: bool,
    },
    /// It was fed again. Told by that feed, on its thread. If the thing is dropped while it is stuck, no recovery
    /// is told.
    Recovered {
        /// The time from the feed before the report to this one.
        unfed_for: Duration,
    },
}

impl Watchdog {
    /// Creates a watchdog that calls `tell` with the name of a watched thing, and with what has happened.
    ///
    /// A report is told on the timer's worker, even if the timer has an executor, because the executor may be what
    /// is stuck. So keep `tell` short. A recovery is told on the thread that feeds. Calls for two things may
    /// overlap.
    ///
    /// A panic of `tell` is caught, on both threads, and counted in [`Metrics::panicked`](crate::Metrics::panicked).
    /// The thing stays watched, and the report counts as told.
    ///
    /// `tell` may feed the thing itself. A feed within its first report is told as a recovery by the next feed, and
    /// one within a further report calls `tell` from within `tell`: hold no lock there.
    pub fn new<F>(timer: &HashedWheelTimer, tell: F) -> Self
    where
        F: Fn(&str, WatchdogEvent) + Send + Sync + 'static,
    {
        let shared = Arc::new(Shared { timer: timer.clone(), tell: Box::new(tell) });
        let on_idle = {
            let shared = shared.clone();
            move |stall: &mut Arc<Stall>, event| stall.tell(event, &shared)
        };
        Self { idle: IdleTimeouts::on_worker(timer, on_idle), shared }
    }

    /// Watches a thing that feeds the watchdog at least once in each `limit`. It counts as fed now.
    ///
    /// It is reported once it has not been fed for `limit`: never earlier, and later by less than a tick, plus
    /// scheduling. [`Duration::MAX`] never passes. With a limit shorter than a tick, it is reported in each tick
    /// before which it was not fed within the limit. Zero is such a limit: it does not turn the watching off.
    ///
    /// It costs what [`IdleTimeouts::watch`] costs. The timer's limit of pending timeouts does not apply.
    ///
    /// # Errors
    ///
    /// If the timer is stopped, or has no more room.
    pub fn watch(
        &self,
        name: impl Into<String>,
        limit: Duration,
    ) -> Result<Watched, RefusalReason> {
        let stall = Arc::new(Stall {
            name: name.into(),
            told: AtomicBool::new(false),
            last_fed: Mutex::new((None, Duration::ZERO)),
        });
        // A duration of zero would turn the watching off.
        let policy = IdlePolicy::new().reader(limit.max(Duration::from_nanos(1)));
        let watch = self.idle.watch(stall.clone(), &policy)?;
        Ok(Watched { watch, stall, shared: self.shared.clone() })
    }

    /// The number of watched things.
    pub fn watched(&self) -> usize {
        self.idle.watched()
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("watched", &self.watched()).finish_non_exhaustive()
    }
}

/// A watched thing, from [`Watchdog::watch`]. Its drop ends the watching. A drop while it is stuck tells no recovery.
///
/// Threads that work on one thing share it by reference or in an [`Arc`](std::sync::Arc).
///
/// # Examples
///
/// A thread that waits for work is not stuck:
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::Watched;
/// fn serve(jobs: mpsc::Receiver<u32>, watched: Watched) {
///     loop {
///         let job = {
///             let _waits = watched.paused();
///             jobs.recv()
///         };
///         let Ok(job) = job else { return };
///         println!("{job} takes less than the limit");
///     }
/// }
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # let watchdog = wheelwork::Watchdog::new(&timer, |_, _| ());
/// # let (sender, jobs) = mpsc::channel();
/// # sender.send(1)?;
/// # drop(sender);
/// # serve(jobs, watchdog.watch("worker", Duration::from_secs(5))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the handle ends the watching"]
pub struct Watched {
    watch: Watch,
    stall: Arc<Stall>,
    shared: Arc<Shared>,
}

impl Watched {
    /// Feeds the watchdog. O(1): a clock read, a store and a load. It allocates nothing and takes no lock.
    ///
    /// If the thing was reported as stuck, this call tells of its recovery. A panic of the callback does not reach
    /// the caller.
    #[inline]
    pub fn feed(&self) {
        self.watch.record_read();
        self.recover();
    }

    /// Feeds the watchdog, and suspends the watching until the guard is dropped, which feeds it again. Use it
    /// while a thread waits for work. Pauses nest. It allocates nothing and takes no lock.
    pub fn paused(&self) -> PausedWatchdog<'_> {
        self.feed();
        self.watch.pause();
        PausedWatchdog(self)
    }

    /// The time since it was last fed.
    pub fn unfed_for(&self) -> Duration {
        self.watch.silent_for()
    }

    /// The name that was given to [`Watchdog::watch`].
    pub fn name(&self) -> &str {
        &self.stall.name
    }

    #[inline]
    fn recover(&self) {
        // Relaxed: only a hint. The swap decides.
        if self.stall.told.load(Ordering::Relaxed) {
            self.stall.recover(&self.shared);
        }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("name", &self.name())
            .field("unfed_for", &self.unfed_for())
            .finish_non_exhaustive()
    }
}

/// A pause that ends when this guard is dropped, from [`Watched::paused`].
///
/// # Examples
///
/// ```
/// # use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// # use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, ManualClock, Watchdog};
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let told = Arc::new(AtomicU32::new(0));
/// let count = told.clone();
/// let watchdog = Watchdog::new(&timer, move |_, _| drop(count.fetch_add(1, Ordering::Relaxed)));
/// let watched = watchdog.watch("event loop", Duration::from_secs(5))?;
/// {
///     let _polls = watched.paused();
///     clock.advance_through(Duration::from_secs(3600)); // there are no events
/// }
/// assert_eq!(watched.unfed_for(), Duration::ZERO);
/// assert_eq!(told.load(Ordering::Relaxed), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard ends the pause"]
pub struct PausedWatchdog<'a>(&'a Watched);

impl Drop for PausedWatchdog<'_> {
    fn drop(&mut self) {
        self.0.watch.resume();
    }
}

/// The state that a watched thing shares with the check of the idle manager.
struct Stall {
    name: String,
    /// Whether it was reported, and its recovery was not.
    told: AtomicBool,
    /// When it was last fed before the report, unless the clock panicked, and the silence that was reported.
    last_fed: Mutex<(Option<Instant>, Duration)>,
}

impl Stall {
    /// Reports that it is stuck. The end of the timer is no report.
    fn tell(&self, event: IdleEvent, shared: &Shared) -> Answer {
        let IdleEvent { kind, first, silent_for, .. } = event;
        if kind == IdleKind::TimerStopped {
            return Answer::StopWatching;
        }
        shared.tell(&self.name, WatchdogEvent::Stuck { unfed_for: silent_for, first });
        if first {
            let last_fed = shared.now().and_then(|now| now.checked_sub(silent_for));
            *self.last_fed.lock() = (last_fed, silent_for);
            self.told.store(true, Ordering::Release);
        }
        Answer::KeepWatching
    }

    #[cold]
    fn recover(&self, shared: &Shared) {
        if self.told.swap(false, Ordering::Acquire) {
            let (last_fed, at_least) = *self.last_fed.lock();
            let unfed_for = last_fed
                .zip(shared.now())
                .map_or(at_least, |(fed, now)| now.saturating_duration_since(fed));
            shared.tell(&self.name, WatchdogEvent::Recovered { unfed_for });
        }
    }
}
