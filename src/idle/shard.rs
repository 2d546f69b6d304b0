//! A shard: the segments of a group of threads under their lock, and the one timeout that checks
//! them.
//!
//! The timer has one internal timeout for each shard in use, the *check*. It is due at the tick in which
//! some connection must be checked. Its run schedules the next check before it calls any callback,
//! so on a pool a slow callback delays only the connections that are reported with it.
//!
//! One run checks a *slice* of the connections under the lock (`segments::CHECKS_PER_SLICE`). If more
//! are due, the next check is due in the present tick: other due timeouts get their turn, then that
//! check continues. So no thread waits for the lock longer than one slice takes.
//!
//! A connection that was active or has left still has its entry in a wheel. If no other connection
//! is due, a run *confirms* the next check: it skips such entries, so that the next check comes for a
//! connection that may really be idle. If there are too many such entries for one slice, the next run continues:
//! immediately if the next check would come within a second, otherwise with that check.
//!
//! Invariants:
//! 1. While a connection is watched, a check is pending or running, or its loss is being handled. A
//!    check is lost if the end of the timer cancels it, or if an executor drops its job. Then the
//!    check is dropped. Its drop schedules another one. If the timer accepts none, the drop reports
//!    all connections.
//! 2. Only the check of the latest epoch counts. Any other does nothing when it runs or is dropped.
//! 3. If all connections of a segment must be checked (`check_all_at`), or if a slice has left due
//!    connections to the next one, `next_check` is not after now. So the check is due immediately,
//!    and so is one that replaces it.
//! 4. No callback runs under the lock, and no connection or check is dropped under it. The timer's
//!    own locks are taken under this lock, never the other way round.

use super::activity::Watcher;
use super::event::{Idle, Outcome};
use super::kind::IdleKind;
use super::policy::{IdlePolicy, Scale};
use super::segment::Returned;
use super::segments::{CHECKS_PER_SLICE, LIMIT, Segments};
use super::timestamp::Timestamp;
use super::verdict::CheckTime;
use super::watch::Watch;
use crate::base::isolate;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, thread};
use crate::time::tick::{TickScale, instant_after, nanos};
use crate::timeout::{Internal, Next, Run, TimerTask};
use crate::timer::{HashedWheelTimer, RefusalReason, ScheduleError};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// How often a check yields to a thread that waits for the lock. This takes 100 us or more, enough
/// for that thread to wake up.
const YIELDS: usize = 256;

/// Runs the callback for a batch. Returns the number of panics.
pub(super) type Deliver<T> = dyn Fn(&mut [Idle<T>]) -> u64 + Send + Sync;

/// The part of an idle manager that all of its shards share.
pub(super) struct Manager<T> {
    pub(super) timer: HashedWheelTimer,
    origin: Instant,
    ticks: TickScale,
    ticks_per_second: u64,
    deliver: Box<Deliver<T>>,
    /// The bits of the factor. Relaxed: a thread that lowers it takes the lock of each shard
    /// afterwards.
    scale: AtomicU64,
    /// The number of callback calls that panicked. Relaxed, like `reported`: no other data depends on it.
    panicked: AtomicU64,
    /// The number of reports of each kind.
    reported: [AtomicU64; IdleKind::EVERY.len()],
}

impl<T> Manager<T> {
    pub(super) fn new(timer: HashedWheelTimer, deliver: Box<Deliver<T>>) -> Self {
        let tick = NonZeroU64::new(nanos(timer.tick_duration())).unwrap_or(NonZeroU64::MIN);
        let ticks = TickScale::new(tick);
        Self {
            origin: timer.started_at(),
            ticks,
            ticks_per_second: ticks.tick_not_before(nanos(Duration::from_secs(1))),
            timer,
            deliver,
            scale: AtomicU64::new(Scale::ONE.0.to_bits()),
            panicked: AtomicU64::new(0),
            reported: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    pub(super) fn scale(&self) -> Scale {
        Scale(f64::from_bits(self.scale.load(Ordering::Relaxed)))
    }

    /// Returns the former scale.
    pub(super) fn set_scale(&self, scale: Scale) -> Scale {
        Scale(f64::from_bits(self.scale.swap(scale.0.to_bits(), Ordering::Relaxed)))
    }

    pub(super) fn panicked(&self) -> u64 {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(super) fn reported(&self, kind: IdleKind) -> u64 {
        self.reported[kind as usize].load(Ordering::Relaxed)
    }

    fn count_reports(&self, batch: &[Idle<T>]) {
        for idle in batch.iter().filter(|idle| idle.outcome != Outcome::Void) {
            self.reported[idle.event().kind as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn silence(&self, since: u64) -> Duration {
        Duration::from_nanos(self.now().nanos().saturating_sub(since))
    }

    #[inline]
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::new(self.origin, self.timer.now())
    }

    /// The present for reports that must be made even if the timer's clock panics. In that case it
    /// is before all activity, so the reports show no silence.
    fn now_contained(&self) -> u64 {
        isolate::contained(|| self.now().nanos()).unwrap_or(0)
    }

    fn present_tick(&self) -> u64 {
        self.ticks.tick_at(self.now_contained())
    }

    fn check_time_at(&self, instant: Instant) -> CheckTime {
        CheckTime { now: Timestamp::new(self.origin, instant).nanos(), scale: self.scale() }
    }

    /// The time for confirming the next check: the last one that was used under the lock. This saves a
    /// clock read under the lock. The only effect of an old time is that paused connections are checked
    /// sooner than needed.
    fn check_time_before(&self, state: &State<T>) -> CheckTime {
        CheckTime { now: state.present, scale: self.scale() }
    }

    /// The instant at which a tick begins. For a tick that never comes, it is far away.
    fn start_of(&self, tick: u64) -> Instant {
        instant_after(self.origin, self.ticks.start_of(tick))
    }
}

pub(super) struct Shard<T> {
    manager: Arc<Manager<T>>,
    state: Mutex<State<T>>,
    /// Whether a thread waits for the lock. Only a hint: if two threads wait, the first one to get the
    /// lock clears it.
    wanted: AtomicBool,
}

pub(super) struct State<T> {
    pub(super) segments: Segments<T>,
    check: Option<Pending>,
    epoch: u64,
    /// The last present time that was used under the lock.
    present: u64,
}

/// The check that counts.
struct Pending {
    timeout: Internal,
    /// The tick that it is scheduled for.
    tick: u64,
    /// The number of seats that runs have confirmed since it was last scheduled for a later tick.
    ahead: usize,
}

impl<T> State<T> {
    /// Takes the check's timeout if no connection is watched any more. The caller cancels it.
    fn needless_check(&mut self) -> Option<Internal> {
        if self.segments.len() > 0 {
            return None;
        }
        self.check.take().map(|pending| pending.timeout)
    }
}

impl<T: Send + 'static> Shard<T> {
    pub(super) fn new(manager: Arc<Manager<T>>) -> Self {
        let segments = Segments::new(manager.origin, manager.ticks);
        let state = State { segments, check: None, epoch: 0, present: 0 };
        Self { manager, state: Mutex::new(state), wanted: AtomicBool::new(false) }
    }

    /// Locks the shard, and tells a check meanwhile that this thread waits. Relaxed, here and
    /// below: the flag is a hint.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.wanted.store(true, Ordering::Relaxed);
        let state = self.state.lock();
        self.wanted.store(false, Ordering::Relaxed);
        state
    }

    /// Locks the shard for a check, which takes the lock slice after slice. Threads that wait come
    /// first. The lock itself does not ensure that: it favours threads that are awake.
    fn lock_after_others(&self) -> MutexGuard<'_, State<T>> {
        for _ in 0..YIELDS {
            if !self.wanted.load(Ordering::Relaxed) {
                break;
            }
            thread::yield_now();
        }
        self.state.lock()
    }

    pub(super) fn watch(
        self: &Arc<Self>,
        connection: T,
        policy: IdlePolicy,
    ) -> Result<Watch, ScheduleError<T>> {
        let now = self.manager.timer.now();
        let mut state = self.lock();
        let time = self.manager.check_time_at(now);
        state.present = time.now;
        let entered = state.segments.enter(connection, policy, time, || self.clone());
        let full = |connection| {
            ScheduleError::new(RefusalReason::LimitReached { limit: LIMIT }, connection)
        };
        let seat = entered.map_err(full)?;
        match self.ensure_check(&mut state) {
            Ok(()) => Ok(Watch::new(seat)),
            Err(error) => match state.segments.leave(seat.number) {
                Some(connection) => Err(error.map(|()| connection)),
                // Not reached: a connection that has just entered is here.
                None => Ok(Watch::new(seat)),
            },
        }
    }

    /// Ensures that a check is pending for the next connection.
    fn ensure_check(self: &Arc<Self>, state: &mut State<T>) -> Result<(), ScheduleError<()>> {
        // If the timeout has ended, its check is about to be dropped.
        if state.check.as_ref().is_some_and(|check| check.timeout.is_alive()) {
            self.hasten(state);
            return Ok(());
        }
        let epoch = state.epoch + 1;
        let time = self.manager.check_time_before(state);
        state.segments.confirm_next_check(time, CHECKS_PER_SLICE);
        let tick = state.segments.next_check();
        let check = Check { shard: Some(self.clone()), epoch };
        let due = self.manager.start_of(tick);
        let scheduled = self.manager.timer.schedule_internal(check, due);
        let timeout = scheduled.map_err(|error| error.map(Check::retire))?;
        state.epoch = epoch;
        state.check = Some(Pending { timeout, tick, ahead: 0 });
        Ok(())
    }

    /// Pulls the check forward if a connection must be checked sooner.
    fn hasten(&self, state: &mut State<T>) {
        let tick = state.segments.next_check();
        let Some(check) = &mut state.check else { return };
        // If this is refused, the check has expired and waits for the lock, or it is lost. In both
        // cases a check follows.
        if tick < check.tick && check.timeout.reschedule_at(self.manager.start_of(tick)) {
            check.tick = tick;
        }
    }

    /// Stops watching a connection that has been silent since `since`, and returns it.
    pub(super) fn take_if_silent_since(&self, seat: u32, since: u64) -> Option<T> {
        self.leave_by(seat, |segments| segments.take_if_silent_since(seat, since))
    }

    /// Requests a check of all connections, because durations have become shorter.
    pub(super) fn check_all_connections(&self) {
        let present = self.manager.present_tick();
        let mut state = self.lock();
        state.segments.check_all_at(present);
        self.hasten(&mut state);
    }

    /// Runs a check.
    fn run(self: &Arc<Self>, check: Check<T>, run: &Run<'_>) {
        let now = run.now();
        let mut state = self.lock_after_others();
        if state.epoch != check.epoch || state.check.is_none() {
            return check.retire();
        }
        let time = self.manager.check_time_at(now);
        state.present = time.now;
        let idle = state.segments.take_idle(time);
        let followed = self.schedule_next(&mut state, time);
        drop(state);
        if followed {
            check.retire();
        } else {
            drop(check); // it is lost
        }
        self.report(idle, time.now);
    }

    /// Schedules the check after the one that runs, for the present tick if one slice was not
    /// enough. Returns false if the timer accepts none.
    fn schedule_next(self: &Arc<Self>, state: &mut State<T>, time: CheckTime) -> bool {
        let present = self.manager.ticks.tick_at(time.now);
        let due = state.segments.next_check() <= present;
        let exact = due || state.segments.confirm_next_check(time, CHECKS_PER_SLICE);
        let next = state.segments.next_check();
        // Each entry once: connections that are touched all the time come up again and again.
        let most = state.segments.len() + CHECKS_PER_SLICE;
        let before = state.check.as_ref().map_or(0, |check| check.ahead);
        let soon = next < present + self.manager.ticks_per_second;
        let goes_on = due || (!exact && before < most && soon);
        let ahead = if goes_on && !due { before + CHECKS_PER_SLICE } else { 0 };

        let epoch = state.epoch + 1;
        let check = Check { shard: Some(self.clone()), epoch };
        let scheduled = match goes_on {
            true => self.manager.timer.schedule_internal_now(check),
            false => self.manager.timer.schedule_internal(check, self.manager.start_of(next)),
        };
        match scheduled {
            Ok(timeout) => {
                state.epoch = epoch;
                // Keeps a past tick: otherwise the connections left over would reschedule the check.
                state.check = Some(Pending { timeout, tick: next, ahead });
                true
            }
            Err(error) => {
                error.into_task().retire();
                false
            }
        }
    }

    /// Stops watching a seat by `leave`, which may return its connection.
    fn leave_by(&self, seat: u32, leave: impl FnOnce(&mut Segments<T>) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        let filed_at = state.segments.filed_at(seat);
        let connection = leave(&mut state.segments);
        let needless = state.needless_check();
        if state.check.as_ref().is_some_and(|check| Some(check.tick) == filed_at) {
            self.put_off(&mut state, seat);
        }
        drop(state);
        needless.into_iter().for_each(|timeout| timeout.cancel());
        connection
    }

    /// Puts the check off, because the connection for which it was scheduled has left.
    #[cold]
    fn put_off(&self, state: &mut State<T>, seat: u32) {
        let time = self.manager.check_time_before(state);
        state.segments.confirm_after_leave(seat, time);
        let tick = state.segments.next_check();
        let Some(check) = &mut state.check else { return };
        // If this is refused, the check has expired, and finds the next connection itself.
        if tick > check.tick && check.timeout.reschedule_at(self.manager.start_of(tick)) {
            check.tick = tick;
        }
    }

    /// Handles a check that was dropped and has no successor.
    fn check_lost(self: &Arc<Self>, epoch: u64) {
        let mut state = self.lock_after_others();
        if state.epoch != epoch || state.check.take().is_none() {
            return;
        }
        if self.ensure_check(&mut state).is_ok() {
            return;
        }
        let now = self.manager.now_contained();
        let stopped = state.segments.take_stopped(now);
        drop(state);
        self.report(stopped, now);
    }

    /// Runs the callback for the connections found at `now` and takes the answers, until none is
    /// left to report. If the timer accepts no check any more, it reports all watched connections,
    /// slice by slice.
    fn report(self: &Arc<Self>, mut batch: Vec<Idle<T>>, now: u64) {
        while !batch.is_empty() {
            let panics = (self.manager.deliver)(&mut batch);
            self.manager.count_reports(&batch);
            if panics > 0 {
                self.manager.panicked.fetch_add(panics, Ordering::Relaxed);
                warning!("{panics} panics of an idle callback");
            }
            let mut state = self.lock_after_others();
            // The present scale, because a check of all connections has missed these. But the time
            // of the report, so that an activity since then comes after it.
            let time = CheckTime { now, scale: self.manager.scale() };
            let Returned { mut again, dismissed } = state.segments.put_back(batch, time);
            let needless = state.needless_check();
            if state.segments.len() > 0
                && self.ensure_check(&mut state).is_err()
                && again.is_empty()
            {
                again = state.segments.take_stopped(self.manager.now_contained());
            }
            drop(state);
            needless.into_iter().for_each(|timeout| timeout.cancel());
            dismissed.into_iter().for_each(|connection| dismiss(connection));
            batch = again;
        }
    }
}

/// Drops a user's connection, whose drop may panic.
fn dismiss<T>(connection: T) {
    if isolate::panics(|| drop(connection)) {
        warning!("the drop of a watched connection panicked");
    }
}

impl<T: Send + 'static> Watcher for Shard<T> {
    /// Never behind the clock, so no report is early.
    fn now(&self) -> u64 {
        self.manager.timer.context().time.now_or_later()
    }

    fn leave(&self, seat: u32) {
        drop(self.leave_by(seat, |segments| segments.leave(seat)));
    }

    fn set_policy(&self, seat: u32, policy: IdlePolicy) {
        let now = self.manager.timer.now();
        let mut state = self.lock();
        let time = self.manager.check_time_at(now);
        state.segments.set_policy(seat, policy, time);
        self.hasten(&mut state);
    }
}

/// The task of a shard's timeout. Its drop reports the loss, unless it was retired.
struct Check<T: Send + 'static> {
    /// `None` after it was retired.
    shard: Option<Arc<Shard<T>>>,
    epoch: u64,
}

impl<T: Send + 'static> Check<T> {
    fn retire(mut self) {
        self.shard = None;
    }
}

impl<T: Send + 'static> TimerTask for Check<T> {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        if let Some(shard) = self.shard.clone() {
            shard.run(self, run);
        }
        Next::done()
    }
}

impl<T: Send + 'static> Drop for Check<T> {
    fn drop(&mut self) {
        if let Some(shard) = self.shard.take() {
            shard.check_lost(self.epoch);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
