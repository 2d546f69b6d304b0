//! The handle to a timeout, and the run of its task.
//!
//! The phases of a timeout and who moves it between them stand in `shard/slot.rs`; every move is
//! made under the lock of the timeout's shard. A handle pins its slot, so a handle never meets
//! another timeout there. Once it has seen the end it is *settled*: it remembers the end, lets go
//! of the slot, and never looks there again. Settling happens under the shard's lock as well, so
//! two threads that share one handle cannot let go twice.
//!
//! | `settled` | the handle | leaves it by |
//! |---|---|---|
//! | 0 | pins its slot | under the lock: sees the end, or makes it -> that phase, and the pin goes |
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

/// A task behind a pointer of one type for all; see `task`.
pub(crate) trait ErasedTask: Send {
    fn run(self: Box<Self>, run: &Run<'_>) -> Next<BoxedTask>;
    fn cancelled(self: Box<Self>, timeout: &Timeout);
    /// Puts the task into `into`, if that is an `Option` of its type.
    fn give(self: Box<Self>, into: &mut dyn Any) -> Result<(), BoxedTask>;
}

pub(crate) type BoxedTask = Box<dyn ErasedTask>;

/// A shard of a timer, with the way to its worker.
pub(crate) struct TimerShard {
    pub(crate) shard: Shard<BoxedTask>,
    pub(crate) context: Arc<Context>,
}

impl TimerShard {
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<BoxedTask>> {
        self.shard.lock()
    }

    /// The wheel's name for a record of this shard.
    pub(crate) fn token(&self, record: &Record) -> Token {
        self.shard.token(record)
    }
}

/// A handle to a timeout: cancel it, move it, ask what became of it.
///
/// Clones are handles to the same timeout. Dropping the last one detaches the timeout, which goes
/// on and fires; see [`cancel_on_drop`](Self::cancel_on_drop) for the opposite.
///
/// Every method is O(1) and takes the lock of the timeout's shard for a moment. A handle keeps
/// about 40 bytes of its timer's memory in use, even after the timeout's end, until it is dropped
/// or has itself reported that end.
pub struct Timeout {
    shard: Arc<TimerShard>,
    index: u32,
    /// The phase it ended in, or `Phase::Free` (0) while this handle pins the slot. Written under
    /// the shard's lock; a relaxed load outside of it may miss the end and then looks again inside.
    settled: AtomicU8,
}

impl Timeout {
    /// For a slot that has been pinned for this handle.
    #[inline]
    pub(crate) fn pinned(shard: Arc<TimerShard>, index: u32) -> Self {
        Self { shard, index, settled: AtomicU8::new(0) }
    }

    /// Cancels the timeout: true for the one caller that won, over other callers and over the
    /// expiry. The task is told ([`TimerTask::cancelled`](crate::TimerTask::cancelled)) and dropped at once, on this thread.
    ///
    /// While the task runs the answer is false, but the timeout does not go on. For a periodic
    /// timeout, and one that has gone on before, the answer then is true: no further run starts. If
    /// it had been handed to an executor and waits there, that run does not start either.
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

    /// Whether it was cancelled before it could run, or run again.
    pub fn is_cancelled(&self) -> bool {
        self.phase() == Phase::Cancelled
    }

    /// Whether its deadline has passed and its task was handed to the executor: it runs or has run.
    /// A timeout that goes on is pending again, and not expired.
    pub fn is_expired(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Denied | Phase::Expired)
    }

    /// The instant at which it expires, or at which the present run was due; `None` after its end.
    pub fn deadline(&self) -> Option<Instant> {
        let state = self.shard.lock();
        let present = self.settled_phase().is_none() && !state.phase(self.index).has_ended();
        present.then(|| self.context().time.instant_at(state.deadline(self.index)))
    }

    /// Moves the deadline to `delay` from now, without an allocation.
    ///
    /// To push a timeout back costs a clock read and two stores under the shard's lock: the wheel
    /// is not touched, and the entry that comes up too soon is filed again by the worker, at most
    /// once in each former delay. To pull it forward submits a new entry.
    ///
    /// Among timeouts of the same tick, one that was rescheduled has no promised place.
    ///
    /// # Errors
    ///
    /// If the task has run or is running, if the timeout is cancelled, if the timer is stopped.
    pub fn reschedule(&self, delay: Duration) -> Result<(), RescheduleError> {
        self.reschedule_to(self.context().time.now_or_later().saturating_add(nanos(delay)))
    }

    /// As [`reschedule`](Self::reschedule), to an instant: no clock is read.
    ///
    /// # Errors
    ///
    /// As `reschedule`.
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

    /// The run of a task that was claimed with this deadline.
    pub(crate) fn run(&self, deadline: u64) -> Run<'_> {
        Run { shard: &self.shard, index: self.index, deadline }
    }

    /// Whether the run must not begin, because a cancel was told so while the job waited.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.shard.lock().withdrawn(self.index)
    }

    /// After the last run of a job.
    pub(crate) fn finish_run(&self) {
        self.shard.lock().finish(self.index);
    }

    /// The runner has lost the task: its timeout counts as cancelled.
    pub(crate) fn abandon(&self) {
        self.shard.lock().abandon(self.index);
    }

    /// Nobody has taken this returned timeout: it counts as cancelled.
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

    /// Relaxed: what is settled is settled under the lock, and a load that misses it looks again
    /// there.
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
    /// Apart from the drop, so that a handle that has seen the end costs nothing more.
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

/// A run of a task, as it sees it: the timeout, its deadline, the time. It cannot leave the run.
pub struct Run<'a> {
    shard: &'a Arc<TimerShard>,
    index: u32,
    deadline: u64,
}

impl<'a> Run<'a> {
    /// Of a slot that is pinned for the runner.
    #[inline]
    pub(crate) fn new(shard: &'a Arc<TimerShard>, index: u32, deadline: u64) -> Self {
        Self { shard, index, deadline }
    }

    /// The instant at which this run was due.
    pub fn deadline(&self) -> Instant {
        self.shard.context.time.instant_at(self.deadline)
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

    /// Whether the timeout was cancelled since the run began: then it does not go on.
    pub fn is_cancelled(&self) -> bool {
        self.shard.lock().phase(self.index) == Phase::Denied
    }

    /// Runs the task on this thread. If the timeout goes on, `file` is told its new record, under the
    /// lock of the shard, and whether that stands for a run that was missed. Otherwise returns false:
    /// then the run is to be finished in the shard.
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
        // Counted before it can end, so that the count never falls short.
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

    /// A clock that panics here has no time to tell: the task then never runs again.
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
