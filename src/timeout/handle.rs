//! The handles to a timeout: that of users, the guard that cancels, and that of the crate's own timeouts.
//!
//! The phases of a timeout are in `intake/slot.rs`. A handle pins its slot until it is dropped, so it
//! never finds another timeout there. `Timeout::cancel_and_take` is in `task`, because it returns a `Task`.

use super::error::RescheduleError;
use super::payload::Erased;
use super::this_thread;
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::intake::shared::Gate;
use crate::intake::{Cancel, Moved, Phase, Pin, Slot};
use crate::metrics::{Count, Tally};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// A handle to a timeout: it cancels the timeout, moves its deadline, and reports its state.
///
/// Clones are handles to the same timeout. Dropping the last handle detaches the timeout, which
/// still fires; see [`cancel_on_drop`](Self::cancel_on_drop) for the opposite. A handle does not keep
/// its timer alive: when the last [`HashedWheelTimer`](crate::HashedWheelTimer) is dropped, all pending
/// timeouts are cancelled.
///
/// Every method is O(1) and waits for no lock. Until it is dropped, a handle keeps 40 bytes of its timer's memory in
/// use, even after the end of the timeout. (A timeout that has a million handles at one time keeps 2.6 KB for ever.)
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// let timeout = timer.new_timeout(|| println!("never"), Duration::from_secs(30))?;
/// let clone = timeout.clone(); // a handle to the same timeout
/// assert_eq!(timeout, clone);
/// assert!(clone.is_pending());
/// assert!(timeout.cancel(), "the first cancel wins");
/// assert!(clone.is_cancelled() && !clone.cancel());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("HashedWheelTimeout", "TimerHandle"))]
#[derive(Clone)]
#[repr(transparent)]
pub struct Timeout(Pin<Erased>);

impl From<Pin<Erased>> for Timeout {
    #[inline]
    fn from(pin: Pin<Erased>) -> Self {
        Self(pin)
    }
}

impl Timeout {
    /// A pin, seen as a handle.
    #[inline]
    #[allow(unsafe_code)] // a reference to a field cannot become one to its struct otherwise
    pub(crate) fn of(pin: &Pin<Erased>) -> &Self {
        // SAFETY: a `Timeout` is a transparent `Pin<Erased>`.
        unsafe { &*std::ptr::from_ref(pin).cast::<Self>() }
    }

    #[inline]
    pub(crate) fn pin(&self) -> &Pin<Erased> {
        &self.0
    }

    #[inline]
    fn slot(&self) -> &Slot<Erased> {
        self.0.slot()
    }

    /// Cancels the timeout. Returns true to the one caller whose cancel comes before the expiry and
    /// before all other cancels. The task's callback
    /// ([`TimerTask::cancelled`](crate::task::TimerTask::cancelled)) is called and the task is dropped
    /// immediately, on this thread.
    ///
    /// While the task runs, a cancel returns false, because the run may be the last one. If the timeout is
    /// periodic, or has gone on before, the first such cancel returns true. In both cases no further run
    /// starts: if the run returns [`Next::after`](crate::task::Next::after) or [`Next::at`](crate::task::Next::at), or if
    /// the series would go on, the timeout is cancelled then, and the callback is called on the thread of
    /// the run. If the current run still waits in an executor, and the cancel returned true, it does not start
    /// either.
    ///
    /// After `stop` has returned the timeout, a cancel returns false: the timeout is neither cancelled nor
    /// expired, and its task is in the [`Unprocessed`](crate::Unprocessed).
    #[doc(alias("clearTimeout", "abort"))]
    #[inline]
    pub fn cancel(&self) -> bool {
        match self.cancel_and_count() {
            Cancel::Won(task) => {
                self.tell_cancelled(task);
                true
            }
            Cancel::Denied(stops_series) => stops_series,
            Cancel::Lost => false,
        }
    }

    /// Cancels the timeout like [`cancel`](Self::cancel), and drops the task without its callback.
    pub(crate) fn discard(&self) {
        if let Cancel::Won(task) = self.cancel_and_count() {
            if catch_panic::panics(|| drop(task)) {
                self.0.chunk().timer.task_panicked();
                warning!("the drop of the task of {self:?} panicked");
            }
        }
    }

    /// Cancels the slot, and counts that if it wins.
    #[inline]
    pub(super) fn cancel_and_count(&self) -> Cancel<Erased> {
        self.0.cancel(|filed| {
            let timer = &self.0.chunk().timer;
            timer.gate.release_permits(1);
            this_thread::count(timer, |tally| &tally.cancelled);
            if filed {
                timer.entry_died(this_thread::count(timer, |tally| &tally.died));
            }
        })
    }

    /// Whether the timeout is pending: accepted, and neither running nor ended.
    pub fn is_pending(&self) -> bool {
        self.slot().pending_deadline().is_some()
    }

    /// Whether the timeout was cancelled before its task could run, or run again. After a cancel during a run, it becomes
    /// true at the end of the run, if the cancel returned true or the run asks to go on.
    pub fn is_cancelled(&self) -> bool {
        self.slot().phase() == Phase::Cancelled
    }

    /// Whether the deadline has passed and the task was handed to the executor. The task may wait there,
    /// run, or have run. A timeout that goes on after a run is pending again, and not expired.
    pub fn is_expired(&self) -> bool {
        matches!(self.slot().phase(), Phase::Running | Phase::Denied | Phase::Expired)
    }

    /// The instant at which the timeout expires, or at which its current run was due. `None` after the
    /// end of the timeout. The time left is its difference to [`now`](Self::now).
    pub fn deadline(&self) -> Option<Instant> {
        self.slot().current_deadline().map(|deadline| self.gate().time.instant_at(deadline))
    }

    /// Moves the deadline to `delay` from now, without an allocation. The handle stays the same, and the limit of
    /// pending timeouts does not apply.
    ///
    /// Pushing a timeout back costs a clock read and one compare-exchange. It does not change the wheel:
    /// the entry expires at the previous deadline, and the worker files it again, at most once per previous
    /// delay. Pulling a timeout forward adds a new entry.
    ///
    /// A rescheduled timeout has no guaranteed order among the timeouts of its tick.
    ///
    /// # Errors
    ///
    /// If the task has run or is running, if the timeout was cancelled, or if the timer is stopped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use wheelwork::{HashedWheelTimer, ManualClock};
    /// # let clock = ManualClock::new();
    /// # let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
    /// let half_a_minute = Duration::from_secs(30);
    /// let timeout = timer.new_timeout(|| (), half_a_minute)?;
    /// clock.advance(half_a_minute - Duration::from_secs(1));
    /// timeout.reschedule(half_a_minute)?; // counts from now
    /// clock.advance(half_a_minute - Duration::from_secs(1));
    /// assert!(timeout.is_pending());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(timeout.is_expired());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("reset", "mod_timer", "refresh"))]
    pub fn reschedule(&self, delay: Duration) -> Result<(), RescheduleError> {
        self.reschedule_to(self.gate().time.deadline_after(delay))
    }

    /// Moves the deadline to an instant, like [`reschedule`](Self::reschedule). Reads no clock.
    ///
    /// # Errors
    ///
    /// The errors of `reschedule`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// # let minute = Duration::from_secs(60);
    /// # let timeouts = [timer.new_timeout(|| (), minute)?, timer.new_timeout(|| (), minute)?];
    /// let deadline = timer.now() + minute; // one clock read for many timeouts
    /// for timeout in &timeouts {
    ///     timeout.reschedule_at(deadline)?;
    /// }
    /// assert_eq!(timeouts[0].deadline(), timeouts[1].deadline());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule_at(&self, deadline: Instant) -> Result<(), RescheduleError> {
        self.reschedule_to(self.gate().time.nanos_at(deadline))
    }

    /// Moves the deadline to a time of the timer's own count.
    #[inline(always)]
    pub(crate) fn reschedule_to(&self, deadline: u64) -> Result<(), RescheduleError> {
        // Tried first, because most timeouts are pushed back.
        if !self.gate().is_closed() && self.slot().push_back(deadline) {
            this_thread::count(&self.0.chunk().timer, |tally| &tally.rescheduled);
            return Ok(());
        }
        self.reschedule_otherwise(deadline)
    }

    #[cold]
    #[inline(never)]
    fn reschedule_otherwise(&self, deadline: u64) -> Result<(), RescheduleError> {
        let (moved, timer) = (self.move_to(deadline)?, &self.0.chunk().timer);
        this_thread::count(timer, |tally| &tally.rescheduled);
        if moved == Moved::LeftEntry {
            timer.entry_died(this_thread::count(timer, |tally| &tally.died));
        }
        Ok(())
    }

    /// Moves the deadline. The caller counts that.
    fn move_to(&self, deadline: u64) -> Result<Moved, RescheduleError> {
        if self.gate().is_closed() && !self.slot().phase().has_ended() {
            return Err(RescheduleError::Stopped);
        }
        let deadline = self.gate().not_overdue(deadline);
        let moved = self.slot().reschedule(deadline).map_err(why_not)?;
        if moved != Moved::Deadline {
            self.0.chunk().announce_moved(deadline);
        }
        Ok(moved)
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

    /// The current instant by the timer's clock.
    pub fn now(&self) -> Instant {
        self.gate().time.now_instant()
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.0.chunk().timer.gate
    }

    #[inline]
    pub(crate) fn tell_cancelled(&self, task: Erased) {
        if catch_panic::panics(|| task.cancelled(&self.0)) {
            self.0.chunk().timer.task_panicked();
            warning!("the cancelled callback of {self:?} panicked");
        }
    }

    /// Counts the timeout as cancelled after a stop returned it and no caller collected it.
    pub(crate) fn cancel_returned(&self) {
        if self.slot().cancel_returned() {
            self.0.chunk().timer.count(|counts| counts.by_others.uncollected.add_shared(1));
        }
    }

    /// Cancels a timeout that counts as gone on after a run, and must not. Its caller has taken it back, or never
    /// put it back.
    #[cold]
    pub(super) fn cancel_gone_on(&self, task: Erased) {
        self.gate().release_permits(1);
        self.0.chunk().timer.count(|counts| counts.by_others.cancelled.add_shared(1));
        self.tell_cancelled(task);
    }
}

fn why_not(phase: Phase) -> RescheduleError {
    match phase {
        Phase::Cancelled => RescheduleError::Cancelled,
        Phase::Returned => RescheduleError::Stopped,
        _ => RescheduleError::Expired,
    }
}

/// All handles to one timeout are equal. Handles to different timeouts differ.
///
/// Clippy warns of a `mutable_key_type` if a handle is the key of a map. The warning can be ignored:
/// the equality and the hash of a handle never change.
// A handle keeps its slot from being reused. So two handles to one slot are handles to one timeout.
impl PartialEq for Timeout {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.slot(), other.slot())
    }
}

impl Eq for Timeout {}

impl Hash for Timeout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.slot(), state);
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.slot().phase() {
            Phase::Free | Phase::New | Phase::Filed => "pending",
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

/// Cancels its timeout when it is dropped. Created by [`Timeout::cancel_on_drop`].
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # let timer = wheelwork::HashedWheelTimer::new()?;
/// let guard = timer.new_timeout(|| (), Duration::from_secs(30))?.cancel_on_drop();
/// assert!(guard.timeout().is_some_and(|timeout| timeout.is_pending()));
/// drop(guard);
/// assert_eq!(timer.pending_timeouts(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard cancels the timeout"]
pub struct CancelOnDrop(Option<Timeout>);

impl CancelOnDrop {
    /// Gives the handle back without cancelling the timeout.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// let guard = timer.new_timeout(|| (), Duration::from_secs(30))?.cancel_on_drop();
    /// let timeout = guard.disarm().expect("it is armed"); // it shall expire after all
    /// assert!(timeout.is_pending());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

/// The handle to an internal timeout (see `schedule`). Dropping it detaches the timeout.
pub(crate) struct Internal(pub(super) Timeout);

impl Internal {
    /// Whether the timeout has not ended yet. Its task may be running.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.deadline().is_some()
    }

    /// Cancels the timeout, unless it runs or has ended. Its task never goes on, so a denied run is like any other.
    pub(crate) fn cancel(&self) {
        let cancel = self.0.pin().cancel(|filed| {
            self.count(|tally| &tally.cancelled);
            if filed {
                self.entry_died();
            }
        });
        if let Cancel::Won(task) = cancel {
            self.0.tell_cancelled(task);
        }
    }

    /// Moves the deadline. False if the timeout runs or has ended, or if the timer is stopped.
    pub(crate) fn reschedule_at(&self, deadline: Instant) -> bool {
        let moved = self.0.move_to(self.0.gate().time.nanos_at(deadline));
        if moved == Ok(Moved::LeftEntry) {
            self.entry_died();
        }
        moved.is_ok()
    }

    fn count(&self, pick: fn(&Tally) -> &Count) -> u64 {
        self.0.0.chunk().timer.count_in(|counts| &counts.internals, pick)
    }

    fn entry_died(&self) {
        self.0.0.chunk().timer.entry_died(self.count(|tally| &tally.died));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
