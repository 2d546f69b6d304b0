//! A task, and the handle to the timeout it waits in.
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
//!
//! The worker's own handle keeps its pin until the run is over, even if the task ends its timeout
//! before: what the worker says it is running is looked up in that slot (`Station::running`).

use super::error::{RearmError, RescheduleError};
use crate::base::isolate;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicU8, AtomicU16, Ordering};
use crate::shard::context::Shared;
use crate::shard::{Cancel, Phase, Refusal, Shard, State};
use crate::time::tick::nanos;
use std::fmt;
use std::time::{Duration, Instant};

/// What a timeout does when it expires. Every `FnOnce() + Send + 'static` closure is one.
///
/// Implement it for a type of your own to be told the [`Timeout`], to be told of a cancel, or to
/// arm the timeout again from within its run ([`Timeout::rearm`]).
///
/// # Examples
///
/// ```
/// use wheelwork::{HashedWheelTimer, Timeout, TimerTask};
/// use std::{sync::mpsc, time::Duration};
///
/// struct Close(mpsc::Sender<&'static str>);
///
/// impl TimerTask for Close {
///     fn run(self: Box<Self>, _timeout: &Timeout) {
///         let _ = self.0.send("closed");
///     }
///     fn cancelled(self: Box<Self>, _timeout: &Timeout) {
///         let _ = self.0.send("kept open");
///     }
/// }
///
/// let (sender, events) = mpsc::channel();
/// let timer = HashedWheelTimer::new()?;
/// let timeout = timer.new_timeout(Close(sender), Duration::from_secs(30))?;
/// assert!(timeout.cancel());
/// assert_eq!(events.recv()?, "kept open");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TimerTask: Send + 'static {
    /// Called once, at or after the deadline, by the executor. A panic is caught and counted.
    fn run(self: Box<Self>, timeout: &Timeout);

    /// Called instead of `run` if the timeout is cancelled: on the thread that cancels it, before
    /// `cancel` returns. A panic is caught and counted.
    fn cancelled(self: Box<Self>, timeout: &Timeout) {
        let _ = timeout;
    }
}

impl<F: FnOnce() + Send + 'static> TimerTask for F {
    #[inline]
    fn run(self: Box<Self>, _timeout: &Timeout) {
        (*self)();
    }
}

/// A task taken out of one timer can be scheduled in another.
impl TimerTask for Box<dyn TimerTask> {
    fn run(self: Box<Self>, timeout: &Timeout) {
        (*self).run(timeout);
    }

    fn cancelled(self: Box<Self>, timeout: &Timeout) {
        (*self).cancelled(timeout);
    }
}

pub(crate) type Task = Box<dyn TimerTask>;

/// A shard of a timer, with the way to its worker.
pub(crate) struct TimerShard {
    pub(crate) shard: Shard<Task>,
    pub(crate) shared: Arc<Shared>,
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
    home: Arc<TimerShard>,
    index: u32,
    /// The phase it ended in, or `Phase::Free` (0) while this handle pins the slot. Written under
    /// the shard's lock; a relaxed load outside of it may miss the end and then looks again inside.
    settled: AtomicU8,
    /// The run that this handle was made for, until it has armed the timeout again: only that run
    /// may do so, or end the timeout. Read and written under the shard's lock, so relaxed.
    run: AtomicU16,
    /// Of the worker, whose pin goes with the run and not before.
    keeps_pin: bool,
}

/// Of a handle that was made for no run, or has used it up: a version has 12 bits.
const NO_RUN: u16 = u16::MAX;

impl Timeout {
    /// For a slot that has been pinned for this handle.
    #[inline]
    pub(crate) fn pinned(home: Arc<TimerShard>, index: u32) -> Self {
        Self::for_run(home, index, NO_RUN)
    }

    /// As `pinned`, for the runner of a claimed timeout.
    pub(crate) fn for_run(home: Arc<TimerShard>, index: u32, run: u16) -> Self {
        let (settled, run) = (AtomicU8::new(0), AtomicU16::new(run));
        Self { home, index, settled, run, keeps_pin: false }
    }

    /// The worker's own handle, before and between its runs: it pins nothing.
    pub(crate) fn idle(home: Arc<TimerShard>) -> Self {
        let settled = AtomicU8::new(Phase::Expired as u8);
        Self { home, index: 0, settled, run: AtomicU16::new(NO_RUN), keeps_pin: true }
    }

    /// Cancels the timeout: true for the one caller that won, over other callers and over the
    /// expiry. The task is told ([`TimerTask::cancelled`]) and dropped at once, on this thread.
    ///
    /// While the task runs the answer is false, but it can no longer arm its timeout again. For a
    /// periodic timeout, and one that was armed again before, the answer then is true: no further
    /// run starts. If it had been handed to an executor and waits there, that run does not start
    /// either.
    pub fn cancel(&self) -> bool {
        let mut state = self.home.shard.lock();
        if self.settled_phase().is_some() {
            return false;
        }
        if self.keeps_pin && state.phase(self.index) == Phase::Armed {
            state.pin(self.index); // for the cancel to take
        }
        match state.cancel(self.index) {
            Cancel::Won(task, ask) => {
                self.settled.store(Phase::Cancelled as u8, Ordering::Relaxed);
                drop(state);
                self.shared().ended(1);
                self.shared().answer(ask, crate::time::tick::NEVER);
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
    /// A timeout that has been armed again is pending again, and not expired.
    pub fn is_expired(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Denied | Phase::Expired)
    }

    /// The instant at which it expires, or at which the present run was due; `None` after its end.
    pub fn deadline(&self) -> Option<Instant> {
        let state = self.home.shard.lock();
        let present = self.settled_phase().is_none() && !state.phase(self.index).has_ended();
        present.then(|| self.shared().time.instant_at(state.deadline(self.index)))
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
        self.reschedule_to(self.shared().time.now_or_later().saturating_add(nanos(delay)))
    }

    /// As [`reschedule`](Self::reschedule), to an instant: no clock is read.
    ///
    /// # Errors
    ///
    /// As `reschedule`.
    pub fn reschedule_at(&self, deadline: Instant) -> Result<(), RescheduleError> {
        self.reschedule_to(self.shared().time.nanos_at(deadline))
    }

    fn reschedule_to(&self, deadline: u64) -> Result<(), RescheduleError> {
        let mut state = self.home.shard.lock();
        if let Some(end) = self.settled_phase() {
            return Err(why_not(end));
        }
        match state.reschedule(self.index, deadline) {
            Ok(ask) => {
                drop(state);
                self.shared().answer(ask, deadline);
                Ok(())
            }
            Err(Refusal::Phase(phase)) => Err(why_not(phase)),
            Err(Refusal::Closed | Refusal::Full) => Err(RescheduleError::Stopped),
        }
    }

    /// Arms the timeout again, from within its own run: the same timeout, the same handles, no
    /// allocation. `task` is usually the one that is running. Only the handle that the run was told
    /// can do it, and its clones, and only once.
    ///
    /// On a pool, the next run may begin while this one is still at work.
    ///
    /// # Errors
    ///
    /// If the timeout was cancelled meanwhile, if the timer is stopped, or if this is not the handle
    /// of the present run. The task comes back.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # use wheelwork::{HashedWheelTimer, ManualClock, Timeout, TimerTask};
    /// struct Countdown(u32, mpsc::Sender<u32>);
    ///
    /// impl TimerTask for Countdown {
    ///     fn run(mut self: Box<Self>, timeout: &Timeout) {
    ///         self.0 -= 1;
    ///         let _ = self.1.send(self.0);
    ///         if self.0 > 0 {
    ///             let _ = timeout.rearm(self, Duration::from_secs(1));
    ///         }
    ///     }
    /// }
    ///
    /// let clock = ManualClock::new();
    /// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let (sender, left) = mpsc::channel();
    /// timer.new_timeout(Countdown(3, sender), Duration::from_secs(1))?;
    /// (0..3).for_each(|_| clock.advance(Duration::from_secs(1)));
    /// assert_eq!(left.iter().collect::<Vec<_>>(), [2, 1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rearm(&self, task: Box<dyn TimerTask>, delay: Duration) -> Result<(), RearmError> {
        self.rearm_to(task, self.shared().time.now_or_later().saturating_add(nanos(delay)), false)
    }

    /// As [`rearm`](Self::rearm), to an instant: no clock is read.
    ///
    /// # Errors
    ///
    /// As `rearm`.
    pub fn rearm_at(&self, task: Box<dyn TimerTask>, deadline: Instant) -> Result<(), RearmError> {
        self.rearm_to(task, self.shared().time.nanos_at(deadline), false)
    }

    /// As `rearm_at`, for a deadline that has passed: it runs within the worker's present pass, in
    /// its turn among all that is due, where `rearm_at` would mean the next tick.
    pub(crate) fn catch_up_at(&self, task: Task, deadline: Instant) -> Result<(), RearmError> {
        self.rearm_to(task, self.shared().time.nanos_at(deadline), true)
    }

    fn rearm_to(&self, task: Task, deadline: u64, urgent: bool) -> Result<(), RearmError> {
        // Counted before it can end, so that the count never falls short.
        self.shared().begins_again();
        let mut state = self.home.shard.lock();
        let armed = match self.settled_phase() {
            Some(end) => Err((Refusal::Phase(end), task)),
            None => state.rearm(self.this_run(), task, deadline, urgent),
        };
        if armed.is_ok() {
            // Or this run, if it goes on for long enough, could end one whose version is the same.
            self.run.store(NO_RUN, Ordering::Relaxed);
        }
        drop(state);
        let (refusal, task) = match armed {
            Ok(ask) => {
                self.shared().answer_rearm(ask, deadline, urgent);
                return Ok(());
            }
            Err(refused) => refused,
        };
        self.shared().ended(1);
        Err(match refusal {
            Refusal::Closed => RearmError::Stopped { task },
            Refusal::Phase(Phase::Cancelled) => RearmError::Cancelled { task },
            Refusal::Phase(_) | Refusal::Full => RearmError::NotRunning { task },
        })
    }

    /// The present instant by the timer's clock.
    pub fn now(&self) -> Instant {
        self.shared().time.now_instant()
    }

    /// Turns the handle into a guard that cancels the timeout when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// {
    ///     let _deadline = timer
    ///         .new_timeout(|| eprintln!("the request takes too long"), Duration::from_secs(5))?
    ///         .cancel_on_drop();
    ///     // handle the request
    /// }
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop(Some(self))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.home.shared
    }

    pub(crate) fn tell_cancelled(&self, task: Task) {
        if isolate::panics(|| task.cancelled(self)) {
            self.shared().metrics.task_panicked();
            warning!("the cancelled callback of {self:?} panicked");
        }
    }

    /// Runs a claimed task on this thread.
    #[inline]
    pub(crate) fn run(&self, task: Task) {
        if isolate::panics(|| task.run(self)) {
            self.shared().metrics.task_panicked();
            warning!("the task of {self:?} panicked");
        }
    }

    /// After the worker's run: ends the timeout unless it was armed again, and lets go of the pin.
    #[inline]
    pub(crate) fn finish(&self, state: &mut State<Task>) {
        if self.settled_phase().is_none() {
            state.finish_and_unpin(self.this_run());
            self.settled.store(Phase::Expired as u8, Ordering::Relaxed);
        } else {
            state.unpin(self.index);
        }
    }

    /// As `finish`, for a runner whose own handle it is: the pin goes with the handle.
    pub(crate) fn end_run(&self) {
        let mut state = self.home.shard.lock();
        if self.settled_phase().is_none() {
            state.finish(self.this_run());
        }
    }

    /// Whether the run must not begin, because a cancel was told so while the job waited.
    pub(crate) fn is_withdrawn(&self) -> bool {
        let mut state = self.home.shard.lock();
        self.settled_phase().is_some() || state.withdrawn(self.this_run())
    }

    /// The runner has lost the task: its timeout counts as cancelled.
    pub(crate) fn abandon(&self) {
        let mut state = self.home.shard.lock();
        if self.settled_phase().is_none() {
            state.abandon(self.this_run());
        }
    }

    /// Nobody has taken this returned timeout: it counts as cancelled.
    pub(crate) fn unreturn(&self) {
        let mut state = self.home.shard.lock();
        if self.settled_phase().is_none() {
            state.unreturn(self.index);
        }
    }

    /// For the worker's own handle, which goes from slot to slot, each already pinned for it.
    #[inline]
    pub(crate) fn move_to(&mut self, index: u32, run: u16) {
        self.index = index;
        self.run = AtomicU16::new(run);
        self.settled = AtomicU8::new(0);
    }

    #[inline]
    fn this_run(&self) -> (u32, u16) {
        (self.index, self.run.load(Ordering::Relaxed))
    }

    fn phase(&self) -> Phase {
        if let Some(end) = self.settled_phase() {
            return end;
        }
        let mut state = self.home.shard.lock();
        self.settled_phase().unwrap_or_else(|| self.observe(&mut state))
    }

    /// Relaxed: what is settled is settled under the lock, and a load that misses it looks again
    /// there.
    #[inline]
    fn settled_phase(&self) -> Option<Phase> {
        Some(Phase::from_bits(self.settled.load(Ordering::Relaxed))).filter(|&p| p != Phase::Free)
    }

    fn settle(&self, state: &mut State<Task>, end: Phase) {
        self.settled.store(end as u8, Ordering::Relaxed);
        if !self.keeps_pin {
            state.unpin(self.index);
        }
    }

    fn observe(&self, state: &mut State<Task>) -> Phase {
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
        let mut state = self.home.shard.lock();
        let settled = self.settled.load(Ordering::Relaxed);
        if settled == 0 {
            state.pin(self.index);
        }
        let (index, run) = self.this_run();
        let (settled, run) = (AtomicU8::new(settled), AtomicU16::new(run));
        Self { home: self.home.clone(), index, settled, run, keeps_pin: false }
    }
}

impl Timeout {
    /// Apart from the drop, so that a handle that has seen the end costs nothing more.
    #[inline(never)]
    fn detach(&self) {
        self.home.shard.lock().unpin(self.index);
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

/// Cancels its timeout when it is dropped; from [`Timeout::cancel_on_drop`].
#[derive(Debug)]
#[must_use = "dropping the guard cancels the timeout"]
pub struct CancelOnDrop(Option<Timeout>);

impl CancelOnDrop {
    /// Gives the handle back; the timeout stays.
    pub fn disarm(mut self) -> Option<Timeout> {
        self.0.take()
    }

    /// The guarded timeout.
    pub fn timeout(&self) -> Option<&Timeout> {
        self.0.as_ref()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(timeout) = &self.0 {
            timeout.cancel();
        }
    }
}
