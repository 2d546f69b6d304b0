//! The run of a task, on the worker or on an executor, and how its timeout goes on afterwards.
//!
//! A task returns itself with the time of its next run, or nothing. If it returns nothing or panics, which drops it,
//! the run is finished, and without a handle the slot is free. If it returns itself, the task goes back into the same
//! slot, with a new version. On the worker, the worker files its token at once. On another thread, it
//! is New, and its chunk announces it. A missed run of a series is announced as due now on either thread, so that it
//! takes its place among the due timeouts.
//!
//! If a cancel has come during the run, the timeout does not go on: the task is told that it is cancelled.

use super::handle::Timeout;
use super::payload::{Again, Erased, Link, When};
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::intake::shared::Gate;
use crate::intake::{Phase, Pin, Runner, Slot};
use crate::time::tick::NEVER;
use crate::wheel::Token;
use std::fmt;
use std::time::Instant;

/// The context of a run: the task reads its timeout, its deadline and the time from it. It cannot
/// outlive the run.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::task::{Next, Run, TimerTask};
/// use wheelwork::{HashedWheelTimer, ManualClock};
///
/// struct Poll;
///
/// impl TimerTask for Poll {
///     fn run(self, run: &Run<'_>) -> Next<Self> {
///         println!("late by {:?}", run.now() - run.deadline());
///         Next::at(self, run.deadline() + Duration::from_secs(1)) // a rate, until a stall
///     }
/// }
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// timer.new_timeout(Poll, Duration::from_secs(1))?;
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(timer.metrics().rearmed, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Run<'a>(pub(super) &'a Pin<Erased>);

/// When a timeout that goes on is due.
struct NextRun {
    deadline: u64,
    /// Whether this is a missed run, which is due by now.
    missed: bool,
}

impl Run<'_> {
    fn slot(&self) -> &Slot<Erased> {
        self.0.slot()
    }

    fn gate(&self) -> &Gate {
        &self.0.chunk().timer.gate
    }

    /// The instant at which this run was due.
    pub fn deadline(&self) -> Instant {
        self.gate().time.instant_at(self.slot().deadline())
    }

    /// The current instant by the timer's clock.
    pub fn now(&self) -> Instant {
        self.gate().time.now_instant()
    }

    /// A handle to the timeout.
    pub fn timeout(&self) -> Timeout {
        Timeout::from(self.0.clone())
    }

    /// Whether a cancel has come since the run began, or since its job was handed to an executor. The timeout then does
    /// not go on: if the run asks for that, the task's [`cancelled`](crate::task::TimerTask::cancelled) callback is called instead.
    pub fn is_cancelled(&self) -> bool {
        self.slot().phase() == Phase::Denied
    }

    /// The end of the run. `None` if the clock panics, since that must not end the timeout.
    pub(super) fn end(&self) -> Option<Instant> {
        let end = self.0.chunk().timer.now_contained();
        end.map(|end| self.gate().time.instant_at(end))
    }
}

/// Runs the task on the worker. If the timeout goes on and is Filed, returns its entry, which the worker files: the
/// deadline and the token. If it does not go on, the worker finishes the run.
#[inline]
pub(crate) fn run_on_worker(runner: &mut Runner<Erased>, task: Erased) -> Option<(u64, Token)> {
    let (task, when) = run(runner.pin(), task)?;
    go_on_worker(runner, task, when)
}

#[cold]
fn go_on_worker(runner: &mut Runner<Erased>, task: Erased, when: When) -> Option<(u64, Token)> {
    let (due, token) = go_on(runner, task, when, true)?;
    if due.missed {
        runner.pin().chunk().announce_due(due.deadline);
        return None;
    }
    Some((due.deadline, token))
}

/// Runs the task on any thread. If the timeout goes on, announces it. If not, finishes the run.
pub(crate) fn run_elsewhere(runner: &mut Runner<Erased>, task: Erased) {
    if let Some((task, when)) = run(runner.pin(), task) {
        go_on_elsewhere(runner, task, when);
    }
    runner.finish();
}

fn go_on_elsewhere(runner: &mut Runner<Erased>, task: Erased, when: When) {
    let Some((due, _)) = go_on(runner, task, when, false) else { return };
    let chunk = runner.pin().chunk();
    if due.missed {
        chunk.announce_due(due.deadline);
    } else {
        chunk.announce_moved(due.deadline);
    }
    if gate_of(runner).is_emptied() {
        let timeout = Timeout::from(runner.pin().clone());
        timeout.pin().take_back().into_iter().for_each(|task| timeout.cancel_gone_on(task));
    }
}

fn timer_of(runner: &Runner<Erased>) -> &Link {
    &runner.pin().chunk().timer
}

fn gate_of(runner: &Runner<Erased>) -> &Gate {
    &timer_of(runner).gate
}

/// Runs the task. Returns it with the time of its next run, if there is one.
#[inline]
fn run(pin: &Pin<Erased>, task: Erased) -> Again<Erased> {
    catch_panic::contained(|| task.run(pin)).unwrap_or_else(|| {
        task_panicked(pin);
        None
    })
}

#[cold]
fn task_panicked(pin: &Pin<Erased>) {
    let shared = pin.chunk().timer.shared();
    shared.iter().for_each(|shared| shared.counts.worker.panicked.add_shared(1));
    let timer = shared.as_ref().map_or("", |shared| shared.name());
    warning!([timer = timer], "{timer}: the task of {:?} panicked", Run(pin));
}

/// When the next run is due. `None` if it counts from the end of this one, and the clock panics.
fn next_due(timer: &Link, when: When) -> Option<NextRun> {
    let gate = &timer.gate;
    let deadline = match when {
        When::After(NEVER) => NEVER,
        When::After(delay) => timer.now_contained()?.saturating_add(delay),
        When::At(instant) | When::OnBeat(instant, _) => gate.time.nanos_at(instant),
    };
    let not_overdue = gate.not_overdue(deadline);
    Some(match when {
        // Moved, it would look like a reschedule, and the series would count from there.
        When::OnBeat(_, missed) => NextRun { deadline, missed: missed || deadline < not_overdue },
        _ => NextRun { deadline: not_overdue, missed: false },
    })
}

/// Puts the task back into the slot, even if the timer is closed: the end of the timer finds it there. Returns when it is
/// due, and the token for its entry.
/// If a cancel has come during the run, or if the clock panics, cancels the timeout, as if the cancel had come just after
/// the timeout went on.
fn go_on(
    runner: &mut Runner<Erased>,
    task: Erased,
    when: When,
    on_worker: bool,
) -> Option<(NextRun, Token)> {
    // Counted before the timeout can end, so that no count is ever too low.
    gate_of(runner).take_permit_beyond();
    timer_of(runner).count(|counts| match on_worker {
        true => _ = counts.by_worker.rearmed.add(1),
        false => counts.by_others.rearmed.add_shared(1),
    });
    let refused = match next_due(timer_of(runner), when) {
        None => task,
        Some(due) => {
            let files = on_worker && !due.missed;
            let phase = if files { Phase::Filed } else { Phase::New };
            match runner.go_on(task, due.deadline, phase) {
                Ok(version) => {
                    let pin = runner.pin();
                    return Some((due, pin.chunk().token(pin.offset(), version)));
                }
                Err(task) => task,
            }
        }
    };
    runner.abandon();
    Timeout::of(runner.pin()).cancel_gone_on(refused);
    None
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("deadline", &self.deadline())
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
