//! The run of a task, on the worker or on an executor, and how its timeout goes on afterwards.

use super::erased::{Erased, Place};
use super::handle::Timeout;
use super::next::When;
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::intake::context::Context;
use crate::intake::{CatchUp, Phase, Slot, UNKNOWN};
use crate::time::tick::NEVER;
use std::fmt;
use std::time::Instant;

/// The context of a run: the task reads its timeout, its deadline and the time from it. It cannot
/// outlive the run.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, ManualClock, Next, Run, TimerTask};
///
/// struct Poll;
///
/// impl TimerTask for Poll {
///     fn run(self, run: &Run<'_>) -> Next<Self> {
///         println!("late by {:?}", run.now() - run.deadline());
///         Next::at(self, run.deadline() + Duration::from_secs(1)) // a fixed rate
///     }
/// }
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// timer.new_timeout(Poll, Duration::from_secs(1))?;
/// clock.advance_through(Duration::from_secs(3));
/// assert_eq!(timer.metrics().rearmed, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Run<'a>(Place<'a>);

/// What the worker does with the entry of a timeout that goes on after a run. The timeout is Filed.
pub(crate) enum GoesOn {
    /// Files it in the wheel.
    At(CatchUp),
    /// Runs it within the pass.
    Missed(CatchUp),
    /// Nothing: the entry waits for the clock.
    WhenKnown,
}

/// When a timeout that goes on is due.
#[derive(Clone, Copy)]
enum Due {
    At(u64),
    Missed(u64),
    /// This long after the clock can be read again.
    AfterClock(u64),
}

impl Due {
    fn deadline(self) -> u64 {
        match self {
            Due::At(deadline) | Due::Missed(deadline) => deadline,
            Due::AfterClock(_) => UNKNOWN,
        }
    }
}

impl<'a> Run<'a> {
    /// A run of the timeout at this place. The runner has the live pin.
    #[inline]
    pub(crate) fn new(place: Place<'a>) -> Self {
        Self(place)
    }

    /// The place of the timeout's slot.
    pub(super) fn place(&self) -> Place<'a> {
        self.0
    }

    fn slot(&self) -> &Slot<Erased> {
        self.0.slot()
    }

    fn context(&self) -> &Context {
        &self.0.chunk.context
    }

    /// The instant at which this run was due.
    pub fn deadline(&self) -> Instant {
        self.context().time.instant_at(self.slot().deadline())
    }

    /// The present instant by the timer's clock.
    pub fn now(&self) -> Instant {
        self.context().time.now_instant()
    }

    /// A handle to the timeout.
    pub fn timeout(&self) -> Timeout {
        self.slot().pin();
        Timeout::pinned(self.0)
    }

    /// Whether a cancel has come since the run began. The timeout then does not go on: if the run asks for
    /// that, the task's [`cancelled`](crate::TimerTask::cancelled) callback is called instead.
    pub fn is_cancelled(&self) -> bool {
        self.slot().phase() == Phase::Denied
    }

    /// Runs the task on the worker. If the timeout goes on, the live pin belongs to the slot again, the
    /// worker has another pin, and it files the returned entry. If not, the worker keeps the live pin
    /// and finishes the run.
    #[inline]
    pub(crate) fn on_worker(&self, task: Erased) -> Option<GoesOn> {
        let (task, when) = self.run(task)?;
        self.go_on_worker(task, when)
    }

    #[cold]
    fn go_on_worker(&self, task: Erased, when: When) -> Option<GoesOn> {
        let due = self.next_due(when);
        let context = self.context();
        self.slot().pin();
        // Counted before the timeout can end, so that no count is ever too low.
        context.begins_again();
        context.counts.by_worker.rearmed.add(1);
        let Some(version) = self.go_on(task, due.deadline(), Phase::Filed) else {
            self.slot().unpin(1);
            return None;
        };
        let token = self.0.chunk.token(self.0.offset, version);
        Some(match due {
            Due::At(deadline) => GoesOn::At(CatchUp { token, deadline }),
            Due::Missed(deadline) => GoesOn::Missed(CatchUp { token, deadline }),
            Due::AfterClock(delay) => {
                context.wait_for_clock(token, delay);
                GoesOn::WhenKnown
            }
        })
    }

    /// Runs the task on any thread. If the timeout goes on, announces it. If not, finishes the run. The
    /// caller has a pin in both cases.
    pub(crate) fn on_executor(&self, task: Erased) {
        let next = self.run(task);
        let goes_on = next.is_some_and(|(task, when)| self.go_on_elsewhere(task, when));
        if !goes_on {
            self.slot().finish();
        }
    }

    fn go_on_elsewhere(&self, task: Erased, when: When) -> bool {
        let due = self.next_due(when);
        let context = self.context();
        // The live pin goes back to the slot, so the timeout may end before this returns.
        self.slot().pin();
        // Counted before the timeout can end, so that no count is ever too low.
        context.begins_again();
        context.counts.by_others.rearmed.add_shared(1);
        let phase = if matches!(due, Due::At(_)) { Phase::New } else { Phase::Filed };
        let Some(version) = self.go_on(task, due.deadline(), phase) else {
            self.slot().unpin(1);
            return false;
        };
        let token = self.0.chunk.token(self.0.offset, version);
        match due {
            Due::At(deadline) => {
                context.counts.by_others.renewed.add_shared(1);
                self.0.chunk.announce_moved(deadline);
            }
            Due::Missed(deadline) => context.catch_up(CatchUp { token, deadline }),
            Due::AfterClock(delay) => context.wait_for_clock(token, delay),
        }
        if context.is_emptied() {
            let timeout = self.timeout();
            timeout.take_back().into_iter().for_each(|taken| timeout.cancel_late(taken));
        }
        true
    }

    /// Runs the task. Returns it with the time of its next run, if there is one.
    #[inline]
    fn run(&self, task: Erased) -> Option<(Erased, When)> {
        let Some(next) = catch_panic::contained(|| task.run(self.0)) else {
            self.context().counts.worker.task_panicked();
            let timer = self.context().name();
            warning!([timer = timer], "{timer}: the task of {self:?} panicked");
            return None;
        };
        next.into_parts()
    }

    /// When the next run is due.
    fn next_due(&self, when: When) -> Due {
        let (context, time) = (self.context(), &self.context().time);
        match when {
            When::After(NEVER) => Due::At(NEVER),
            When::After(delay) => match context.now_contained() {
                Some(end) => Due::At(context.not_overdue(end.saturating_add(delay))),
                None => Due::AfterClock(delay),
            },
            When::At(instant) => Due::At(context.not_overdue(time.nanos_at(instant))),
            When::Missed(instant) => Due::Missed(time.nanos_at(instant)),
        }
    }

    /// The end of the run. `None` if the clock panics, since that must not end the timeout.
    pub(super) fn end(&self) -> Option<Instant> {
        let context = self.context();
        context.now_contained().map(|end| context.time.instant_at(end))
    }

    /// Puts the task back into the slot, even if the timer is closed: the end of the timer finds it there.
    /// If a cancel has come during the run, or if the end has already emptied the slots, cancels the timeout,
    /// as if the cancel had come just after the timeout went on. The caller has counted that it goes on.
    fn go_on(&self, task: Erased, deadline: u64, phase: Phase) -> Option<u16> {
        let context = self.context();
        let refused = if context.is_emptied() {
            task
        } else {
            match self.slot().go_on(task, deadline, phase) {
                Ok(version) => return Some(version),
                Err(task) => task,
            }
        };
        self.slot().abandon();
        context.ended(1);
        context.counts.by_others.cancelled.add_shared(1);
        Timeout::with(self.0, |timeout| timeout.tell_cancelled(refused));
        None
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("deadline", &self.deadline())
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Timeout {
    /// A run of this timeout's task.
    pub(crate) fn run(&self) -> Run<'_> {
        Run::new(self.place())
    }
}
