//! How a timer ends, and how threads wait for the end.
//!
//! Concepts:
//!
//! - A *command* tells the worker to continue or to end. It is stored in `order`.
//! - The *report* tells the waiting threads how far the worker has come.
//! - To *finish* is to empty the slots and to report the end. It happens once.
//! - A timeout is *unprocessed* if it was still pending when the timer finished.
//!
//! | `order` | set by | the worker then |
//! |---|---|---|
//! | RUN | the build | continues |
//! | RETURN | the first stop, or a worker that dies | leaves its loop and returns the unprocessed timeouts |
//! | CANCEL | the drop of the last handle, also after a stop that gave up waiting | leaves its loop and cancels them |
//!
//! A command to end (RETURN or CANCEL) is given only after the timer is closed. A closed timer admits no
//! timeout. So every timeout was either armed before, and the emptying finds it, or it is taken back (see
//! `heap/context`). The command is stored with release after the closing, and the worker loads it with
//! acquire. The worker claims nothing after it has seen the command.
//!
//! | `report` (under its lock) | set by | the waiting threads |
//! |---|---|---|
//! | `requested` = n | a moved clock, before it wakes the worker | wait |
//! | `caught_up` = n | the worker, after a pass that began by reading `requested` and then the clock | continue if their request is n or earlier |
//! | `emptying` | the first in the next table | wait, including a stop whose limit has passed: no user code runs meanwhile |
//! | `finished`, with the unprocessed timeouts | the same thread, after it has emptied the slots | all continue; the first stop, or the drop of the last handle, takes the unprocessed timeouts |
//!
//! | finishes the timer | when |
//! |---|---|
//! | the worker | at its end, for whatever reason, after the drop of its executor (`Ending` in `control`) |
//! | a stop with a limit | if the worker runs no task and hands none over (`Control::finish_if_idle`) |
//! | a build that fails | at its end, since there is no worker (`Ending` too) |
//! | a stop in a forked child | always, since the worker's thread is in the parent (`Control::finish_forked`) |
//!
//! Internal timeouts, those that only wake a waker, and the wakers that wait for the end are always left
//! to the worker's thread, which cancels or wakes them last (`Ending` again).
//!
//! The thread that sets `emptying` empties the slots, so they are emptied once, and each timeout is
//! reported once. It holds no lock meanwhile: with millions of timeouts that takes a second, and no
//! destructor and no poll must wait for it. The worker's thread waits for it at its end.

use crate::base::isolate;
use crate::base::logging::warning;
use crate::base::sync::{AtomicU8, Condvar, Mutex, Ordering};
use std::task::Waker;
use std::time::Instant;

const RUN: u8 = 0;
const RETURN: u8 = 1;
const CANCEL: u8 = 2;

/// The command to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    Return,
    Cancel,
}

/// The command and the report of one timer. `U` is an unprocessed timeout.
pub(crate) struct Lifecycle<U> {
    order: AtomicU8,
    report: Mutex<Report<U>>,
    changed: Condvar,
}

struct Report<U> {
    /// The number of requests to catch up with the clock.
    requested: u64,
    /// The number of the last request that was followed by a whole pass.
    caught_up: u64,
    /// The process of the thread that empties the slots, or has done so. In a forked child, that thread
    /// does not exist.
    emptying: Option<u32>,
    finished: bool,
    unprocessed: Vec<U>,
    /// The wakers to wake at the end, each with its number. They are cloned, woken and dropped outside
    /// the lock.
    waiting: Vec<(u64, Waker)>,
    /// The last number that was assigned to a waker.
    waited: u64,
}

impl<U> Lifecycle<U> {
    pub(crate) fn new() -> Self {
        let report = Report {
            requested: 0,
            caught_up: 0,
            emptying: None,
            finished: false,
            unprocessed: Vec::new(),
            waiting: Vec::new(),
            waited: 0,
        };
        Self { order: AtomicU8::new(RUN), report: Mutex::new(report), changed: Condvar::new() }
    }

    #[inline]
    pub(crate) fn command(&self) -> Command {
        match self.order.load(Ordering::Acquire) {
            RUN => Command::Run,
            RETURN => Command::Return,
            _ => Command::Cancel,
        }
    }

    /// Tells the worker to return the unprocessed timeouts. The caller has closed the timer.
    pub(crate) fn command_return(&self) {
        let _ = self.order.compare_exchange(RUN, RETURN, Ordering::Release, Ordering::Relaxed);
    }

    /// Tells the worker to cancel the unprocessed timeouts, since no caller will collect them. The
    /// caller has closed the timer. Returns the timeouts that were already reported.
    pub(crate) fn command_cancel(&self) -> Vec<U> {
        self.order.store(CANCEL, Ordering::Release);
        std::mem::take(&mut self.report.lock().unprocessed)
    }

    /// Requests that the worker catch up. Returns the number of the request. The caller then wakes the
    /// worker.
    pub(crate) fn request_catch_up(&self) -> u64 {
        let mut report = self.report.lock();
        report.requested += 1;
        report.requested
    }

    /// The number of the last request. The worker reads it before it reads the clock.
    pub(crate) fn requested(&self) -> u64 {
        self.report.lock().requested
    }

    /// Reports that all timeouts due at the time of this request were handed over.
    pub(crate) fn caught_up(&self, request: u64) {
        self.report.lock().caught_up = request;
        self.changed.notify_all();
    }

    /// Ends the timer, unless another thread does or has done so. `empty` takes the remaining timeouts out
    /// of the slots. Returns them if no caller will collect them. The command is read again under the
    /// report's lock, and `command_cancel` takes that lock after it stores the command. So exactly one of
    /// these two functions returns the timeouts.
    pub(crate) fn finish(&self, empty: impl FnOnce(Command) -> Vec<U>) -> Vec<U> {
        let here = Some(std::process::id());
        let mut report = self.report.lock();
        if report.finished || std::mem::replace(&mut report.emptying, here) == here {
            return Vec::new();
        }
        drop(report);
        let mut unprocessed = empty(self.command());
        let mut report = self.report.lock();
        report.finished = true;
        if self.command() != Command::Cancel {
            report.unprocessed = std::mem::take(&mut unprocessed);
        }
        drop(report);
        self.changed.notify_all();
        unprocessed
    }

    /// Waits until the slots are empty. The caller, or another thread, has begun to empty them.
    pub(crate) fn wait_emptied(&self) {
        let mut report = self.report.lock();
        while !report.finished {
            report = self.changed.wait_until(report, None);
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.report.lock().finished
    }

    /// Waits until the worker has caught up with a request, or the timer has ended.
    pub(crate) fn wait_caught_up(&self, request: u64) {
        let mut report = self.report.lock();
        while report.caught_up < request && !report.finished {
            report = self.changed.wait(report);
        }
    }

    /// Waits for the end and takes the unprocessed timeouts. A second caller gets none. Returns `None`
    /// if `limit` comes before the end, and before the slots are being emptied.
    pub(crate) fn wait_finished(&self, limit: Option<Instant>) -> Option<Vec<U>> {
        let mut report = self.report.lock();
        while !report.finished {
            let limit = limit.filter(|_| report.emptying.is_none());
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                return None;
            }
            report = self.changed.wait_until(report, limit);
        }
        Some(std::mem::take(&mut report.unprocessed))
    }

    /// Takes the unprocessed timeouts as [`wait_finished`](Self::wait_finished) does, but does not wait:
    /// before the end it returns `None`, and `waker` is woken at the end. `number` identifies the caller
    /// from its first call to its last. A later waker replaces the caller's former one.
    pub(crate) fn poll_finished(&self, number: &mut Option<u64>, waker: &Waker) -> Option<Vec<U>> {
        let waker = waker.clone();
        let mut report = self.report.lock();
        if report.finished {
            let unprocessed = std::mem::take(&mut report.unprocessed);
            drop(report); // the waker is dropped after the lock is released
            return Some(unprocessed);
        }
        let former = report.waiting.iter_mut().find(|(n, _)| Some(*n) == *number);
        let replaced = if let Some((_, former)) = former {
            Some(std::mem::replace(former, waker))
        } else {
            report.waited += 1;
            *number = Some(report.waited);
            let entry = (report.waited, waker);
            report.waiting.push(entry);
            None
        };
        drop(report);
        drop(replaced);
        None
    }

    /// Wakes all callers of `poll_finished`, after the end. Always called by the worker's thread, even if
    /// another thread has ended the timer.
    pub(crate) fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut self.report.lock().waiting);
        for (_, waker) in waiting {
            if isolate::panics(|| waker.wake()) {
                warning!("a waker that waited for the end of the timer panicked");
            }
        }
    }

    /// Drops the waker of a caller that does not wait any longer.
    pub(crate) fn stop_waiting(&self, number: u64) {
        let mut report = self.report.lock();
        let at = report.waiting.iter().position(|&(n, _)| n == number);
        let waker = at.map(|at| report.waiting.swap_remove(at));
        drop(report);
        if isolate::panics(|| drop(waker)) {
            warning!("a waker that waited for the end of the timer panicked when it was dropped");
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::base::sync::{Arc, AtomicBool};
    use loom::thread;

    /// Runs a worker that waits for a command and finishes. `closed` stands for a closed timer.
    fn worker(
        lifecycle: Arc<Lifecycle<u32>>,
        closed: Arc<AtomicBool>,
    ) -> thread::JoinHandle<usize> {
        thread::spawn(move || {
            while lifecycle.command() == Command::Run {
                thread::yield_now();
            }
            assert!(closed.load(Ordering::Relaxed), "the command came before the closing");
            lifecycle.finish(|_| vec![1, 2, 3]).len()
        })
    }

    /// A stop and the worker both finish the timer. The slots are emptied once, before either continues,
    /// and the stop gets all timeouts.
    #[test]
    fn rule_09_a_stop_and_the_worker_both_finish() {
        crate::base::sync::check(|| {
            let lifecycle = Arc::new(Lifecycle::new());
            let full = Arc::new(AtomicBool::new(true));
            let finish = |lifecycle: &Lifecycle<u32>, full: &AtomicBool| {
                let empty =
                    |_| if full.swap(false, Ordering::Relaxed) { vec![1, 2] } else { vec![] };
                assert!(lifecycle.finish(empty).is_empty(), "a stop collects the timeouts");
                lifecycle.wait_emptied();
                assert!(lifecycle.is_finished() && !full.load(Ordering::Relaxed));
            };
            let other = (lifecycle.clone(), full.clone());
            let worker = thread::spawn(move || {
                while other.0.command() == Command::Run {
                    thread::yield_now();
                }
                finish(&other.0, &other.1);
            });
            lifecycle.command_return();
            finish(&lifecycle, &full);
            assert_eq!(lifecycle.wait_finished(None).map(|left| left.len()), Some(2));
            worker.join().unwrap();
        });
    }

    /// Two stops race. Both return, and each timeout goes to one of them.
    #[test]
    fn rule_09_two_threads_stop_one_timer() {
        crate::base::sync::check(|| {
            let lifecycle = Arc::new(Lifecycle::new());
            let closed = Arc::new(AtomicBool::new(false));
            let worker = worker(lifecycle.clone(), closed.clone());
            let stop = |lifecycle: &Lifecycle<u32>, closed: &AtomicBool| {
                closed.store(true, Ordering::Relaxed);
                lifecycle.command_return();
                let unprocessed = lifecycle.wait_finished(None).expect("there is no limit");
                assert!(lifecycle.is_finished());
                unprocessed.len()
            };
            let other = (lifecycle.clone(), closed.clone());
            let second = thread::spawn(move || stop(&other.0, &other.1));
            assert_eq!(stop(&lifecycle, &closed) + second.join().unwrap(), 3);
            assert_eq!(worker.join().unwrap(), 0);
        });
    }

    /// The drop of the last handle against the worker's end, also after a stop that gave up
    /// waiting. Exactly one of the two gets the unprocessed timeouts.
    #[test]
    fn rule_01_a_drop_leaves_no_timeout_uncollected() {
        for stops in [true, false] {
            crate::base::sync::check(move || {
                let lifecycle = Arc::new(Lifecycle::new());
                let closed = Arc::new(AtomicBool::new(false));
                let worker = worker(lifecycle.clone(), closed.clone());
                closed.store(true, Ordering::Relaxed);
                if stops {
                    lifecycle.command_return();
                }
                let collected = lifecycle.command_cancel().len();
                assert_eq!(collected + worker.join().unwrap(), 3);
                assert!(lifecycle.is_finished());
            });
        }
    }

    /// Two threads request to catch up, and both requests are answered.
    #[test]
    fn rule_09_requests_to_catch_up_are_answered() {
        crate::base::sync::check(|| {
            let lifecycle = Arc::new(Lifecycle::<u32>::new());
            let askers = [(); 2].map(|()| {
                let lifecycle = lifecycle.clone();
                thread::spawn(move || lifecycle.wait_caught_up(lifecycle.request_catch_up()))
            });
            while lifecycle.requested() < 2 {
                thread::yield_now();
            }
            lifecycle.caught_up(lifecycle.requested());
            askers.into_iter().for_each(|asker| asker.join().unwrap());
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// In a forked child, the thread that empties the slots does not exist. What it had reported by then is
    /// still there.
    #[test]
    fn rule_01_a_forked_child_empties_the_slots_unless_that_was_done() {
        for done in [false, true] {
            let lifecycle = Lifecycle::<u32>::new();
            lifecycle.command_return();
            if done {
                assert!(lifecycle.finish(|_| vec![1, 2]).is_empty());
            }
            lifecycle.report.lock().emptying = Some(0); // the parent: no process of ours has this number
            assert!(lifecycle.finish(|_| if done { vec![] } else { vec![3] }).is_empty());
            let left = lifecycle.wait_finished(Some(Instant::now()));
            assert_eq!(left, Some(if done { vec![1, 2] } else { vec![3] }));
        }
    }

    /// To take out millions of timeouts takes a second. No destructor and no poll waits for it, but a stop
    /// does, even without time left: it fails only if a task runs.
    #[test]
    fn rule_09_only_a_stop_waits_while_the_slots_are_emptied() {
        let lifecycle = &Lifecycle::<u32>::new();
        let (begin, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            lifecycle.command_return();
            let emptier = scope.spawn(move || {
                lifecycle.finish(|_| {
                    begin.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    vec![1, 2]
                })
            });
            has_begun.recv().unwrap();
            let (call, called) = mpsc::channel();
            scope.spawn(move || {
                let polled = lifecycle.poll_finished(&mut None, Waker::noop());
                assert!(!lifecycle.is_finished() && polled.is_none());
                assert!(lifecycle.finish(|_| panic!("emptied twice")).is_empty());
                assert!(lifecycle.command_cancel().is_empty());
                call.send(()).unwrap();
            });
            let in_time = called.recv_timeout(Duration::from_secs(10));
            let stop = scope.spawn(|| lifecycle.wait_finished(Some(Instant::now())));
            go_on.send(()).unwrap();
            assert!(in_time.is_ok(), "a call has waited for the emptying");
            assert_eq!(emptier.join().unwrap(), [1, 2], "the last handle was dropped meanwhile");
            assert_eq!(stop.join().unwrap(), Some(Vec::new()));
        });
    }
}
