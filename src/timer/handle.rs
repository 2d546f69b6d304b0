//! `HashedWheelTimer`.

use super::error::{ScheduleError, StopError};
use crate::base::spread;
use crate::base::sync::thread::JoinHandle;
use crate::base::sync::{Arc, Mutex};
use crate::shard::context::Context;
use crate::shard::metrics::Metrics;
use crate::shard::{self, Refusal};
use crate::time::tick::nanos;
use crate::timeout::{
    BoxedTask, Held, Hold, Moved, Period, Periodic, Repeat, Timeout, TimerTask, Unprocessed,
};
use crate::worker::control::Control;
use std::fmt;
use std::time::{Duration, Instant};

/// A timer for very many timeouts that seldom fire.
///
/// Clones are handles to the same timer. When the last one is dropped, the worker cancels what is
/// pending and ends; the drop does not wait for it. To get what is pending back, call
/// [`stop`](Self::stop). A pending task that holds a handle keeps its timer alive.
///
/// See the [crate's page](crate) for the guarantees.
#[derive(Clone)]
pub struct HashedWheelTimer(pub(super) Arc<Handle>);

pub(super) struct Handle {
    pub(super) control: Arc<Control>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is known of a timeout as it is admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admit {
    Once,
    /// It runs again and again.
    Series,
    /// It is to run within the worker's present pass.
    AtOnce,
}

impl HashedWheelTimer {
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
        let deadline = self.context().time.now_or_later().saturating_add(nanos(delay));
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
        self.schedule(task, self.context().time.nanos_at(deadline), false)
    }

    /// Runs `task` again and again, until its timeout is cancelled, the timer stops, it panics, or it
    /// returns [`ControlFlow::Break`](std::ops::ControlFlow::Break). A closure that returns nothing
    /// goes on. A further run allocates nothing. A run in progress is not a pending timeout.
    ///
    /// # Errors
    ///
    /// As [`new_timeout`](Self::new_timeout), and if the period is zero.
    pub fn new_periodic<F, R>(&self, task: F, period: Period) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: Repeat,
    {
        if period.every.is_zero() {
            return Err(ScheduleError::ZeroPeriod { task });
        }
        let delay = period.initial_delay.unwrap_or(period.every);
        let deadline = self.context().time.now_or_later().saturating_add(nanos(delay));
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
        if let Some(quota) = &self.context().quota {
            if let Err(limit) = quota.acquire() {
                self.context().metrics.over_limit();
                return Err(ScheduleError::LimitReached { limit, task });
            }
        }
        self.admit(task, deadline, if repeats { Admit::Series } else { Admit::Once })
    }

    /// As [`new_timeout_at`](Self::new_timeout_at), in place of a timeout that was accepted and whose
    /// task has been dropped: always within the limit, as one that arms itself again.
    pub(crate) fn replace_timeout_at<T: TimerTask>(
        &self,
        task: T,
        deadline: Instant,
    ) -> Result<Timeout, ScheduleError<T>> {
        self.context().begins_again();
        self.admit(task, self.context().time.nanos_at(deadline), Admit::Once)
    }

    /// As [`replace_timeout_at`](Self::replace_timeout_at), for one that is to run within the
    /// worker's present pass, in its turn among all that is due.
    pub(crate) fn replace_timeout_now<T: TimerTask>(
        &self,
        task: T,
    ) -> Result<Timeout, ScheduleError<T>> {
        let context = self.context();
        let now = context.time.now_contained().unwrap_or_default();
        context.begins_again();
        self.admit(task, context.scale.start_of(context.scale.tick_at(now)), Admit::AtOnce)
    }

    /// Admits a task whose quota is already taken.
    #[inline]
    fn admit<T: TimerTask>(
        &self,
        task: T,
        deadline: u64,
        admit: Admit,
    ) -> Result<Timeout, ScheduleError<T>> {
        if T::RUNS_ONCE || size_of::<T>() == 0 {
            self.admit_held::<T, Moved<T>>(task, deadline, admit)
        } else {
            self.admit_held::<T, Held<T>>(task, deadline, admit)
        }
    }

    #[inline]
    fn admit_held<T, H: Hold<T>>(
        &self,
        task: T,
        deadline: u64,
        admit: Admit,
    ) -> Result<Timeout, ScheduleError<T>> {
        let control = &*self.0.control;
        let task = Box::new(H::hold(task));
        let shard = &control.shards[spread::shard_of_this_thread(control.shards.len())];
        let mut state = shard.lock();
        let repeats = admit == Admit::Series;
        let admitted = state.admit(task, |task| task as BoxedTask, deadline, repeats);
        match admitted {
            Ok((index, _)) if admit == Admit::AtOnce => {
                state.catch_up(index);
                drop(state);
                control.context.catch_up();
                Ok(Timeout::pinned(shard.clone(), index))
            }
            Ok((index, wake)) => {
                drop(state);
                control.context.wake(wake, deadline);
                Ok(Timeout::pinned(shard.clone(), index))
            }
            Err((refusal, task)) => {
                drop(state);
                Err(self.refused(task.release(), refusal))
            }
        }
    }

    #[cold]
    fn refused<T>(&self, task: T, refusal: Refusal) -> ScheduleError<T> {
        self.context().ended(1);
        match refusal {
            Refusal::Full => ScheduleError::LimitReached { limit: shard::SHARD_CAPACITY, task },
            Refusal::Closed | Refusal::Phase(_) => ScheduleError::Stopped { task },
        }
    }

    /// The present instant by the timer's clock.
    #[inline]
    pub fn now(&self) -> Instant {
        self.context().time.now_instant()
    }

    /// The length of a tick.
    pub fn tick_duration(&self) -> Duration {
        Duration::from_nanos(self.context().scale.tick_nanos())
    }

    /// The instant that ticks are counted from: tick n begins n ticks later. Deadlines at a tick's
    /// begin are met without the wait for the next one.
    pub fn started_at(&self) -> Instant {
        self.context().time.instant_at(0)
    }

    /// Timeouts accepted, and not yet run, cancelled or returned. Exact: 0 after `stop`.
    pub fn pending_timeouts(&self) -> usize {
        self.0.control.with_all_shards(|states| states.iter().map(|s| s.live()).sum())
    }

    /// A snapshot of what the timer has done so far.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.0.control.with_all_shards(|states| {
            for state in states {
                metrics.add(state.counts());
                metrics.pending += state.live() as u64;
                metrics.queue_depth += state.queued() as u64;
            }
        });
        self.context().metrics.fill(&mut metrics);
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
        let control = &*self.0.control;
        if control.context.alarm.parker().is_current_thread() {
            return Err(StopError::FromWorker);
        }
        control.close();
        control.lifecycle.command_return();
        control.context.alarm.call();
        if let Some(limit) = limit {
            // A limit beyond the end of time is no limit.
            let until = Instant::now().checked_add(limit);
            let running = || StopError::StillRunning { limit, timeout: control.running() };
            return control.finish_until(until).ok_or_else(running);
        }
        let unprocessed = control.lifecycle.wait_finished(None).unwrap_or_default();
        // The drop of the executor and of the values that tasks have stored in the thread may take
        // longer than any limit. A panic there ends with the thread.
        let thread = self.0.thread.lock().take();
        thread.map(JoinHandle::join);
        Ok(unprocessed)
    }

    /// Whether the timer has ended, after a stop: nothing runs or is handed over any more. The
    /// worker's thread may take a moment longer.
    pub fn is_stopped(&self) -> bool {
        self.0.control.lifecycle.is_finished()
    }

    fn context(&self) -> &Context {
        &self.0.control.context
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.control.close();
        let uncollected = self.control.lifecycle.command_cancel();
        self.control.context.alarm.call();
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
