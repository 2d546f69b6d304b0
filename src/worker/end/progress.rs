//! Threads wait here for the worker: until it has caught up with the clock, or until the timer has ended. The end
//! leaves the unprocessed timeouts here.
//!
//! | progress (under its lock) | set by | the waiting threads |
//! |---|---|---|
//! | `requested` = n | a moved clock, before it wakes the worker | wait |
//! | `caught_up` = n | the worker, after a pass that began by reading `requested` and then the clock | continue if their request is n or earlier |
//! | Emptying | the thread that finishes the timer, before it empties the slots | wait, including a stop whose limit has passed: no user code runs meanwhile |
//! | Finished, with the unprocessed timeouts | the same thread, afterwards | all continue; the first stop, or the drop of the last handle, takes the unprocessed timeouts |
//!
//! So the slots are emptied once, and each timeout is reported once. The thread holds no lock while it empties
//! them: with millions of timeouts that takes a second, and no destructor and no poll must wait for it.

use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::intake::Phase;
use crate::intake::context::SharedContext;
use std::task::Waker;
use std::time::Instant;

/// The progress of one timer. `U` is an unprocessed timeout. See the head.
pub(crate) struct Progress<U> {
    context: SharedContext,
    state: Mutex<State<U>>,
    changed: Condvar,
}

struct State<U> {
    /// The number of requests to catch up with the clock.
    requested: u64,
    /// The number of the last request that was followed by a whole pass.
    caught_up: u64,
    stage: Stage,
    unprocessed: Vec<U>,
    /// The wakers to wake at the end, each with its number. They are cloned, woken and dropped outside
    /// the lock.
    waiting: Vec<(u64, Waker)>,
    /// The last number that was assigned to a waker.
    waited: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    /// A thread of this process empties the slots. In a forked child, that thread does not exist.
    Emptying(u32),
    Finished,
}

impl<U> Progress<U> {
    pub(super) fn new(context: SharedContext) -> Self {
        let state = State {
            requested: 0,
            caught_up: 0,
            stage: Stage::Pending,
            unprocessed: Vec::new(),
            waiting: Vec::new(),
            waited: 0,
        };
        Self { context, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Closes the timer so that its pending timeouts are cancelled. Returns those that are already reported.
    pub(super) fn cancel(&self) -> Vec<U> {
        self.context.gate.close_and_cancel();
        std::mem::take(&mut self.state.lock().unprocessed)
    }

    /// Finishes the timer, unless another thread does or has done so. `empty` takes the remaining timeouts out
    /// of the slots. Returns them if no caller will collect them: this is read again under the lock, which
    /// `cancel` takes after it has closed the timer. So exactly one of these two functions returns them.
    pub(super) fn finish(&self, empty: impl FnOnce(Phase) -> Vec<U>) -> Vec<U> {
        let here = Stage::Emptying(std::process::id());
        let mut state = self.state.lock();
        if state.stage == here || state.stage == Stage::Finished {
            return Vec::new();
        }
        state.stage = here;
        drop(state);
        let mut unprocessed = empty(self.context.gate.end_of_pending());
        let mut state = self.state.lock();
        state.stage = Stage::Finished;
        if self.context.gate.end_of_pending() == Phase::Returned {
            state.unprocessed = std::mem::take(&mut unprocessed);
        }
        drop(state);
        self.changed.notify_all();
        unprocessed
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state.lock().stage == Stage::Finished
    }

    /// Waits until the timer is finished. The caller, or another thread, has begun to do so.
    pub(super) fn wait_emptied(&self) {
        drop(self.wait_until(|state| state.stage == Stage::Finished));
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
        let done = |state: &State<U>| state.caught_up >= request || state.stage == Stage::Finished;
        drop(self.wait_until(done));
    }

    /// Waits for the end and takes the unprocessed timeouts. A second caller gets none. Returns `None`
    /// if `limit` comes before the end, and before the slots are being emptied.
    pub(crate) fn wait_finished(&self, limit: Option<Instant>) -> Option<Vec<U>> {
        let mut state = self.state.lock();
        while state.stage != Stage::Finished {
            let limit = limit.filter(|_| state.stage == Stage::Pending);
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
        if state.stage == Stage::Finished {
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

    /// Wakes all callers of `poll_finished`, after the end. Always called by the worker's thread, even if
    /// another thread has ended the timer.
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
mod model {
    use super::*;
    use crate::base::sync::{Arc, AtomicBool, Ordering};
    use crate::intake::context::Context;
    use crate::time::Timebase;
    use crate::time::tick::TickScale;
    use loom::thread;
    use std::num::NonZeroU64;

    fn progress() -> Arc<Progress<u32>> {
        let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
        Arc::new(Progress::new(Context::new(time, scale, None, 1)))
    }

    /// Runs a worker that waits until the timer is closed, and finishes it.
    fn worker(progress: Arc<Progress<u32>>) -> thread::JoinHandle<usize> {
        thread::spawn(move || {
            while !progress.context.gate.is_closed() {
                thread::yield_now();
            }
            progress.finish(|_| vec![1, 2, 3]).len()
        })
    }

    /// A stop and the worker both finish the timer. The slots are emptied once, before either continues,
    /// and the stop gets all timeouts.
    #[test]
    fn rule_09_a_stop_and_the_worker_both_finish() {
        crate::base::sync::check(|| {
            let progress = progress();
            let full = Arc::new(AtomicBool::new(true));
            let finish = |progress: &Progress<u32>, full: &AtomicBool| {
                let empty =
                    |_| if full.swap(false, Ordering::Relaxed) { vec![1, 2] } else { vec![] };
                assert!(progress.finish(empty).is_empty(), "a stop collects the timeouts");
                progress.wait_emptied();
                assert!(progress.is_finished() && !full.load(Ordering::Relaxed));
            };
            let other = (progress.clone(), full.clone());
            let worker = thread::spawn(move || {
                while !other.0.context.gate.is_closed() {
                    thread::yield_now();
                }
                finish(&other.0, &other.1);
            });
            progress.context.gate.close();
            finish(&progress, &full);
            assert_eq!(progress.wait_finished(None).map(|left| left.len()), Some(2));
            worker.join().unwrap();
        });
    }

    /// Two stops race. Both return, and each timeout goes to one of them.
    #[test]
    fn rule_09_two_threads_stop_one_timer() {
        crate::base::sync::check(|| {
            let progress = progress();
            let worker = worker(progress.clone());
            let stop = |progress: &Progress<u32>| {
                progress.context.gate.close();
                let unprocessed = progress.wait_finished(None).expect("there is no limit");
                assert!(progress.is_finished());
                unprocessed.len()
            };
            let other = progress.clone();
            let second = thread::spawn(move || stop(&other));
            assert_eq!(stop(&progress) + second.join().unwrap(), 3);
            assert_eq!(worker.join().unwrap(), 0);
        });
    }

    /// The drop of the last handle against the worker's end, also after a stop that gave up
    /// waiting. Exactly one of the two gets the unprocessed timeouts.
    #[test]
    fn rule_01_a_drop_leaves_no_timeout_uncollected() {
        for stops in [true, false] {
            crate::base::sync::check(move || {
                let progress = progress();
                let worker = worker(progress.clone());
                if stops {
                    progress.context.gate.close();
                }
                let collected = progress.cancel().len();
                assert_eq!(collected + worker.join().unwrap(), 3);
                assert!(progress.is_finished());
            });
        }
    }

    /// Two threads request to catch up, and both requests are answered.
    #[test]
    fn rule_09_requests_to_catch_up_are_answered() {
        crate::base::sync::check(|| {
            let progress = progress();
            let askers = [(); 2].map(|()| {
                let progress = progress.clone();
                thread::spawn(move || progress.wait_caught_up(progress.request_catch_up()))
            });
            while progress.requested() < 2 {
                thread::yield_now();
            }
            progress.caught_up(progress.requested());
            askers.into_iter().for_each(|asker| asker.join().unwrap());
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::intake::context::Context;
    use std::sync::mpsc;
    use std::time::Duration;

    /// In a forked child, the thread that empties the slots does not exist. What it had reported by then is
    /// still there.
    #[test]
    fn rule_01_a_forked_child_empties_the_slots_unless_that_was_done() {
        for done in [false, true] {
            let progress = Progress::<u32>::new(Context::of_this_thread(None, 8));
            progress.context.gate.close();
            if done {
                assert!(progress.finish(|_| vec![1, 2]).is_empty());
            } else {
                progress.state.lock().stage = Stage::Emptying(0); // by the parent: no child has this number
            }
            assert!(progress.finish(|_| if done { vec![] } else { vec![3] }).is_empty());
            let left = progress.wait_finished(Some(Instant::now()));
            assert_eq!(left, Some(if done { vec![1, 2] } else { vec![3] }));
        }
    }

    /// To take out millions of timeouts takes a second. No destructor and no poll waits for it, but a stop
    /// does, even without time left: it fails only if a task runs.
    #[test]
    fn rule_09_only_a_stop_waits_while_the_slots_are_emptied() {
        let progress = &Progress::<u32>::new(Context::of_this_thread(None, 8));
        let (begin, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            progress.context.gate.close();
            let emptier = scope.spawn(move || {
                progress.finish(|_| {
                    begin.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    vec![1, 2]
                })
            });
            has_begun.recv().unwrap();
            let (call, called) = mpsc::channel();
            scope.spawn(move || {
                let polled = progress.poll_finished(&mut None, Waker::noop());
                assert!(!progress.is_finished() && polled.is_none());
                assert!(progress.finish(|_| panic!("emptied twice")).is_empty());
                assert!(progress.cancel().is_empty());
                call.send(()).unwrap();
            });
            let in_time = called.recv_timeout(Duration::from_secs(60));
            let stop = scope.spawn(|| progress.wait_finished(Some(Instant::now())));
            go_on.send(()).unwrap();
            assert!(in_time.is_ok(), "a call has waited for the emptying");
            assert_eq!(emptier.join().unwrap(), [1, 2], "the last handle was dropped meanwhile");
            assert_eq!(stop.join().unwrap(), Some(Vec::new()));
        });
    }
}
