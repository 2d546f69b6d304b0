//! The handle to a timeout, and the run of its task.
//!
//! The phases of a timeout are in `shard/slot.rs`. Every change of phase happens under the lock of
//! the timeout's shard. A handle pins its slot, so it never finds another timeout there. Once a
//! handle has seen the timeout's end, it is *settled*: it remembers the end, removes its pin, and
//! never accesses the slot again. A handle settles under the shard's lock, so two threads that
//! share one handle cannot remove its pin twice.
//!
//! | `settled` | the handle | leaves it by |
//! |---|---|---|
//! | 0 | pins its slot | under the lock: sees or causes the end -> that phase, and the pin is removed |
//! | an ended phase | pins nothing, and answers from memory | never |

use super::error::RescheduleError;
use super::next::{Next, When};
use crate::base::isolate;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicU8, MutexGuard, Ordering};
use crate::shard::context::Context;
use crate::shard::{Cancel, Phase, Record, Refusal, Shard, State};
use crate::time::tick::nanos;
use crate::wheel::Token;
use std::any::Any;
use std::fmt;
use std::time::{Duration, Instant};

/// A task whose type is erased; see `task`.
pub(crate) trait ErasedTask: Send {
    fn run(self: Box<Self>, run: &Run<'_>) -> Next<BoxedTask>;
    fn cancelled(self: Box<Self>, timeout: &Timeout);
    /// Moves the task into `into` if that is an `Option` of its type. Otherwise returns it.
    fn give(self: Box<Self>, into: &mut dyn Any) -> Result<(), BoxedTask>;
}

pub(crate) type BoxedTask = Box<dyn ErasedTask>;

/// A shard of a timer, with the timer's shared context.
pub(crate) struct TimerShard {
    pub(crate) shard: Shard<BoxedTask>,
    pub(crate) context: Arc<Context>,
}

impl TimerShard {
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<BoxedTask>> {
        self.shard.lock()
    }

    /// The token under which the wheel holds a record of this shard.
    pub(crate) fn token(&self, record: &Record) -> Token {
        self.shard.token(record)
    }
}

/// A handle to a timeout: cancels it, moves it, tells its state.
///
/// Clones are handles to the same timeout. Dropping the last handle detaches the timeout, which
/// still fires; see [`cancel_on_drop`](Self::cancel_on_drop) for the opposite.
///
/// Every method is O(1) and briefly takes the lock of the timeout's shard. A handle keeps about 40
/// bytes of its timer's memory in use, even after the timeout's end, until it is dropped or has
/// itself reported that end.
pub struct Timeout {
    shard: Arc<TimerShard>,
    index: u32,
    /// The phase in which the timeout ended, or `Phase::Free` (0) while this handle pins the slot.
    /// Written under the shard's lock. A relaxed load outside the lock may miss the end; it is then
    /// repeated under the lock.
    settled: AtomicU8,
}

impl Timeout {
    /// A handle to the timeout in a slot that is already pinned for it.
    #[inline]
    pub(crate) fn pinned(shard: Arc<TimerShard>, index: u32) -> Self {
        Self { shard, index, settled: AtomicU8::new(0) }
    }

    /// Cancels the timeout. True for the one caller whose cancel comes before the expiry and before
    /// all other cancels. The task is told ([`TimerTask::cancelled`](crate::TimerTask::cancelled))
    /// and dropped immediately, on this thread.
    ///
    /// While the task runs, the result is false, but the timeout does not go on. For a periodic
    /// timeout, and for one that has gone on before, the result is then true: no further run
    /// starts. If its run still waits in an executor, that run does not start either.
    pub fn cancel(&self) -> bool {
        let mut state = self.shard.lock();
        if self.settled_phase().is_some() {
            return false;
        }
        match state.cancel(self.index) {
            Cancel::Won(task, wake) => {
                self.settled.store(Phase::Cancelled as u8, Ordering::Relaxed);
                drop(state);
                self.context().ended(1);
                self.context().wake(wake, crate::time::tick::NEVER);
                self.tell_cancelled(task);
                true
            }
            Cancel::Denied(stops_series) => stops_series,
            Cancel::Lost => {
                self.observe(&mut state);
                false
            }
        }
    }

    /// Whether the timeout was cancelled before its task could run, or run again.
    pub fn is_cancelled(&self) -> bool {
        self.phase() == Phase::Cancelled
    }

    /// Whether the deadline has passed and the task was handed to the executor: it runs or has run.
    /// A timeout that goes on is pending again, and not expired.
    pub fn is_expired(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Denied | Phase::Expired)
    }

    /// The instant at which the timeout expires, or at which its present run was due. `None` after
    /// the timeout's end.
    pub fn deadline(&self) -> Option<Instant> {
        let state = self.shard.lock();
        let present = self.settled_phase().is_none() && !state.phase(self.index).has_ended();
        present.then(|| self.context().time.instant_at(state.deadline(self.index)))
    }

    /// Moves the deadline to `delay` from now, without an allocation.
    ///
    /// Pushing a timeout back costs a clock read and two stores under the shard's lock. It does not
    /// touch the wheel: the entry comes up too soon, and the worker files it again, at most once
    /// per former delay. Pulling a timeout forward submits a new entry.
    ///
    /// A rescheduled timeout has no guaranteed order among the timeouts of its tick.
    ///
    /// # Errors
    ///
    /// If the task has run or is running, if the timeout is cancelled, or if the timer is stopped.
    pub fn reschedule(&self, delay: Duration) -> Result<(), RescheduleError> {
        self.reschedule_to(self.context().time.now_or_later().saturating_add(nanos(delay)))
    }

    /// Moves the deadline to an instant, like [`reschedule`](Self::reschedule). Reads no clock.
    ///
    /// # Errors
    ///
    /// The errors of `reschedule`.
    pub fn reschedule_at(&self, deadline: Instant) -> Result<(), RescheduleError> {
        self.reschedule_to(self.context().time.nanos_at(deadline))
    }

    fn reschedule_to(&self, deadline: u64) -> Result<(), RescheduleError> {
        let mut state = self.shard.lock();
        if let Some(end) = self.settled_phase() {
            return Err(why_not(end));
        }
        match state.reschedule(self.index, deadline) {
            Ok(wake) => {
                drop(state);
                self.context().wake(wake, deadline);
                Ok(())
            }
            Err(Refusal::Phase(phase)) => Err(why_not(phase)),
            Err(Refusal::Closed | Refusal::Full) => Err(RescheduleError::Stopped),
        }
    }

    /// The present instant by the timer's clock.
    pub fn now(&self) -> Instant {
        self.context().time.now_instant()
    }

    pub(crate) fn context(&self) -> &Context {
        &self.shard.context
    }

    pub(crate) fn tell_cancelled(&self, task: BoxedTask) {
        if isolate::panics(|| task.cancelled(self)) {
            self.context().metrics.task_panicked();
            warning!("the cancelled callback of {self:?} panicked");
        }
    }

    /// A run of this timeout's task.
    pub(crate) fn run(&self) -> Run<'_> {
        Run::new(&self.shard, self.index)
    }

    /// Whether the run must not begin, because a cancel was answered with true while the job
    /// waited.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.shard.lock().withdrawn(self.index)
    }

    /// Ends a run after which the timeout does not go on.
    pub(crate) fn finish_run(&self) {
        self.shard.lock().finish(self.index);
    }

    /// Counts the timeout as cancelled after its runner has lost the task.
    pub(crate) fn abandon(&self) {
        self.shard.lock().abandon(self.index);
    }

    /// Counts the timeout as cancelled after nobody has collected it from a stop.
    pub(crate) fn unreturn(&self) {
        let mut state = self.shard.lock();
        if self.settled_phase().is_none() {
            state.unreturn(self.index);
        }
    }

    fn phase(&self) -> Phase {
        if let Some(end) = self.settled_phase() {
            return end;
        }
        let mut state = self.shard.lock();
        self.settled_phase().unwrap_or_else(|| self.observe(&mut state))
    }

    /// The phase in which the timeout ended, if this handle has settled. Relaxed: the handle
    /// settles under the lock, and a load that misses it is repeated there.
    #[inline]
    fn settled_phase(&self) -> Option<Phase> {
        Some(Phase::from_bits(self.settled.load(Ordering::Relaxed))).filter(|&p| p != Phase::Free)
    }

    fn settle(&self, state: &mut State<BoxedTask>, end: Phase) {
        self.settled.store(end as u8, Ordering::Relaxed);
        state.unpin(self.index);
    }

    fn observe(&self, state: &mut State<BoxedTask>) -> Phase {
        let phase = state.phase(self.index);
        if phase.has_ended() {
            self.settle(state, phase);
        }
        phase
    }
}

fn why_not(phase: Phase) -> RescheduleError {
    match phase {
        Phase::Cancelled => RescheduleError::Cancelled,
        Phase::Returned => RescheduleError::Stopped,
        _ => RescheduleError::Expired,
    }
}

impl Clone for Timeout {
    fn clone(&self) -> Self {
        let mut state = self.shard.lock();
        let settled = self.settled.load(Ordering::Relaxed);
        if settled == 0 {
            state.pin(self.index);
        }
        Self { shard: self.shard.clone(), index: self.index, settled: AtomicU8::new(settled) }
    }
}

impl Timeout {
    /// Removes the handle's pin. Kept out of line, so that the drop of a settled handle stays
    /// cheap.
    #[inline(never)]
    fn detach(&self) {
        self.shard.lock().unpin(self.index);
    }
}

impl Drop for Timeout {
    #[inline]
    fn drop(&mut self) {
        if self.settled_phase().is_none() {
            self.detach();
        }
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase() {
            Phase::Free | Phase::Armed => "pending",
            Phase::Running | Phase::Denied => "running",
            Phase::Expired => "expired",
            Phase::Cancelled => "cancelled",
            Phase::Returned => "returned",
        };
        let now = self.now();
        let mut out = f.debug_struct("Timeout");
        out.field("state", &phase);
        if let Some(deadline) = self.deadline() {
            match deadline.checked_duration_since(now) {
                Some(left) => out.field("due_in", &left),
                None => out.field("overdue_by", &now.saturating_duration_since(deadline)),
            };
        }
        out.finish()
    }
}

/// A run, as its task sees it: the timeout, its deadline, the time. It cannot outlive the run.
pub struct Run<'a> {
    shard: &'a Arc<TimerShard>,
    index: u32,
}

impl<'a> Run<'a> {
    /// A run of the timeout in a slot that is pinned for the runner.
    #[inline]
    pub(crate) fn new(shard: &'a Arc<TimerShard>, index: u32) -> Self {
        Self { shard, index }
    }

    /// The instant at which this run was due.
    pub fn deadline(&self) -> Instant {
        let deadline = self.shard.lock().deadline(self.index);
        self.shard.context.time.instant_at(deadline)
    }

    /// The present instant by the timer's clock.
    pub fn now(&self) -> Instant {
        self.shard.context.time.now_instant()
    }

    /// A handle to the timeout.
    pub fn timeout(&self) -> Timeout {
        self.shard.lock().pin(self.index);
        Timeout::pinned(self.shard.clone(), self.index)
    }

    /// Whether the timeout was cancelled since the run began. It then does not go on.
    pub fn is_cancelled(&self) -> bool {
        self.shard.lock().phase(self.index) == Phase::Denied
    }

    /// Runs the task on this thread; true if the timeout goes on. If so, calls `file` under the
    /// shard's lock, with the new record and whether the next run is a missed one. If not, the
    /// caller finishes the run in the shard.
    #[inline]
    pub(crate) fn of(
        &self,
        task: BoxedTask,
        file: impl FnOnce(&mut State<BoxedTask>, Record, bool),
    ) -> bool {
        let Some(next) = isolate::contained(|| task.run(self)) else {
            self.shard.context.metrics.task_panicked();
            warning!("the task of {self:?} panicked");
            return false;
        };
        next.into_parts().is_some_and(|(task, when)| self.go_on(task, when, file))
    }

    #[cold]
    fn go_on(
        &self,
        task: BoxedTask,
        when: When,
        file: impl FnOnce(&mut State<BoxedTask>, Record, bool),
    ) -> bool {
        let context = &self.shard.context;
        let (deadline, missed) = match when {
            When::After(delay) => (self.later(delay), false),
            When::At(instant) => (context.time.nanos_at(instant), false),
            When::Missed(instant) => (context.time.nanos_at(instant), true),
        };
        // Counted before the timeout can end, so that the count is never too low.
        context.begins_again();
        let mut state = self.shard.lock();
        let refused = match state.go_on(self.index, task, deadline) {
            Ok(record) => {
                file(&mut state, record, missed);
                None
            }
            Err(task) => Some(task),
        };
        drop(state);
        let Some(task) = refused else { return true };
        context.ended(1);
        if isolate::panics(|| drop(task)) {
            context.metrics.task_panicked();
            warning!("the drop of the task of {self:?} panicked");
        }
        false
    }

    /// The time `delay` after the present. If the clock panics, this is never: the task does not
    /// run again.
    fn later(&self, delay: u64) -> u64 {
        let now = self.shard.context.time.now_contained();
        now.map_or(crate::time::tick::NEVER, |now| now.saturating_add(delay))
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
