//! What the tasks and the player of a history share: the timer, its handles, and what was seen.

use super::history::{Fate, When};
use super::model::{Counts, No};
use crate::common::Mutex;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use wheelwork::executor::Job;
use wheelwork::task::TimerTask;
use wheelwork::{HashedWheelTimer, RefusalReason, RescheduleError, ScheduleError, Timeout};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Scheduled(usize, Result<(), No>),
    /// The answer, and whether the task had been dropped when it came.
    Cancel(usize, bool, bool),
    Reschedule(usize, Result<(), No>),
    Look(usize, Looks),
    Answer(usize),
    /// `stop` was called within a task on the worker; true if that was an error.
    StopInside(bool),
    /// The timer is gone, so nothing was done.
    NoTimer,
    /// The last handle was dropped within a task.
    TimerDropped,
    Run(usize),
    /// The `cancelled` callback of this timeout.
    Told(usize),
    /// The task of a series, which has no such callback, was dropped.
    Freed(usize),
    /// A job came to the executor. A held job gets a number.
    Offered(Fate, Option<usize>),
    /// The callback for refused jobs holds this job.
    CalledBack(usize),
    /// A held job is run or dropped.
    HeldJob(usize),
    Returned(Vec<u64>),
    /// The player runs a returned task; true if the task panicked.
    Unprocessed(bool),
    /// A handle was cloned, dropped or made a guard; false if there was none.
    Handle(usize, bool),
    Counts(Counts, usize),
    /// An operation has ended.
    Done,
}

/// The state that a handle reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    pub cancelled: bool,
    pub expired: bool,
    pub deadline: Option<u64>,
}

/// What the tasks and the player share.
pub(super) struct World {
    pub(super) timer: Mutex<Option<HashedWheelTimer>>,
    pub(super) start: Instant,
    pub(super) seen: Mutex<Vec<Event>>,
    pub(super) handles: Mutex<Vec<Vec<Timeout>>>,
    /// A token for each timeout. Each of its task objects has a clone.
    pub(super) tokens: Mutex<Vec<Arc<()>>>,
    pub(super) held: Mutex<Vec<(usize, Job)>>,
    pub(super) jobs: AtomicUsize,
    pub(super) offers: AtomicUsize,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> impl DerefMut<Target = T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn see(&self, event: Event) {
        lock(&self.seen).push(event);
    }

    pub(super) fn timer(&self) -> Option<HashedWheelTimer> {
        lock(&self.timer).clone()
    }

    /// A number and a token for a timeout to come.
    pub(super) fn announce(&self) -> (usize, Arc<()>) {
        let mut tokens = lock(&self.tokens);
        let token = Arc::new(());
        tokens.push(token.clone());
        lock(&self.handles).push(Vec::new());
        (tokens.len() - 1, token)
    }

    pub(super) fn pick(&self, pick: usize) -> Option<usize> {
        let count = lock(&self.tokens).len();
        (count > 0).then(|| pick % count)
    }

    /// A clone of some handle. The caller then holds no lock while it calls the timer.
    pub(super) fn handle(&self, id: usize) -> Option<Timeout> {
        lock(&self.handles)[id].first().cloned()
    }

    pub(super) fn is_freed(&self, id: usize) -> bool {
        Arc::strong_count(&lock(&self.tokens)[id]) == 1
    }

    pub(super) fn task_objects(&self) -> usize {
        lock(&self.tokens).iter().map(|token| Arc::strong_count(token) - 1).sum()
    }

    pub(super) fn hold(&self, job: Job) -> usize {
        let number = self.jobs.fetch_add(1, SeqCst);
        lock(&self.held).push((number, job));
        number
    }

    pub(super) fn take_held(&self, pick: usize) -> Option<(usize, Job)> {
        let mut held = lock(&self.held);
        let count = held.len();
        (count > 0).then(|| held.remove(pick % count))
    }

    pub(super) fn nanos_at(&self, instant: Instant) -> u64 {
        let nanos = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    pub(super) fn schedule<T: TimerTask>(
        &self,
        when: When,
        task: impl FnOnce(usize, Arc<()>) -> T,
        from: &dyn Fn() -> Instant,
    ) {
        let Some(timer) = self.timer() else { return self.see(Event::NoTimer) };
        let (id, token) = self.announce();
        let task = task(id, token);
        let scheduled = match when {
            When::After(delay) => timer.new_timeout(task, length(delay)),
            When::Before(ago) => timer.new_timeout_at(task, before(from(), ago)),
        };
        self.note_scheduled(id, scheduled);
    }

    pub(super) fn note_scheduled<T>(
        &self,
        id: usize,
        scheduled: Result<Timeout, ScheduleError<T>>,
    ) {
        let scheduled = match scheduled {
            Ok(timeout) => {
                lock(&self.handles)[id].push(timeout);
                Ok(())
            }
            Err(error) => Err(why_not(error)),
        };
        self.see(Event::Scheduled(id, scheduled));
    }

    pub(super) fn cancel(&self, id: usize, timeout: &Timeout) {
        let won = timeout.cancel();
        self.see(Event::Cancel(id, won, self.is_freed(id)));
    }

    pub(super) fn reschedule(&self, id: usize, timeout: &Timeout, when: When) {
        let moved = match when {
            When::After(delay) => timeout.reschedule(length(delay)),
            When::Before(ago) => timeout.reschedule_at(before(timeout.now(), ago)),
        };
        let moved = moved.map_err(|error| match error {
            RescheduleError::Expired => No::Expired,
            RescheduleError::Cancelled => No::Cancelled,
            _ => No::Stopped,
        });
        self.see(Event::Reschedule(id, moved));
    }

    pub(super) fn look(&self, id: usize, timeout: &Timeout) {
        let looks = Looks {
            cancelled: timeout.is_cancelled(),
            expired: timeout.is_expired(),
            deadline: timeout.deadline().map(|deadline| self.nanos_at(deadline)),
        };
        self.see(Event::Look(id, looks));
    }
}

/// The reason for a refusal. Drops the task in the error.
pub(super) fn why_not<T>(error: ScheduleError<T>) -> No {
    match error.reason() {
        RefusalReason::Stopped => No::Stopped,
        RefusalReason::LimitReached { .. } => No::LimitReached,
        reason => panic!("{reason}"),
    }
}

/// A duration in nanoseconds. `u64::MAX` stands for never.
pub(super) fn length(nanos: u64) -> Duration {
    if nanos == u64::MAX { Duration::MAX } else { Duration::from_nanos(nanos) }
}

pub(super) fn before(now: Instant, ago: u64) -> Instant {
    now.checked_sub(Duration::from_nanos(ago)).unwrap_or(now - Duration::from_secs(1))
}
