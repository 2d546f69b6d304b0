//! Threads wait here for the worker: until it has caught up with the clock, or until the timer has ended. The end
//! leaves the unprocessed timeouts here.
//!
//! | progress (under its lock) | set by | the waiting threads |
//! |---|---|---|
//! | `requested` = n | a moved clock, before it wakes the worker | wait |
//! | `caught_up` = n | the worker, after a pass that began by reading `requested` and then the clock | continue if their request is n or earlier |
//! | finished, with the unprocessed timeouts | the thread that has emptied the slots | all continue; the first stop, or the drop of the last handle, takes the unprocessed timeouts |
//!
//! The thread holds no lock while it empties the slots: with millions of timeouts that takes a second, and no
//! destructor and no poll must wait for it.

use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::intake::Phase;
use crate::intake::shared::Gate;
use std::task::Waker;
use std::time::Instant;

/// The progress of one timer. `U` is an unprocessed timeout. See the head.
pub(crate) struct Progress<U> {
    gate: Arc<Gate>,
    state: Mutex<State<U>>,
    changed: Condvar,
}

struct State<U> {
    /// The number of requests to catch up with the clock.
    requested: u64,
    /// The number of the last request that was followed by a whole pass.
    caught_up: u64,
    finished: bool,
    unprocessed: Vec<U>,
    /// The wakers to wake at the end, each with its number. They are cloned, woken and dropped outside
    /// the lock.
    waiting: Vec<(u64, Waker)>,
    /// The last number that was assigned to a waker.
    waited: u64,
}

impl<U> Progress<U> {
    pub(super) fn new(gate: Arc<Gate>) -> Self {
        let state = State {
            requested: 0,
            caught_up: 0,
            finished: false,
            unprocessed: Vec::new(),
            waiting: Vec::new(),
            waited: 0,
        };
        Self { gate, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Closes the timer so that its pending timeouts are cancelled. Returns those that are already reported.
    pub(super) fn cancel(&self) -> Vec<U> {
        self.gate.close_and_cancel();
        std::mem::take(&mut self.state.lock().unprocessed)
    }

    /// Finishes the timer, once. `empty` takes the remaining timeouts out of the slots. Returns them if no caller will
    /// collect them: this is read again under the lock, which `cancel` takes after it has closed the timer. So exactly
    /// one of these two functions returns them.
    pub(super) fn finish(&self, empty: impl FnOnce(Phase) -> Vec<U>) -> Vec<U> {
        let mut unprocessed = empty(self.gate.end_of_pending());
        let mut state = self.state.lock();
        state.finished = true;
        if self.gate.end_of_pending() == Phase::Returned {
            state.unprocessed = std::mem::take(&mut unprocessed);
        }
        drop(state);
        self.changed.notify_all();
        unprocessed
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state.lock().finished
    }

    fn wait_until(&self, holds: impl Fn(&State<U>) -> bool) -> MutexGuard<'_, State<U>> {
        let mut state = self.state.lock();
        while !holds(&state) {
            state = self.changed.wait(state);
        }
        state
    }

    /// Requests that the worker catch up. Returns the number of the request. The caller then wakes the
    /// worker.
    pub(crate) fn request_catch_up(&self) -> u64 {
        let mut state = self.state.lock();
        state.requested += 1;
        state.requested
    }

    /// The number of the last request. The worker reads it before it reads the clock.
    pub(crate) fn requested(&self) -> u64 {
        self.state.lock().requested
    }

    /// Reports that all timeouts due at the time of this request were handed over.
    pub(crate) fn caught_up(&self, request: u64) {
        self.state.lock().caught_up = request;
        self.changed.notify_all();
    }

    /// Waits until the worker has caught up with a request, or the timer has ended.
    pub(super) fn wait_caught_up(&self, request: u64) {
        let done = |state: &State<U>| state.caught_up >= request || state.finished;
        drop(self.wait_until(done));
    }

    /// Waits for the end and takes the unprocessed timeouts. A second caller gets none. Returns `None`
    /// if `limit` comes before the end.
    pub(crate) fn wait_finished(&self, limit: Option<Instant>) -> Option<Vec<U>> {
        let mut state = self.state.lock();
        while !state.finished {
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                return None;
            }
            state = self.changed.wait_until(state, limit);
        }
        Some(std::mem::take(&mut state.unprocessed))
    }

    /// Takes the unprocessed timeouts as [`wait_finished`](Self::wait_finished) does, but does not wait:
    /// before the end it returns `None`, and `waker` is woken at the end. `number` identifies the caller
    /// from its first call to its last. A later waker replaces the caller's previous one.
    pub(crate) fn poll_finished(&self, number: &mut Option<u64>, waker: &Waker) -> Option<Vec<U>> {
        let waker = waker.clone();
        let mut state = self.state.lock();
        if state.finished {
            let unprocessed = std::mem::take(&mut state.unprocessed);
            drop(state); // the waker is dropped after the lock is released
            return Some(unprocessed);
        }
        let former = state.waiting.iter_mut().find(|(n, _)| Some(*n) == *number);
        let replaced = if let Some((_, former)) = former {
            Some(std::mem::replace(former, waker))
        } else {
            state.waited += 1;
            *number = Some(state.waited);
            let entry = (state.waited, waker);
            state.waiting.push(entry);
            None
        };
        drop(state);
        drop(replaced);
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

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
