//! Scheduling on the calling thread: arms a slot under a deadline, announces it, and takes it back if the
//! timer was closed meanwhile. `time/timebase` computes the deadline from a delay, and the worker the tick from
//! the deadline.

use super::erased::{Erased, Link};
use super::handle::Timeout;
use super::task::TimerTask;
use super::this_thread::with_owner;
use crate::intake::{Owner, Pin, Runs};

/// Why a task was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The timer is closed.
    Closed,
    /// The timer can have no more chunks.
    Full,
}

/// How a timeout begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// The timeout runs at its deadline.
    Once,
    /// The timeout is periodic.
    Series,
    /// The timeout is due by now, and runs within the worker's present pass.
    DueNow,
}

/// Schedules a task on the calling thread. `refuse` makes the error: it is called here so that the
/// result is written once.
#[inline]
pub(crate) fn schedule<T: TimerTask, E>(
    timer: &Link,
    task: T,
    deadline: u64,
    admit: Admit,
    refuse: impl FnOnce((T, Refusal)) -> E,
) -> Result<Timeout, E> {
    let mut task = Some(task);
    let armed = with_owner(timer, |owner| arm(owner, &mut task, deadline, admit));
    let armed = match armed {
        Some(Some(armed)) if !timer.gate.is_closed() => {
            return Ok(Timeout::from(armed));
        }
        armed => armed,
    };
    let scheduled = match (armed, task) {
        (Some(Some(armed)), _) => take_back(Timeout::from(armed)),
        (Some(None), Some(task)) => Err((task, refused(timer, false))),
        (None, Some(task)) => schedule_without_owner(timer, task, deadline, admit),
        (_, None) => unreachable!("a task that is not armed stays"),
    };
    scheduled.map_err(refuse)
}

/// Schedules a task that only wakes a waker. Ignores the limit, because a future could not report a refusal. If the
/// timer is closed, or has no free slot, returns the task.
#[inline]
pub(crate) fn schedule_waker<T: TimerTask>(
    timer: &Link,
    task: T,
    deadline: u64,
) -> Result<Timeout, T> {
    const { assert!(T::KIND.only_wakes) };
    timer.gate.begins_again();
    schedule(timer, task, deadline, Admit::Once, |(task, _)| {
        timer.gate.ended(1);
        task
    })
}

/// Schedules without a cached owner: on a thread that is ending, or in a timer without room.
#[cold]
fn schedule_without_owner<T: TimerTask>(
    timer: &Link,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, (T, Refusal)> {
    match timer.shared().and_then(|shared| Owner::enter(&shared)) {
        Some(mut owner) => schedule_in(&mut owner, task, deadline, admit),
        None => Err((task, refused(timer, false))),
    }
}

/// Schedules through `owner`.
pub(super) fn schedule_in<T: TimerTask>(
    owner: &mut Owner<Erased>,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, (T, Refusal)> {
    let mut task = Some(task);
    match (arm(owner, &mut task, deadline, admit), task) {
        (Some(armed), _) if armed.chunk().timer.gate.is_closed() => take_back(Timeout::from(armed)),
        (Some(armed), _) => Ok(Timeout::from(armed)),
        (None, Some(task)) => Err((task, refused(&owner.home.timer, owner.chunk().internal))),
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
    if !owner.has_room() {
        return None;
    }
    // A series keeps its phase.
    let deadline =
        if admit == Admit::Once { owner.home.timer.gate.not_overdue(deadline) } else { deadline };
    let runs = match admit {
        Admit::Series => Runs::Periodically,
        _ if T::KIND.runs_once => Runs::Once,
        _ => Runs::MayGoOn,
    };
    let armed = owner.arm(Erased::new(task.take()?), deadline, runs);
    submit(owner, deadline, admit);
    Some(armed)
}

/// Counts a refusal before the slot is armed, and returns its reason.
#[cold]
pub(super) fn refused(timer: &Link, internal: bool) -> Refusal {
    timer.count(|counts| counts.of(internal).rejected.add_shared(1));
    if timer.gate.is_closed() { Refusal::Closed } else { Refusal::Full }
}

/// Announces a slot that was armed.
#[inline]
fn submit(owner: &Owner<Erased>, deadline: u64, admit: Admit) {
    if admit == Admit::DueNow {
        owner.chunk().announce_due(deadline);
    } else {
        owner.chunk().announce_new(deadline);
    }
}

/// Takes back a timeout that was armed in a closed timer, unless it has already ended. If it has run and
/// gone on meanwhile, cancels it instead: a refused task has not run.
#[cold]
fn take_back<T: TimerTask>(timeout: Timeout) -> Result<Timeout, (T, Refusal)> {
    let Some(taken) = timeout.take_back() else { return Ok(timeout) };
    if taken.has_run {
        timeout.cancel_late(taken);
        return Ok(timeout);
    }
    timeout.count_taken_back();
    Err((taken.payload.into_type(), Refusal::Closed))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
