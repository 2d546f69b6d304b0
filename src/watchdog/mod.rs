//! Reports on the timer's worker that a thread, a runtime or a shard is stuck. [A watchdog](crate::guide::a_watchdog)
//! shows how.

// A watched thing is a connection of an idle manager that nobody reads or writes: to feed it is a touch. This
// folder adds its name, its recovery, and in `silence` what counts. All else is the idle manager's.
//
// **One call at a time.** `Stall::state` records which call for a thing runs, and which one was the last:
//
// | state | meaning | transitions |
// |---|---|---|
// | `QUIET` | its last call was no report | the worker reports -> `TELLING` |
// | `TELLING` | the worker reports it as stuck | fed -> `FED`; the call returns -> `STUCK` |
// | `STUCK` | its last call was a report | the worker reports again -> `TELLING`; fed -> `FED` |
// | `FED` | it was fed after a report that runs, or its recovery is being told | the report returns -> `STUCK`; the recovery returns -> `QUIET` |
//
// Whoever changes `STUCK` to `FED` tells the recovery. This is the thread that feeds, or the worker after a report, if
// the thing was fed meanwhile. While a recovery is being told, no report begins. So calls for one thing never overlap,
// and the last one is a recovery if it was fed since the last report.
//
// **A feed that sees no report.** A feed stores its time and then loads the state; the worker changes the state and
// then loads the time of the last feed. Without a fence, the feed can miss the state while the worker misses the feed.
// The next feed then tells the recovery. A pause may be followed by no feed for a long time, so it has the fence.

mod silence;

use self::silence::Silence;
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicU8, AtomicU64, Ordering, fence};
use crate::idle::{Answer, Idle, IdleEvent, IdleKind, IdlePolicy, IdleTimeouts, PauseGuard, Watch};
use crate::time::tick::nanos;
use crate::timeout::RefusalReason;
use crate::timer::HashedWheelTimer;
use std::fmt;
use std::time::Duration;

/// Reports what has not been fed for its limit: a thread, a runtime, a shard.
///
/// Because the timer runs on its own thread, it can report a stuck runtime while that runtime cannot do anything
/// itself, even if the runtime is the timer's executor. [The guide](crate::guide::a_watchdog) shows how to watch a
/// loop, a thread or a runtime.
///
/// Clones are handles to the same watchdog. It keeps its timer alive while a clone exists, or while
/// something is watched.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::watchdog::{Watchdog, WatchdogEvent};
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
    idle: IdleTimeouts<Entry>,
    shared: Arc<Shared>,
}

struct Shared {
    timer: HashedWheelTimer,
    tell: Box<Tell>,
}

impl Shared {
    /// Calls the user's callback, and counts its panic.
    fn tell(&self, name: &str, event: WatchdogEvent) {
        if catch_panic::panics(|| (self.tell)(name, event)) {
            self.timer.shared().counts.worker.panicked.add_shared(1);
            warning!("the callback of a watchdog panicked");
        }
    }
}

/// Gets the name of a watched thing, and what has happened.
type Tell = dyn Fn(&str, WatchdogEvent) + Send + Sync;

/// What a [`Watchdog`] reports of a watched thing.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use wheelwork::watchdog::WatchdogEvent;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchdogEvent {
    /// It has not been fed for its limit. Reported on the timer's worker, and again after each further limit, until
    /// it is fed.
    Stuck {
        /// The time since it was last fed.
        unfed_for: Duration,
        /// Whether this is the first report since then.
        first: bool,
    },
    /// It was fed again. That feed reports this, on its thread; if the thing was fed while a report ran, the timer's
    /// worker does, after that report. If the thing is dropped while it is stuck, no recovery is reported.
    Recovered {
        /// The time from the feed before the report to this one. If it was fed several times while a report ran, to the
        /// latest.
        unfed_for: Duration,
    },
}

impl Watchdog {
    /// Creates a watchdog that calls `tell` with the name of a watched thing, and with what has happened.
    ///
    /// A stuck thing is reported on the timer's worker, even if the timer has an executor, because the executor may be
    /// what is stuck. So keep `tell` short. A recovery is reported on the thread that feeds, or on the worker if the
    /// thing was fed while a report ran. Calls for one thing never overlap, and the last one tells the truth. Calls for
    /// two things may overlap.
    ///
    /// A panic of `tell` is caught, on both threads, and counted in
    /// [`Metrics::panicked`](crate::metrics::Metrics::panicked). The thing stays watched, and the report counts as told.
    ///
    /// `tell` may feed the thing itself. The recovery is told once that call has returned.
    pub fn new<F>(timer: &HashedWheelTimer, tell: F) -> Self
    where
        F: Fn(&str, WatchdogEvent) + Send + Sync + 'static,
    {
        let shared = Arc::new(Shared { timer: timer.clone(), tell: Box::new(tell) });
        let on_idle = {
            let shared = shared.clone();
            move |idle: &mut Idle<Entry>| look(idle, &shared)
        };
        Self { idle: IdleTimeouts::on_worker(timer, on_idle), shared }
    }

    /// Watches a thing that feeds the watchdog at least once in each `limit`. It counts as fed now.
    ///
    /// It is reported once it has not been fed for `limit`: never earlier, and later by less than a tick, plus
    /// scheduling. [`Duration::MAX`] never passes. With a limit shorter than a tick, it is reported in each tick
    /// before which it was not fed within the limit. [`Duration::ZERO`] is such a limit.
    /// A report that is due while `tell` runs for a recovery is skipped.
    ///
    /// **Stalls.** If the worker itself stalls, for example because the process is stopped, the thing may have stalled
    /// too. So a stall, however long, counts as at most a quarter of `limit` plus a tick. A loop that feeds in every
    /// quarter of its limit is not reported after a stall, if the limit is longer than two ticks. A thing that is stuck
    /// is reported once the rest of `limit` has passed. A jump of a
    /// [`ManualClock`](crate::ManualClock::advance_in_one_jump) is a stall too. Tests let time pass with
    /// [`advance`](crate::ManualClock::advance).
    ///
    /// It costs what [`IdleTimeouts::watch`] costs. The timer's limit of pending timeouts does not apply.
    ///
    /// # Errors
    ///
    /// If the timer is stopped, or has no more room.
    pub fn watch(&self, name: impl Into<String>, limit: Duration) -> Result<Feeder, RefusalReason> {
        let stall = Arc::new(Stall {
            name: name.into(),
            state: AtomicU8::new(QUIET),
            last_fed: AtomicU64::new(0),
        });
        let silence = Silence::new(limit, self.shared.timer.tick_duration());
        let entry = Entry { stall: stall.clone(), silence };
        let watch = self.idle.watch(entry, &IdlePolicy::new().reader(limit / 4))?;
        Ok(Feeder { watch, stall, shared: self.shared.clone() })
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

/// The handle of a watched thing. Created by [`Watchdog::watch`]. Dropping it stops watching; no recovery is reported.
///
/// Threads that work on one thing share it by reference or in a [`std::sync::Arc`].
///
/// # Examples
///
/// A thread that waits for work is not stuck:
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::watchdog::Feeder;
/// fn serve(jobs: mpsc::Receiver<u32>, feeder: Feeder) {
///     loop {
///         let job = {
///             let _waits = feeder.pause();
///             jobs.recv()
///         };
///         let Ok(job) = job else { return };
///         println!("{job} takes less than the limit");
///     }
/// }
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # let watchdog = wheelwork::watchdog::Watchdog::new(&timer, |_, _| ());
/// # let (sender, jobs) = mpsc::channel();
/// # sender.send(1)?;
/// # drop(sender);
/// # serve(jobs, watchdog.watch("worker", Duration::from_secs(5))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the feeder stops watching"]
pub struct Feeder {
    watch: Watch,
    stall: Arc<Stall>,
    shared: Arc<Shared>,
}

impl Feeder {
    /// Feeds the watchdog. O(1): a clock read, a store and a load. It allocates nothing and takes no lock.
    ///
    /// If the thing was reported as stuck, this call reports its recovery. A panic of the callback does not reach
    /// the caller.
    #[inline]
    pub fn feed(&self) {
        self.watch.record_read();
        self.recover();
    }

    /// Feeds the watchdog, and suspends the watching until the guard is dropped, which feeds it again. Use it
    /// while a thread waits for work. Pauses nest. It allocates nothing and takes no lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// # use std::time::Duration;
    /// use wheelwork::watchdog::Watchdog;
    /// use wheelwork::{HashedWheelTimer, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let told = Arc::new(AtomicU32::new(0));
    /// let count = told.clone();
    /// let watchdog = Watchdog::new(&timer, move |_, _| drop(count.fetch_add(1, Ordering::Relaxed)));
    /// let feeder = watchdog.watch("event loop", Duration::from_secs(5))?;
    /// {
    ///     let _polls = feeder.pause();
    ///     clock.advance(Duration::from_secs(3600)); // there are no events
    /// }
    /// assert_eq!(feeder.unfed_for(), Duration::ZERO);
    /// assert_eq!(told.load(Ordering::Relaxed), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause(&self) -> PauseGuard<'_> {
        self.watch.record_read();
        let guard = self.watch.pause();
        fence(Ordering::SeqCst); // pairs with the one in `report`
        self.recover();
        guard
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
        // Relaxed: only a hint. The exchange decides.
        if self.stall.state.load(Ordering::Relaxed) != QUIET {
            self.stall.recover(self.watch.last_activity(), &self.shared);
        }
    }
}

impl fmt::Debug for Feeder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeder")
            .field("name", &self.name())
            .field("unfed_for", &self.unfed_for())
            .finish_non_exhaustive()
    }
}

/// The states of a [`Stall`].
const QUIET: u8 = 0;
const TELLING: u8 = 1;
const STUCK: u8 = 2;
const FED: u8 = 3;

/// What the worker has of a watched thing.
struct Entry {
    stall: Arc<Stall>,
    silence: Silence,
}

/// Looks at a thing that was not fed for a quarter of its limit. The end of the timer is no report.
fn look(idle: &mut Idle<Entry>, shared: &Shared) -> Answer {
    let IdleEvent { kind, silent_for: unfed_for, .. } = idle.event();
    if kind == IdleKind::TimerStopped {
        return Answer::StopWatching;
    }
    let now = idle.since.saturating_add(nanos(unfed_for));
    let has_passed = idle.connection.silence.look(idle.since, now);
    idle.next_from = idle.connection.silence.next_look_from();
    if has_passed {
        Stall::report(idle, unfed_for, shared);
    }
    Answer::KeepWatching
}

/// What a watched thing shares with the worker.
struct Stall {
    name: String,
    state: AtomicU8,
    /// The last feed before the report, in nanoseconds since the timer's origin. Relaxed: `state` publishes it.
    last_fed: AtomicU64,
}

impl Stall {
    /// Reports that it is stuck.
    fn report(idle: &Idle<Entry>, unfed_for: Duration, shared: &Shared) {
        let stall = &idle.connection.stall;
        let begin = |state| (state != FED).then_some(TELLING);
        if let Ok(before) = stall.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, begin) {
            stall.last_fed.store(idle.since, Ordering::Relaxed);
            let first = before == QUIET;
            shared.tell(&stall.name, WatchdogEvent::Stuck { unfed_for, first });
            stall.state.swap(STUCK, Ordering::AcqRel); // acquires the feed that set `FED`
            fence(Ordering::SeqCst); // pairs with the one in `pause`
            let fed_at = idle.last_activity();
            if fed_at > idle.since {
                stall.recover(fed_at, shared);
            }
        }
    }

    /// It was fed at `fed_at`. Tells the recovery, unless a call runs.
    #[cold]
    fn recover(&self, fed_at: u64, shared: &Shared) {
        let feed = |state| matches!(state, TELLING | STUCK).then_some(FED);
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, feed) == Ok(STUCK) {
            let unfed_for = fed_at.saturating_sub(self.last_fed.load(Ordering::Relaxed));
            let unfed_for = Duration::from_nanos(unfed_for);
            shared.tell(&self.name, WatchdogEvent::Recovered { unfed_for });
            self.state.store(QUIET, Ordering::Release);
        }
    }
}
