//! A shard: the connections that a group of threads has registered, the lock of their seats, and the one timeout that
//! checks them.
//!
//! The timer has one internal timeout for each shard in use, the *check*. It is due at the tick in which
//! some connection must be checked. Its run schedules the next check before it calls any callback,
//! so on a pool a slow callback delays only the connections that are reported with it.
//!
//! One run checks a *slice* of the connections under the lock (`seats::CHECKS_PER_SLICE`). If more are
//! due, the next check is due in the current tick: other due timeouts get their turn, then that check
//! continues. So no thread waits for the lock longer than one slice takes.
//!
//! A connection that was active or has left still has its token in the wheel. If no other connection
//! is due, a run *confirms* the next check: it files such tokens again or drops them, so that the next check comes for a
//! connection that may really be idle. So does the leaving of the connection that is next. If there are too many such
//! tokens for one slice, the next run continues: immediately if the next check would come within a second, but once
//! around at most; otherwise with that check.
//!
//! Invariants:
//! 1. While a connection is watched, a check is pending or running, or its loss is being handled. A
//!    check is lost if the end of the timer cancels it, or if an executor drops its job. Then the
//!    check is dropped. Its drop schedules another one. If the timer accepts none, the drop reports
//!    all connections.
//! 2. Only the check of the latest epoch counts. Any other does nothing when it runs or is dropped.
//! 3. If all connections must be checked, or if a slice has left due connections to the next one,
//!    `next_check` is not after now. So the check is due immediately, and so is one that replaces it.
//! 4. No callback runs under the lock, no clock is read under it (a user's clock may call the manager
//!    back), and no connection or check is dropped under it. The timer's own locks are taken under this
//!    lock, never the other way round.

use super::activity::Watcher;
use super::event::Idle;
use super::manager::Manager;
use super::policy::IdlePolicy;
use super::seats::{CHECKS_AFTER_LEAVE, CHECKS_PER_SLICE, LIMIT, Seats};
use super::verdict::CheckTime;
use super::watch::Watch;
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering, thread};
use crate::timeout::{Admit, Internal, Kind, Next, RefusalReason, Run, ScheduleError, TimerTask};

/// How often a check yields to a thread that waits for the lock. This takes 100 us or more, enough
/// for that thread to wake up.
const YIELDS: usize = 256;

pub(super) struct Shard<T> {
    manager: Arc<Manager<T>>,
    contents: Mutex<Contents<T>>,
    /// Whether a thread waits for the lock. Only a hint: if two threads wait, the first one to get the
    /// lock clears it.
    wanted: AtomicBool,
}

/// What the lock of a shard protects.
pub(super) struct Contents<T> {
    pub(super) seats: Seats<T>,
    check: Option<NextCheck>,
    epoch: u64,
    /// The last time of the clock that was used under the lock.
    now: u64,
}

/// The check that counts.
struct NextCheck {
    timeout: Internal,
    /// The tick that it is scheduled for.
    tick: u64,
    /// The number of tokens that runs have skipped since it was last scheduled for a later tick.
    skipped: usize,
}

impl<T> Contents<T> {
    /// Takes the check's timeout if no connection is watched any more. The caller cancels it.
    fn needless_check(&mut self) -> Option<Internal> {
        if self.seats.len() > 0 {
            return None;
        }
        self.check.take().map(|pending| pending.timeout)
    }
}

impl<T: Send + 'static> Shard<T> {
    pub(super) fn new(manager: Arc<Manager<T>>) -> Self {
        let seats = Seats::new(manager.origin, manager.ticks);
        let contents = Contents { seats, check: None, epoch: 0, now: 0 };
        Self { manager, contents: Mutex::new(contents), wanted: AtomicBool::new(false) }
    }

    /// Locks the shard, and tells a check meanwhile that this thread waits. Relaxed, here and
    /// below: the flag is a hint.
    pub(super) fn lock(&self) -> MutexGuard<'_, Contents<T>> {
        self.wanted.store(true, Ordering::Relaxed);
        let contents = self.contents.lock();
        self.wanted.store(false, Ordering::Relaxed);
        contents
    }

    /// Locks the shard for a check, which takes the lock slice after slice. Threads that wait come
    /// first. The lock itself does not ensure that: it favours threads that are awake.
    fn lock_after_others(&self) -> MutexGuard<'_, Contents<T>> {
        for _ in 0..YIELDS {
            if !self.wanted.load(Ordering::Relaxed) {
                break;
            }
            thread::yield_now();
        }
        self.contents.lock()
    }

    pub(super) fn watch(
        self: &Arc<Self>,
        connection: T,
        policy: IdlePolicy,
    ) -> Result<Watch, ScheduleError<T>> {
        let now = self.manager.timer.now();
        let mut contents = self.lock();
        let time = self.manager.check_time_at(now);
        contents.now = time.now;
        let entered = contents.seats.enter(connection, policy, time, || self.clone());
        let full = |connection| {
            ScheduleError::new(RefusalReason::LimitReached { limit: LIMIT }, connection)
        };
        let seat = entered.map_err(full)?;
        match self.ensure_check(&mut contents) {
            Ok(()) => Ok(Watch::new(seat)),
            Err(error) => match contents.seats.leave(seat.number) {
                Some(connection) => Err(error.map(|()| connection)),
                // Not reached: a connection that has just entered is here.
                None => Ok(Watch::new(seat)),
            },
        }
    }

    /// Ensures that a check is pending for the next connection.
    fn ensure_check(self: &Arc<Self>, contents: &mut Contents<T>) -> Result<(), ScheduleError<()>> {
        // If the timeout has ended, its check is about to be dropped. After a stop, it may still wait in an executor.
        let is_alive = contents.check.as_ref().is_some_and(|check| check.timeout.is_alive());
        if is_alive && !self.manager.timer.gate().is_closed() {
            self.move_check(contents);
            return Ok(());
        }
        let time = self.check_time_before(contents);
        contents.seats.confirm_next_check(time, CHECKS_PER_SLICE);
        let tick = contents.seats.next_check();
        self.schedule(contents, tick, Admit::Once, 0)
    }

    /// Moves the check to the tick of the next one.
    fn move_check(&self, contents: &mut Contents<T>) {
        let tick = contents.seats.next_check();
        let Some(check) = &mut contents.check else { return };
        // If this is refused, the check has expired and waits for the lock, or it is lost. In both
        // cases a check follows.
        if tick != check.tick && check.timeout.reschedule_at(self.manager.start_of(tick)) {
            check.tick = tick;
        }
    }

    /// Stops watching a connection that has been silent since `since`, and returns it.
    pub(super) fn take_if_silent_since(&self, seat: u32, since: u64) -> Option<T> {
        self.leave_by(seat, |seats| seats.take_if_silent_since(seat, since))
    }

    /// Requests a check of all connections, because durations have become shorter.
    pub(super) fn check_all_connections(&self) {
        let mut contents = self.lock();
        let previous = contents.seats.check_all();
        self.move_check(&mut contents);
        drop(contents);
        drop(previous);
    }

    /// Runs a check.
    fn run(self: &Arc<Self>, check: Check<T>, run: &Run<'_>) {
        let now = run.now();
        let mut contents = self.lock_after_others();
        if contents.epoch != check.epoch || contents.check.is_none() {
            return check.retire();
        }
        let time = self.manager.check_time_at(now);
        contents.now = time.now;
        let idle = contents.seats.take_idle(time);
        let followed = self.schedule_next(&mut contents, time);
        drop(contents);
        if followed {
            check.retire();
        } else {
            drop(check); // it is lost
        }
        self.report(idle, time.now);
    }

    /// Schedules the check after the one that runs, for the current tick if one slice was not
    /// enough. Returns false if the timer accepts none.
    fn schedule_next(self: &Arc<Self>, contents: &mut Contents<T>, time: CheckTime) -> bool {
        let tick_now = self.manager.ticks.tick_at(time.now);
        let is_left = contents.seats.next_check() <= tick_now;
        let is_searching = !is_left && !contents.seats.confirm_next_check(time, CHECKS_PER_SLICE);
        let next = contents.seats.next_check();
        // The search skips each token once at most: connections that are touched all the time come up
        // again and again. It continues now only if it saves a wake-up within a second.
        let skipped = contents.check.as_ref().map_or(0, |check| check.skipped);
        let continues_search = is_searching
            && skipped < contents.seats.len() + CHECKS_PER_SLICE
            && next < tick_now + self.manager.ticks.tick_not_before(1_000_000_000);
        let skipped = if continues_search { skipped + CHECKS_PER_SLICE } else { 0 };

        let at_once = is_left || continues_search;
        let (tick, admit) = if at_once { (tick_now, Admit::DueNow) } else { (next, Admit::Once) };
        self.schedule(contents, tick, admit, skipped).is_ok()
    }

    /// Schedules a check, which is then the one that counts.
    fn schedule(
        self: &Arc<Self>,
        contents: &mut Contents<T>,
        tick: u64,
        admit: Admit,
        skipped: usize,
    ) -> Result<(), ScheduleError<()>> {
        let Manager { timer, on_worker, .. } = &*self.manager;
        let (epoch, due) = (contents.epoch + 1, self.manager.start_of(tick));
        let check = Check { shard: Some(self.clone()), epoch };
        let scheduled = if *on_worker {
            let scheduled = timer.schedule_internal(OnWorker(check), due, admit);
            scheduled.map_err(|error| error.map(|task| task.0.retire()))
        } else {
            timer.schedule_internal(check, due, admit).map_err(|error| error.map(Check::retire))
        };
        // It may be past: otherwise what a slice has left would reschedule the check.
        let tick = contents.seats.next_check();
        contents.check = Some(NextCheck { timeout: scheduled?, tick, skipped });
        contents.epoch = epoch;
        Ok(())
    }

    /// Stops watching a seat by `leave`, which may return its connection.
    fn leave_by(&self, seat: u32, leave: impl FnOnce(&mut Seats<T>) -> Option<T>) -> Option<T> {
        let mut contents = self.lock();
        let was_next = contents.seats.is_next(seat);
        let connection = leave(&mut contents.seats);
        let needless = contents.needless_check();
        if was_next {
            self.delay_check(&mut contents);
        }
        drop(contents);
        needless.into_iter().for_each(|timeout| timeout.cancel());
        connection
    }

    /// Puts the check off, because the connection for which it was scheduled has left.
    #[cold]
    fn delay_check(&self, contents: &mut Contents<T>) {
        let time = self.check_time_before(contents);
        contents.seats.confirm_next_check(time, CHECKS_AFTER_LEAVE);
        self.move_check(contents);
    }

    /// The time for confirming the next check: the last one that was used under the lock. This saves a
    /// clock read under the lock. The only effect of an old time is that paused connections are checked
    /// sooner than needed.
    fn check_time_before(&self, contents: &Contents<T>) -> CheckTime {
        CheckTime { now: contents.now, scale: self.manager.scale() }
    }

    /// Handles a check that was dropped and has no successor.
    fn check_lost(self: &Arc<Self>, epoch: u64) {
        let mut contents = self.lock_after_others();
        if contents.epoch != epoch || contents.check.take().is_none() {
            return;
        }
        if self.ensure_check(&mut contents).is_ok() {
            return;
        }
        drop(contents);
        let now = self.manager.now_contained();
        let stopped = self.lock_after_others().seats.take_stopped(now);
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
            let mut contents = self.lock_after_others();
            // The current scale, because a check of all connections has missed these. But the time
            // of the report, so that an activity since then comes after it.
            let time = CheckTime { now, scale: self.manager.scale() };
            let (mut again, dismissed) = contents.seats.put_back(batch, time);
            let needless = contents.needless_check();
            let has_ended = contents.seats.len() > 0 && self.ensure_check(&mut contents).is_err();
            drop(contents);
            needless.into_iter().for_each(|timeout| timeout.cancel());
            dismissed.into_iter().for_each(|connection| dismiss(connection));
            if has_ended && again.is_empty() {
                let now = self.manager.now_contained();
                again = self.lock_after_others().seats.take_stopped(now);
            }
            batch = again;
        }
    }
}

/// Drops a user's connection, whose drop may panic.
fn dismiss<T>(connection: T) {
    if catch_panic::panics(|| drop(connection)) {
        warning!("the drop of a watched connection panicked");
    }
}

impl<T: Send + 'static> Watcher for Shard<T> {
    /// Never behind the clock, so no report is early.
    fn now(&self) -> u64 {
        self.manager.timer.gate().time.now_or_later()
    }

    fn leave(&self, seat: u32) {
        drop(self.leave_by(seat, |seats| seats.leave(seat)));
    }

    fn set_policy(&self, seat: u32, policy: IdlePolicy) {
        let now = self.manager.timer.now();
        let mut contents = self.lock();
        let time = self.manager.check_time_at(now);
        contents.seats.set_policy(seat, policy, time);
        self.move_check(&mut contents);
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

/// A check that runs on the worker, even if the timer has an executor.
struct OnWorker<T: Send + 'static>(Check<T>);

impl<T: Send + 'static> TimerTask for OnWorker<T> {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        let _done = self.0.run(run);
        Next::done()
    }

    // Like a check, it always returns `Next::done`.
    const KIND: Kind = Kind::WAKE;
}

#[cfg(all(test, not(loom)))]
mod tests;
