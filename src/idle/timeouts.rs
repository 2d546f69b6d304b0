//! `IdleTimeouts`: the face of it all.

use super::event::{Answer, Idle, IdleEvent};

use super::policy::{IdlePolicy, Scale};
use super::shard::{Deliver, Manager, Shard};
use super::timestamp::Timestamp;
use super::watch::Watch;
use crate::base::isolate;
use crate::base::spread;
use crate::base::sync::Arc;
use crate::timer::{HashedWheelTimer, ScheduleError};
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

/// Reports connections that have been silent for their time.
///
/// Clones are handles to the same thing. It keeps its timer alive while it lives and while anything
/// is watched. See the [module](super) for a program.
pub struct IdleTimeouts<T> {
    manager: Arc<Manager<T>>,
    shards: Arc<[Arc<Shard<T>>]>,
}

/// A connection that [`IdleTimeouts::evict_idlest`] has given up.
#[derive(Debug)]
#[non_exhaustive]
pub struct Evicted<T> {
    /// What was given to `watch`.
    pub connection: T,
    /// For how long nothing has been read or written.
    pub silent_for: Duration,
}

/// A factor that durations cannot be scaled by.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a factor of {factor}: expected a finite number, 0 or more")]
pub struct ScaleError {
    /// What was asked for.
    pub factor: f64,
}

impl<T: Send + 'static> IdleTimeouts<T> {
    /// Calls `on_idle` for each connection that is idle, with what was given to `watch`, on the
    /// executor of `timer`. One job serves those that are idle in a tick, up to about 3000 of a group
    /// of threads that watch; more of them take more jobs. Each connection is looked at once more
    /// right before its call.
    ///
    /// A panic is caught, counted ([`panicked`](Self::panicked)) and hurts nobody else; the
    /// connection is watched on. Calls for different connections may overlap on a pool; two calls
    /// for one connection never do.
    pub fn new<F>(timer: &HashedWheelTimer, on_idle: F) -> Self
    where
        F: Fn(&mut T, IdleEvent) -> Answer + Send + Sync + 'static,
    {
        Self::with(timer, Box::new(move |batch| one_by_one(batch, &on_idle)))
    }

    /// As [`new`](Self::new), with all that one job serves in one call: for a server that passes
    /// them on as one message. Answer with [`Idle::answer`]; without an answer a connection is
    /// watched on.
    ///
    /// If very many are idle in a tick, they come in several batches, which on a pool may overlap.
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
    /// let policy = IdlePolicy::new().all(Duration::from_millis(10));
    /// let watches = [idle.watch(1, &policy)?, idle.watch(2, &policy)?];
    /// assert!(to_close.recv()?.contains(&1));
    /// # drop(watches);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batched<F>(timer: &HashedWheelTimer, on_idle: F) -> Self
    where
        F: Fn(&mut [Idle<T>]) + Send + Sync + 'static,
    {
        let deliver = move |batch: &mut [Idle<T>]| u64::from(isolate::panics(|| on_idle(batch)));
        Self::with(timer, Box::new(deliver))
    }

    fn with(timer: &HashedWheelTimer, deliver: Box<Deliver<T>>) -> Self {
        let manager = Arc::new(Manager::new(timer.clone(), deliver));
        let shards =
            (0..spread::shard_count()).map(|_| Arc::new(Shard::new(manager.clone()))).collect();
        Self { manager, shards }
    }

    /// Watches a connection, which counts as active now. `connection` is what the callback is told:
    /// an identifier, a socket, or a closure of its own.
    ///
    /// Costs a clock read, a lock that only threads of the same shard share, and a few allocations
    /// for each 64 connections.
    ///
    /// # Errors
    ///
    /// If the timer is stopped, or has no room for the one timeout that each group of threads needs.
    /// The connection is inside. That one timeout keeps its place while the group watches anything,
    /// so a timer's limit refuses connections, and loses none.
    pub fn watch(&self, connection: T, policy: &IdlePolicy) -> Result<Watch, ScheduleError<T>> {
        self.shard_of_this_thread().watch(connection, policy.clone())
    }

    /// The shard of this thread.
    pub(super) fn shard_of_this_thread(&self) -> &Arc<Shard<T>> {
        &self.shards[spread::shard_of_this_thread(self.shards.len())]
    }

    /// The present, for the `_at` methods of [`Watch`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, idle::{Answer, IdlePolicy, IdleTimeouts}};
    /// # let timer = HashedWheelTimer::new()?;
    /// # let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    /// # let policy = IdlePolicy::new().all(Duration::from_secs(30));
    /// let ready = [idle.watch(1, &policy)?, idle.watch(2, &policy)?];
    /// let now = idle.now(); // once, when the poll has returned
    /// ready.iter().for_each(|watch| watch.read_at(now));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.manager.now()
    }

    /// How many connections are watched at present.
    pub fn watched(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().segments.len()).sum()
    }

    /// How many calls of the callback have panicked.
    pub fn panicked(&self) -> u64 {
        self.manager.panicked()
    }

    /// Multiplies all durations by `factor`, those of connections already watched included, until
    /// the next call: below 1 under pressure, and 1 again when it has passed. With 0 all that are
    /// not paused are reported at the next tick, except what is off or never due. One that is just
    /// being reported is judged by the new factor when its callback has answered.
    ///
    /// To shrink costs one look at every connection, on the executor, slice by slice; to stretch costs
    /// nothing.
    /// After Envoy's overload action that scales timers.
    ///
    /// # Errors
    ///
    /// If the factor is negative, infinite or not a number. The former one stays.
    pub fn scale(&self, factor: f64) -> Result<(), ScaleError> {
        if !(factor.is_finite() && factor >= 0.0) {
            return Err(ScaleError { factor });
        }
        let former = self.manager.set_scale(Scale(factor));
        if factor < former.0 {
            self.shards.iter().for_each(|shard| shard.check_everybody());
        }
        Ok(())
    }

    /// Stops watching the `n` connections on which nothing has been read or written for longest,
    /// and returns them, the most silent first: for a server that runs out of memory or of
    /// descriptors. Those that are paused, or just being reported, stay. Fewer come back if there
    /// are fewer, or if some become active meanwhile.
    ///
    /// O(connections), a few nanoseconds each, a thousand in one hold of a lock.
    pub fn evict_idlest(&self, n: usize) -> Vec<Evicted<T>> {
        if n == 0 {
            return Vec::new();
        }
        let mut longest = BinaryHeap::new();
        for (number, shard) in self.shards.iter().enumerate() {
            for at in 0.. {
                let latest = latest_wanted(&longest, n);
                let Some(silent) = shard.lock().segments.silent_since(latest, at) else { break };
                for (since, seat) in silent {
                    longest.push((since, seat, number));
                    if longest.len() > n {
                        longest.pop();
                    }
                }
            }
        }
        let given_up = |(since, seat, shard): (u64, u32, usize)| {
            let connection = self.shards.get(shard)?.evict(seat, since)?;
            Some(Evicted { connection, silent_for: self.manager.silence(since) })
        };
        longest.into_sorted_vec().into_iter().filter_map(given_up).collect()
    }
}

/// Who has been active later is not among the `n` who have been silent for longest.
fn latest_wanted(longest: &BinaryHeap<(u64, u32, usize)>, n: usize) -> u64 {
    let full = longest.len() == n;
    longest.peek().filter(|_| full).map_or(u64::MAX, |&(latest, ..)| latest.saturating_sub(1))
}

/// Returns how many calls panicked.
fn one_by_one<T>(batch: &mut [Idle<T>], on_idle: &impl Fn(&mut T, IdleEvent) -> Answer) -> u64 {
    let mut panics = 0;
    for idle in batch {
        if !idle.is_still_silent() {
            idle.withdraw();
            continue;
        }
        let event = idle.event();
        match isolate::contained(|| on_idle(&mut idle.connection, event)) {
            Some(answer) => idle.answer(answer),
            None => panics += 1,
        }
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
