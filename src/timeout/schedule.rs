//! Scheduling on the calling thread: takes a permit, arms a slot under a deadline, announces it, and takes it back if
//! the timer was closed meanwhile. `time/timebase` computes the deadline from a delay, and the worker the tick from
//! the deadline.
//!
//! **Internal timeouts** are those that the crate schedules for itself. The idle manager uses them. Users do not see
//! them: no limit refuses them, no public count includes them, and no stop returns them. The end of the timer
//! always cancels them. Their tasks hear of it after the report, because a stop with a limit must not wait for them.
//!
//! All internal timeouts of a timer have one owner, which belongs to no thread. Their chunks bear the mark, so no
//! slot of a user's timeout needs one. A lock guards the owner. It may be taken under a lock of the layers above. No
//! task runs or is dropped under it.

use super::error::{RefusalReason, ScheduleError};
use super::handle::{Internal, Timeout};
use super::payload::{Erased, Link};
use super::task::TimerTask;
use super::this_thread::with_owner;
use crate::base::sync::Mutex;
use crate::intake::{MAX_CHUNKS, Owner, Pin, Runs, SLOTS};
use crate::metrics::{Count, Tally};

/// How a timeout begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// The timeout runs at its deadline.
    Once,
    /// The timeout is periodic.
    Series,
    /// The timeout is due by now, and runs within the worker's current pass.
    DueNow,
}

/// Schedules a task on the calling thread, unless the limit of pending timeouts is reached. The limit does not apply to a
/// task that only wakes a waker, because a future could not report a refusal.
#[inline]
pub(crate) fn schedule<T: TimerTask>(
    timer: &Link,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, ScheduleError<T>> {
    if T::KIND.only_wakes {
        timer.gate.take_permit_beyond();
    } else if let Err(limit) = timer.gate.take_permit() {
        return Err(over_limit(timer, task, limit));
    }
    let mut task = Some(task);
    let armed = match with_owner(timer, |owner| arm(owner, &mut task, deadline, admit)) {
        Some(Some(armed)) if !timer.gate.is_closed() => return Ok(Timeout::from(armed)),
        armed => armed.flatten(),
    };
    match task {
        Some(task) => schedule_without_owner(timer, task, deadline, admit),
        None => admitted(timer, false, armed, task),
    }
}

#[cold]
fn over_limit<T>(timer: &Link, task: T, limit: usize) -> ScheduleError<T> {
    timer.count(|counts| counts.worker.over_limit.add_shared(1));
    ScheduleError::new(RefusalReason::LimitReached { limit }, task)
}

/// Schedules without a cached owner: on a thread that is ending, or in a timer without room.
#[cold]
fn schedule_without_owner<T: TimerTask>(
    timer: &Link,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, ScheduleError<T>> {
    match timer.shared().and_then(|shared| Owner::enter(&shared)) {
        Some(mut owner) => schedule_in(&mut owner, task, deadline, admit),
        None => admitted(timer, false, None, Some(task)),
    }
}

/// Schedules through `owner`.
fn schedule_in<T: TimerTask>(
    owner: &mut Owner<Erased>,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, ScheduleError<T>> {
    let mut task = Some(task);
    let armed = arm(owner, &mut task, deadline, admit);
    admitted(&owner.home.timer, owner.chunk.internal, armed, task)
}

/// The timeout that was armed, or the task that was not. Takes the timeout back if the timer was closed meanwhile.
#[inline(never)]
fn admitted<T: TimerTask>(
    timer: &Link,
    internal: bool,
    armed: Option<Pin<Erased>>,
    task: Option<T>,
) -> Result<Timeout, ScheduleError<T>> {
    match (armed, task) {
        (Some(armed), _) if timer.gate.is_closed() => take_back(Timeout::from(armed)),
        (Some(armed), _) => Ok(Timeout::from(armed)),
        (None, Some(task)) => Err(refused(timer, internal, task, |tally| &tally.rejected)),
        (None, None) => unreachable!("a task that is not armed stays"),
    }
}

/// Arms and announces a slot with the task. The caller checks afterwards whether the timer was closed meanwhile.
/// `None` if the timer has no more chunks: the task then stays where it is.
#[inline(always)] // writes the task directly to its slot
fn arm<T: TimerTask>(
    owner: &mut Owner<Erased>,
    task: &mut Option<T>,
    deadline: u64,
    admit: Admit,
) -> Option<Pin<Erased>> {
    // A series keeps its phase.
    let deadline =
        if admit == Admit::Once { owner.home.timer.gate.not_overdue(deadline) } else { deadline };
    let runs = match admit {
        Admit::Series => Runs::Periodically,
        _ if T::KIND.runs_once => Runs::Once,
        _ => Runs::MayGoOn,
    };
    let payload = || Erased::new(task.take().expect("the caller's task"));
    let armed = owner.arm(payload, deadline, runs)?;
    match admit {
        Admit::DueNow => owner.chunk.announce_due(deadline),
        _ => owner.chunk.announce_new(deadline),
    }
    Some(armed)
}

/// Refuses a task that has not run: gives its permit back, and counts that.
#[cold]
fn refused<T>(
    timer: &Link,
    internal: bool,
    task: T,
    count: fn(&Tally) -> &Count,
) -> ScheduleError<T> {
    if !internal {
        timer.gate.release_permits(1);
    }
    timer.count(|counts| count(counts.of(internal)).add_shared(1));
    let reason = if timer.gate.is_closed() {
        RefusalReason::Stopped
    } else {
        RefusalReason::LimitReached { limit: (MAX_CHUNKS as usize).saturating_mul(SLOTS) }
    };
    ScheduleError::new(reason, task)
}

/// Takes back a timeout that was armed in a closed timer, unless it has already ended. If it has run and
/// gone on meanwhile, cancels it instead: a refused task has not run.
#[cold]
fn take_back<T: TimerTask>(timeout: Timeout) -> Result<Timeout, ScheduleError<T>> {
    let Some(task) = timeout.pin().take_back() else { return Ok(timeout) };
    // Read after the exchange of `take_back`, whose acquire pairs with the release of `go_on`.
    if timeout.pin().slot().has_gone_on() {
        timeout.cancel_gone_on(task);
        return Ok(timeout);
    }
    let chunk = timeout.pin().chunk();
    Err(refused(&chunk.timer, chunk.internal, task.into_type(), |tally| &tally.taken_back))
}

/// The internal timeouts of one timer: their owner. `None` before the first timeout and after the end.
#[derive(Default)]
pub(crate) struct Internals(Mutex<Option<Owner<Erased>>>);

impl Internals {
    pub(crate) fn schedule<T: TimerTask>(
        &self,
        timer: &Link,
        task: T,
        deadline: u64,
        admit: Admit,
    ) -> Result<Internal, ScheduleError<T>> {
        let mut owner = self.0.lock();
        if owner.is_none() && !timer.gate.is_closed() {
            *owner = timer.shared().and_then(|shared| Owner::of_internals(&shared));
        }
        match &mut *owner {
            Some(owner) => schedule_in(owner, task, deadline, admit).map(Internal),
            None => Err(refused(timer, true, task, |tally| &tally.rejected)),
        }
    }

    /// Drops their owner. The worker's thread calls it after the timer has ended.
    pub(crate) fn end(&self) {
        let owner = self.0.lock().take();
        drop(owner); // the lock is released
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
