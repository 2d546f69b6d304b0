//! `IdleTimeouts`, the public entry point.

use super::event::{Answer, Idle, IdleEvent};
use super::kind::IdleKind;
use super::manager::{Deliver, Manager};
use super::policy::{IdlePolicy, Scale};
use super::shard::Shard;
use super::timestamp::Timestamp;
use super::watch::Watch;
use crate::base::catch_panic;
use crate::base::spread::shard_of_this_thread;
use crate::base::sync::{Arc, Ordering};
use crate::time::tick::{NEVER, nanos};
use crate::timeout::ScheduleError;
use crate::timer::HashedWheelTimer;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

/// Reports connections that have been silent for their duration.
///
/// Clones are handles to the same manager. The manager keeps its timer alive while a clone or a
/// [`Watch`] exists. See the [module](super) for a program.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, ManualClock};
/// use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// let idle = IdleTimeouts::new(&timer, |id: &mut u32, event| {
///     println!("{id} is silent for {:?}: {:?}", event.silent_for, event.kind);
///     Answer::StopWatching
/// });
/// let minute = Duration::from_secs(60);
/// let watch = idle.watch(7, &IdlePolicy::new().reader(minute))?;
/// assert_eq!(idle.watched(), 1);
/// clock.advance(minute);
/// assert_eq!(idle.watched(), 0);
/// # drop(watch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("IdleStateHandler", "ReadTimeoutHandler", "keepalive"))]
pub struct IdleTimeouts<T> {
    pub(super) manager: Arc<Manager<T>>,
    shards: Arc<[Arc<Shard<T>>]>,
}

/// Each shard in use costs the timer a timeout, and memory for rows that are not full.
const MAX_SHARDS: usize = 16;

/// The number of shards, a power of two: large enough that the threads of a server seldom share one. A loom model has
/// one, so that its threads do share it.
fn shard_count() -> usize {
    if cfg!(loom) { 1 } else { (2 * num_cpus::get()).next_power_of_two().min(MAX_SHARDS) }
}

/// A connection that [`IdleTimeouts::take_idlest`] took out. It is not watched any more.
///
/// # Examples
///
/// ```
/// # use wheelwork::idle::{IdleTimeouts, Taken};
/// # fn close(connection: u64) {}
/// fn make_room(idle: &IdleTimeouts<u64>) {
///     for Taken { connection, silent_for, .. } in idle.take_idlest(100) {
///         println!("close {connection}, silent for {silent_for:?}");
///         close(connection);
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Taken<T> {
    /// The value that was given to `watch`.
    pub connection: T,
    /// The time since the last read or write.
    pub silent_for: Duration,
}

/// A factor that is not a valid scale.
///
/// # Examples
///
/// ```
/// # use wheelwork::idle::{Answer, IdleTimeouts, ScaleError};
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
/// let error: ScaleError = idle.scale(-1.0).unwrap_err();
/// assert_eq!(error.to_string(), "a factor of -1: expected a finite number, 0 or more");
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a factor of {factor}: expected a finite number, 0 or more")]
#[non_exhaustive]
pub struct ScaleError {
    /// The requested factor.
    pub factor: f64,
}

impl<T: Send + 'static> IdleTimeouts<T> {
    /// Creates a manager that calls `on_idle` for each idle connection, on the executor of `timer`.
    /// `on_idle` gets the value that was given to `watch`. It must not block, because without an executor it runs on the
    /// worker, and delays all timeouts.
    ///
    /// One job reports the connections of one shard that are idle in a tick, up to about 2100. If
    /// there are more, there are more jobs. Each connection is checked once more right before its
    /// call.
    ///
    /// A panic is caught, counted ([`panicked`](Self::panicked)) and affects no other connection.
    /// The connection stays watched. Calls for different connections may overlap on a pool; two
    /// calls for one connection never do.
    pub fn new<F>(timer: &HashedWheelTimer, on_idle: F) -> Self
    where
        F: Fn(&mut T, IdleEvent) -> Answer + Send + Sync + 'static,
    {
        let on_idle = move |idle: &mut Idle<T>| {
            let event = idle.event();
            on_idle(&mut idle.connection, event)
        };
        Self::with(timer, Box::new(move |batch| one_by_one(batch, &on_idle)), false)
    }

    /// Like [`new`](Self::new), but everything runs on the worker, even if the timer has an executor.
    pub(crate) fn on_worker<F>(timer: &HashedWheelTimer, on_idle: F) -> Self
    where
        F: Fn(&mut Idle<T>) -> Answer + Send + Sync + 'static,
    {
        Self::with(timer, Box::new(move |batch| one_by_one(batch, &on_idle)), true)
    }

    /// Like [`new`](Self::new), but each job makes a single call with all of its connections. Use
    /// it for a server that passes them on in one message. Answer with [`Idle::answer`]; without an
    /// answer a connection stays watched.
    ///
    /// If very many connections are idle in a tick, they come in several batches. On a pool the
    /// batches may overlap.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # use wheelwork::{HashedWheelTimer, idle::{Answer, Idle, IdlePolicy, IdleTimeouts}};
    /// # let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(5)).build()?;
    /// let (sender, to_close) = mpsc::channel();
    /// let idle = IdleTimeouts::batched(&timer, move |batch: &mut [Idle<u64>]| {
    ///     let ids: Vec<u64> = batch.iter().map(|idle| idle.connection).collect();
    ///     let _ = sender.send(ids);
    ///     batch.iter_mut().for_each(|idle| idle.answer(Answer::StopWatching));
    /// });
    /// let policy = IdlePolicy::new().both(Duration::from_millis(10));
    /// let watches = [idle.watch(1, &policy)?, idle.watch(2, &policy)?];
    /// assert!(to_close.recv()?.contains(&1));
    /// # drop(watches);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batched<F>(timer: &HashedWheelTimer, on_idle: F) -> Self
    where
        F: Fn(&mut [Idle<T>]) + Send + Sync + 'static,
    {
        let deliver =
            move |batch: &mut [Idle<T>]| u64::from(catch_panic::panics(|| on_idle(batch)));
        Self::with(timer, Box::new(deliver), false)
    }

    pub(super) fn with(
        timer: &HashedWheelTimer,
        deliver: Box<Deliver<T>>,
        on_worker: bool,
    ) -> Self {
        let manager = Arc::new(Manager::new(timer.clone(), deliver, on_worker));
        let shards = (0..shard_count()).map(|_| Arc::new(Shard::new(manager.clone()))).collect();
        Self { manager, shards }
    }

    /// Watches a connection, which counts as active now. The callback gets `connection`: an
    /// identifier, a socket, or a closure.
    ///
    /// It costs a clock read, a lock that only threads of the same shard share, and a few
    /// allocations for every 64 connections.
    ///
    /// # Errors
    ///
    /// If the timer is stopped, or if the timer or the manager has run out of slots. The error contains the
    /// connection. The timer's limit of pending timeouts does not apply.
    pub fn watch(&self, connection: T, policy: &IdlePolicy) -> Result<Watch, ScheduleError<T>> {
        self.shard_of_this_thread().watch(connection, policy.clone())
    }

    /// The shard of the calling thread.
    pub(super) fn shard_of_this_thread(&self) -> &Arc<Shard<T>> {
        &self.shards[shard_of_this_thread(self.shards.len())]
    }

    /// The current time, for the `_at` methods of [`Watch`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, idle::{Answer, IdlePolicy, IdleTimeouts}};
    /// # let timer = HashedWheelTimer::new()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// # let policy = IdlePolicy::new().both(Duration::from_secs(30));
    /// let ready = [idle.watch(1, &policy)?, idle.watch(2, &policy)?];
    /// let now = idle.now(); // once, when the poll has returned
    /// ready.iter().for_each(|watch| watch.record_read_at(now));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.manager.now()
    }

    /// The number of connections that are watched now.
    pub fn watched(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().seats.len()).sum()
    }

    /// The number of watched connections that have been silent (no reads and no writes) for at least this
    /// time. Use it to see how old the silences are, or how many connections
    /// [`take_idlest`](Self::take_idlest) should take. Connections that are paused or being reported are
    /// not counted.
    ///
    /// O(connections), a thousand under one hold of a lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut &str, _| Answer::StopWatching);
    /// # let policy = IdlePolicy::new().both(Duration::from_secs(60));
    /// let watches = [idle.watch("silent", &policy)?, idle.watch("talking", &policy)?];
    /// clock.advance(Duration::from_secs(10));
    /// watches[1].record_read();
    /// assert_eq!(idle.count_silent(Duration::from_secs(10)), 1);
    /// assert_eq!(idle.count_silent(Duration::ZERO), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count_silent(&self, at_least: Duration) -> usize {
        let latest = match nanos(at_least) {
            0 => Some(NEVER), // the time of a touch may be ahead of the clock by some microseconds
            least => self.now().nanos().checked_sub(least),
        };
        let Some(latest) = latest else { return 0 };
        let count = |shard: &Arc<Shard<T>>| {
            let segments = (0..).map_while(|at| shard.lock().seats.silent_since(latest, at));
            segments.map(|silent| silent.len()).sum::<usize>()
        };
        self.shards.iter().map(count).sum()
    }

    /// The number of callback calls that have panicked.
    pub fn panicked(&self) -> u64 {
        self.manager.panicked.load(Ordering::Relaxed)
    }

    /// The number of reports of this kind: calls of the callback, or connections in the batches of
    /// [`batched`](Self::batched). A report that was answered with [`Answer::Progressed`] does not count.
    pub fn reported(&self, kind: IdleKind) -> u64 {
        self.manager.reported[kind as usize].load(Ordering::Relaxed)
    }

    /// Multiplies all durations but the age and its grace by `factor` until the next call. This includes
    /// connections that are already watched. Use a factor below 1 under pressure, and 1 when the pressure is
    /// over. With 0, all connections that are not paused are reported at the next tick, except for kinds that
    /// are off or never due. A connection that is being reported gets the new factor when its
    /// callback has answered.
    ///
    /// A smaller factor costs one check of every connection, on the executor, slice by slice. A
    /// larger one costs nothing. Modelled on Envoy's overload action that scales timers.
    ///
    /// # Errors
    ///
    /// If the factor is negative, infinite or not a number. The previous factor stays in force.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, ScaleError};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// let minute = Duration::from_secs(60);
    /// let watch = idle.watch(7, &IdlePolicy::new().both(minute))?;
    /// idle.scale(0.5)?; // memory is short
    /// clock.advance(minute / 2);
    /// assert_eq!(idle.watched(), 0);
    /// idle.scale(1.0)?; // the pressure is over
    /// let refused: ScaleError = idle.scale(-1.0).unwrap_err();
    /// assert_eq!(refused.factor, -1.0);
    /// # drop(watch);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scale(&self, factor: f64) -> Result<(), ScaleError> {
        if !(factor.is_finite() && factor >= 0.0) {
            return Err(ScaleError { factor });
        }
        let previous = self.manager.set_scale(Scale(factor));
        if factor < previous.0 {
            self.shards.iter().for_each(|shard| shard.check_all_connections());
        }
        Ok(())
    }

    /// Stops watching the `n` connections that have been silent longest (no reads and no writes),
    /// and returns them, the longest silent first. It closes nothing: the caller does. Use it in a
    /// server that runs out of memory or of descriptors. Connections that are paused or being
    /// reported are not taken. Fewer than `n` come back if there are fewer, or if some become active
    /// meanwhile.
    ///
    /// O(connections), a thousand under one hold of a lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut &str, _| Answer::StopWatching);
    /// # let policy = IdlePolicy::new().both(Duration::from_secs(60));
    /// let watches = [idle.watch("silent", &policy)?, idle.watch("talking", &policy)?];
    /// clock.advance(Duration::from_secs(10));
    /// watches[1].record_read();
    /// let taken = idle.take_idlest(1);
    /// assert_eq!(taken[0].connection, "silent");
    /// assert_eq!(taken[0].silent_for, Duration::from_secs(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_idlest(&self, n: usize) -> Vec<Taken<T>> {
        if n == 0 {
            return Vec::new();
        }
        let mut longest = BinaryHeap::new();
        for (number, shard) in self.shards.iter().enumerate() {
            for at in 0.. {
                let latest = latest_wanted(&longest, n);
                let Some(silent) = shard.lock().seats.silent_since(latest, at) else { break };
                for (since, seat) in silent {
                    longest.push((since, seat, number));
                    if longest.len() > n {
                        longest.pop();
                    }
                }
            }
        }
        let now = self.now().nanos(); // before any is taken, because the clock may panic
        let taken = |(since, seat, shard): (u64, u32, usize)| {
            let connection = self.shards.get(shard)?.take_if_silent_since(seat, since)?;
            let silent_for = Duration::from_nanos(now.saturating_sub(since));
            Some(Taken { connection, silent_for })
        };
        longest.into_sorted_vec().into_iter().filter_map(taken).collect()
    }
}

/// The latest last activity with which a connection can still be among the `n` longest silent.
fn latest_wanted(longest: &BinaryHeap<(u64, u32, usize)>, n: usize) -> u64 {
    let full = longest.len() == n;
    longest.peek().filter(|_| full).map_or(u64::MAX, |&(latest, ..)| latest.saturating_sub(1))
}

/// Calls `on_idle` for each connection of a batch. Returns the number of calls that panicked.
fn one_by_one<T>(batch: &mut [Idle<T>], on_idle: &impl Fn(&mut Idle<T>) -> Answer) -> u64 {
    let mut panics = 0;
    for idle in batch {
        if !idle.is_still_silent() {
            idle.answer = None;
            continue;
        }
        let panics_now = catch_panic::panics(|| {
            let answer = on_idle(idle);
            idle.answer(answer); // may ask the timer's clock
        });
        panics += u64::from(panics_now);
    }
    panics
}

impl<T> Clone for IdleTimeouts<T> {
    fn clone(&self) -> Self {
        Self { manager: self.manager.clone(), shards: self.shards.clone() }
    }
}

impl<T: Send + 'static> fmt::Debug for IdleTimeouts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleTimeouts")
            .field("watched", &self.watched())
            .field("panicked", &self.panicked())
            .finish_non_exhaustive()
    }
}
