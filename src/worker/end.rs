//! End: closes a timer, empties its slots and reports that.
//!
//! Concepts:
//!
//! - A *closed* timer admits no timeout, and its worker leaves its loop (`Worker::run`).
//! - To *empty* the slots is to end all pending timeouts: they are returned, or cancelled if nobody is left to
//!   collect them. To *finish* the timer is to empty the slots and to report the end. The worker's thread does it once,
//!   at its end, for whatever reason (`Ending`). If a build fails, there is no
//!   worker, and the builder's thread does it.
//! - A timeout is *unprocessed* if the emptying has returned it.
//!
//! | state | where | means | a test that fails without it |
//! |---|---|---|---|
//! | CLOSED | `intake/shared` | a stop, the drop of the last handle, or the end of the worker has closed the timer | `rule_01_admission_against_close` |
//! | CANCELS | `intake/shared` | the last handle was dropped, also after a stop that gave up waiting | `rule_01_a_drop_leaves_no_timeout_uncollected` |
//! | EMPTIED | `intake/shared` | the worker has begun to empty the slots | `rule_01_close_against_a_run_that_goes_on` |
//! | finished | `Progress` | the unprocessed timeouts are reported | `rule_09_two_threads_stop_one_timer` |
//! | `requested`, `caught_up` | `Progress` | the last request of a clock that has jumped, and the last one after which the worker has made a whole pass | `rule_09_requests_to_catch_up_are_answered` |
//! | `process` | `Control` | where the worker's thread exists | `tests/fork.rs` |
//! | `thread` | `Control` | the worker has not ended, and no stop waits for the end of its thread | `a_worker_that_no_stop_waits_for_detaches_its_own_thread` |
//! | `ON_A_WORKER` | this file | this thread must not wait for a worker | `rule_09_workers_do_not_wait_for_each_other` |
//!
//! Internal timeouts, tasks that only wake a waker, and the wakers that wait for the end are told only after the
//! report, so that no stop with a limit waits for them (`Control::end`).
//!
//! **Closing against a producer.** The closing thread does not wait for a producer that is about to arm a slot.
//! Instead, the producer checks afterwards whether the timer was closed:
//!
//! | step | a producer | the closing thread, then the emptying thread |
//! |---|---|---|
//! | 1 | arms the slot | sets CLOSED |
//! | 2 | fence (`Chunk::announce_new`) | fence |
//! | 3 | if CLOSED: takes the timeout back, unless it has ended | empties all slots |
//!
//! One of the two fences comes first. If the producer's does, the emptying finds the slot armed. If the other
//! does, the producer sees CLOSED. Both can happen. Then the slot's word decides, and the timeout is either
//! refused or returned. A timeout that has run by then and has gone on is not refused: the producer cancels it.
//! The worker claims nothing after it has seen CLOSED.
//!
//! **Emptying against a run that goes on.** Such a timeout was admitted before. It goes back into its slot even
//! if the timer is closed, and the emptying finds it there. If the emptying has begun, its runner cancels it. The
//! steps are the same, with EMPTIED in place of CLOSED: the worker sets it, and its fence comes before the first slot.
//!
//! **Who collects.** The worker, which finishes the timer, reads CANCELS again under the lock of `Progress`. The drop
//! of the last handle takes that lock after it has set CANCELS. So exactly one of the two gets the unprocessed
//! timeouts. If a stop gave up waiting, and the worker has finished the timer since, it is the drop: its thread runs
//! the callbacks.
//!
//! **What the worker is busy with**, for the error of a stop whose limit has passed: the type of the task that it runs or
//! hands to the executor, and since when.
//!
//! | step | the worker, as a run begins | a thread that reads |
//! |---|---|---|
//! | 1 | stores `since` | reads `task` |
//! | 2 | stores `task` | reads `since` |
//! | 3 | | reads `task`, and begins anew if it has changed |
//!
//! A store of `task` releases, and a load acquires. So the time is that of a run of this type, or of the run that has
//! just followed it.

use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{
    Arc, AtomicCell, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, thread, thread_local,
};
use crate::intake::shared::Gate;
use crate::intake::{Emptied, Phase, Slot};
use crate::time::tick::NEVER;
use crate::time::{FollowingTimer, Jobs};
use crate::timeout::{Calls, Erased, Internals, Link, Shared, SharedRef, Timeout, Unprocessed};
use std::cell::Cell;
use std::ops::Deref;
use std::task::Waker;
use std::time::Instant;

/// What only a timer's own handles and its worker share: the progress of the end, the internal timeouts, and what runs.
pub(crate) struct Control {
    pub(crate) shared: SharedRef,
    /// The way of schedulers to what is shared.
    pub(crate) timer: Link,
    pub(crate) progress: Progress<Unprocessed>,
    pub(crate) internals: Internals,
    pub(super) running: Running<Calls>,
    /// The process in which the worker's thread exists.
    pub(crate) process: u32,
    /// The worker's thread, until a `stop` takes it to wait for its end, or until it ends without one. Then it detaches
    /// itself, because in glibc, a `pthread_detach` of a thread that ends meanwhile can free the stack of another one.
    pub(crate) thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Control {
    pub(crate) fn new(shared: SharedRef) -> Self {
        let (timer, internals) = (Link::to(&shared), Internals::default());
        let (progress, running) = (Progress::new(), Running::new());
        let (process, thread) = (std::process::id(), Mutex::new(None));
        Self { shared, timer, progress, internals, running, process, thread }
    }

    /// Whether this process was forked from the one with the worker's thread. Only the thread that forks is in
    /// the child. If that was the worker, in a task, its copy is the child's worker, and the answer is no.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process && !self.shared.alarm.parker().is_current_thread()
    }

    /// Closes the timer, so that its worker ends it.
    pub(crate) fn begin_stop(&self) {
        self.shared.gate.close();
        self.shared.alarm.call();
    }

    /// Closes the timer and cancels its pending timeouts, since nobody is left to collect them. In a forked child, the
    /// tasks of those that are already reported are copies, which are neither told nor dropped.
    pub(crate) fn cancel(&self) {
        let uncollected = self.progress.cancel(&self.shared.gate);
        self.shared.alarm.call();
        if self.is_forked() {
            return std::mem::forget(uncollected);
        }
        self.cancel_uncollected(uncollected);
    }

    /// Cancels timeouts that nobody can collect any more. Warns of them, because somebody has perhaps forgotten to
    /// keep a handle.
    fn cancel_uncollected(&self, uncollected: Vec<Unprocessed>) {
        let (timer, count) = (self.shared.name(), uncollected.len());
        if count > 0 {
            warning!(
                [timer = timer, timeouts = count],
                "{timer}: last handle dropped; cancelling {count} pending timeouts. Call stop() or keep a handle"
            );
        }
        uncollected.into_iter().for_each(Unprocessed::cancel);
    }

    /// Ends the remaining timeouts and reports the end. The tasks that wake wakers, and those of internal timeouts, come
    /// afterwards, so that no stop with a limit waits for them.
    fn end(&self) {
        let mut left = Vec::new();
        let uncollected = self.progress.report_end(&self.shared.gate, |end| {
            let (unprocessed, own) = empty(&self.shared, end);
            left = own;
            unprocessed
        });
        self.cancel_uncollected(uncollected);
        self.internals.end();
        left.into_iter().for_each(|(task, timeout)| timeout.tell_cancelled(task));
        self.progress.wake_waiting();
    }

    /// The earliest deadline of all pending timeouts, the crate's own included. `None` if all wait for ever.
    pub(crate) fn earliest_deadline(&self) -> Option<u64> {
        let mut earliest = NEVER;
        self.shared.table.for_each(|chunk| {
            let next = chunk.slots().filter_map(Slot::pending_deadline).min();
            earliest = next.map_or(earliest, |next| next.min(earliest));
        });
        Some(earliest).filter(|&deadline| deadline != NEVER)
    }

    /// The number of pending timeouts that are not in the wheel.
    pub(crate) fn queue_depth(&self) -> usize {
        let mut depth = 0;
        self.shared.table.for_each(|chunk| {
            let new = |slot: &&Slot<_>| slot.phase() == Phase::New;
            depth += if chunk.internal { 0 } else { chunk.slots().filter(new).count() };
        });
        depth
    }

    /// The type of the task that the worker is busy with, and since when.
    pub(crate) fn running(&self) -> Option<(&'static str, Instant)> {
        let (task, since) = self.running.get()?;
        Some((task.type_name(), self.shared.gate.time.instant_at(since)))
    }
}

/// The worker's own reference, which ends the timer when it is dropped. So when the worker ends, for whatever reason,
/// the timer is closed and accepts no timeout that would never run, and no stop waits for ever.
pub(crate) struct Ending(pub(crate) Arc<Control>);

impl Deref for Ending {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.0
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.shared.gate.close();
        drop(self.thread.lock().take());
        self.end();
    }
}

impl FollowingTimer for Control {
    fn request_catch_up(&self) -> u64 {
        let request = self.progress.request_catch_up();
        self.shared.alarm.call();
        request
    }

    fn wait(&self, request: u64) {
        if self.may_wait() {
            self.progress.wait_caught_up(request);
        }
    }

    fn may_wait(&self) -> bool {
        !on_a_worker() && !self.is_forked()
    }

    fn next_due(&self) -> Option<Instant> {
        let earliest = self.earliest_deadline()?;
        let start = self.shared.gate.scale.start_of(self.shared.gate.tick_of(earliest));
        Some(start)
            .filter(|&start| start != NEVER)
            .map(|start| self.shared.gate.time.instant_at(start))
    }

    fn jobs(&self) -> &Jobs {
        self.shared.gate.time.jobs()
    }
}

thread_local! {
    static ON_A_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the worker of a timer.
pub(super) fn mark_worker() {
    ON_A_WORKER.with(|on| on.set(true));
    Jobs::mark_worker();
}

/// Whether this thread is the worker of any timer. A worker must not wait for another worker, because
/// two that wait for each other would wait for ever.
fn on_a_worker() -> bool {
    ON_A_WORKER.with(Cell::get)
}

/// Ends the remaining timeouts and returns them in the order of their memory. Their tasks stay in their slots. Those that
/// only wake a waker, and internal ones, are returned apart, with their tasks.
fn empty(shared: &Shared, end: Phase) -> (Vec<Unprocessed>, Vec<(Erased, Timeout)>) {
    let (mut unprocessed, mut own) = (Vec::new(), Vec::new());
    shared.empty(end, |emptied: Emptied<Erased>| {
        let pin = emptied.pin();
        if pin.chunk().internal || emptied.read(Erased::only_wakes) {
            let (task, pin) = emptied.take();
            own.push((task, Timeout::from(pin)));
        } else {
            unprocessed.push(Unprocessed(emptied));
        }
    });
    // After they were counted as returned, so that no count is too low.
    own.iter().for_each(|(_, timeout)| timeout.cancel_returned());
    (unprocessed, own)
}

/// Threads wait here for the worker: until it has caught up with the clock, or until the timer has ended. The end leaves
/// the unprocessed timeouts, each a `U`, here. The thread holds no lock while it empties the slots: with millions of
/// timeouts that takes a second, and no destructor and no poll must wait for it.
pub(crate) struct Progress<U> {
    /// The number of requests to catch up with the clock.
    requested: AtomicU64,
    /// The number of the last request that was followed by a whole pass. The worker writes it under the lock.
    caught_up: AtomicU64,
    state: Mutex<State<U>>,
    changed: Condvar,
}

struct State<U> {
    /// The unprocessed timeouts, once the timer is finished. The first stop, or the drop of the last handle, takes them.
    finished: Option<Vec<U>>,
    /// The wakers to wake at the end, each with its number. They are cloned, woken and dropped outside
    /// the lock.
    waiting: Vec<(u64, Waker)>,
    /// The last number that was assigned to a waker.
    waited: u64,
}

impl<U> State<U> {
    /// Takes the unprocessed timeouts. `None` before the end.
    fn take(&mut self) -> Option<Vec<U>> {
        self.finished.as_mut().map(std::mem::take)
    }
}

impl<U> Progress<U> {
    fn new() -> Self {
        let state = State { finished: None, waiting: Vec::new(), waited: 0 };
        let [requested, caught_up] = [0, 0].map(AtomicU64::new);
        Self { requested, caught_up, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Closes the timer so that its pending timeouts are cancelled. Returns those that are already reported.
    fn cancel(&self, gate: &Gate) -> Vec<U> {
        gate.close_and_cancel();
        self.state.lock().take().unwrap_or_default()
    }

    /// Finishes the timer, once. `empty` takes the remaining timeouts out of the slots. Returns them if no caller will
    /// collect them: this is read again under the lock, which `cancel` takes after it has closed the timer. So exactly
    /// one of these two functions returns them.
    fn report_end(&self, gate: &Gate, empty: impl FnOnce(Phase) -> Vec<U>) -> Vec<U> {
        let unprocessed = empty(gate.end_of_pending());
        let mut state = self.state.lock();
        let (collected, left) = match gate.end_of_pending() {
            Phase::Returned => (unprocessed, Vec::new()),
            _ => (Vec::new(), unprocessed),
        };
        state.finished = Some(collected);
        drop(state);
        self.changed.notify_all();
        left
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state.lock().finished.is_some()
    }

    /// Waits until the state `holds`. `None` if `limit` comes before.
    fn wait(
        &self,
        limit: Option<Instant>,
        holds: impl Fn(&State<U>) -> bool,
    ) -> Option<MutexGuard<'_, State<U>>> {
        let mut state = self.state.lock();
        while !holds(&state) {
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                return None;
            }
            state = self.changed.wait_until(state, limit);
        }
        Some(state)
    }

    /// Requests that the worker catch up. Returns the number of the request. The caller then wakes the
    /// worker. Release: pairs with `requested`, so the worker reads the time that the caller has set.
    pub(crate) fn request_catch_up(&self) -> u64 {
        self.requested.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The number of the last request. The worker reads it before it reads the clock.
    pub(crate) fn requested(&self) -> u64 {
        self.requested.load(Ordering::Acquire)
    }

    /// Reports that all timeouts due at the time of this request were handed over. Waits for no lock if nobody has
    /// requested anything since.
    pub(crate) fn caught_up(&self, request: u64) {
        if self.caught_up.load(Ordering::Relaxed) != request {
            let _state = self.state.lock();
            self.caught_up.store(request, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    /// Waits until the worker has caught up with a request, or the timer has ended.
    fn wait_caught_up(&self, request: u64) {
        let caught_up = || self.caught_up.load(Ordering::Relaxed) >= request;
        drop(self.wait(None, |state| caught_up() || state.finished.is_some()));
    }

    /// Waits for the end and takes the unprocessed timeouts. A second caller gets none. Returns `None`
    /// if `limit` comes before the end.
    pub(crate) fn wait_finished(&self, limit: Option<Instant>) -> Option<Vec<U>> {
        self.wait(limit, |state| state.finished.is_some())?.take()
    }

    /// Takes the unprocessed timeouts as [`wait_finished`](Self::wait_finished) does, but does not wait:
    /// before the end it returns `None`, and `waker` is woken at the end. `number` identifies the caller
    /// from its first call to its last. A later waker replaces the caller's previous one.
    pub(crate) fn poll_finished(&self, number: &mut Option<u64>, waker: &Waker) -> Option<Vec<U>> {
        let waker = waker.clone(); // dropped after the lock is released, as is the one that is replaced
        let mut _replaced = None;
        let mut state = self.state.lock();
        if state.finished.is_some() {
            drop(state);
            drop(waker); // this may panic, so the unprocessed timeouts are still here
            return self.state.lock().take();
        }
        match state.waiting.iter_mut().find(|(n, _)| Some(*n) == *number) {
            Some((_, before)) => _replaced = Some(std::mem::replace(before, waker)),
            None => {
                state.waited += 1;
                *number = Some(state.waited);
                let entry = (state.waited, waker);
                state.waiting.push(entry);
            }
        }
        None
    }

    /// Wakes all callers of `poll_finished`, after the end.
    pub(crate) fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        for (_, waker) in waiting {
            if catch_panic::panics(|| waker.wake()) {
                warning!("a waker that waited for the end of the timer panicked");
            }
        }
    }

    /// Drops the waker of a caller that does not wait any longer.
    pub(crate) fn stop_waiting(&self, number: u64) {
        let mut state = self.state.lock();
        let at = state.waiting.iter().position(|&(n, _)| n == number);
        let waker = at.map(|at| state.waiting.swap_remove(at));
        drop(state);
        if catch_panic::panics(|| drop(waker)) {
            warning!("a waker that waited for the end of the timer panicked when it was dropped");
        }
    }
}

/// What the worker is busy with. `T` stands for the type of a task. See the head.
#[repr(align(128))] // the worker writes it at each run, so no other thread's data shares its cache lines
pub(super) struct Running<T: 'static> {
    task: AtomicCell<Option<&'static T>>,
    since: AtomicU64,
}

impl<T> Running<T> {
    fn new() -> Self {
        Self { task: AtomicCell::new(None), since: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn begin(&self, task: &'static T, now: u64) {
        self.since.store(now, Ordering::Relaxed);
        self.task.store(Some(task));
    }

    /// The worker has nothing to run.
    #[inline]
    pub(super) fn end(&self) {
        self.task.store(None);
    }

    /// The type of the task, and the time since when it runs.
    fn get(&self) -> Option<(&'static T, u64)> {
        loop {
            let task = self.task.load();
            let since = self.since.load(Ordering::Relaxed);
            let same = self.task.load().map(std::ptr::from_ref) == task.map(std::ptr::from_ref);
            if same {
                return task.map(|task| (task, since));
            }
        }
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
