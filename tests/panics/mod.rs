//! Panics in the user's code, at every place where the library calls it. The library contains them: other
//! timeouts run on, `stop` returns, and the counts stay right.
//!
//! | code of the user | runs on | a panic is | tested in |
//! |---|---|---|---|
//! | task: `run` | worker, executor | caught, counted | `tasks.rs` |
//! | task: `cancelled` | whoever cancels; the worker, after the last handle | caught, counted | `tasks.rs` |
//! | task: drop of its captures, after its run | worker, executor | caught, counted | `tasks.rs` |
//! | task: drop, when it is cancelled | as `cancelled` | caught, counted | `tasks.rs` |
//! | task: drop, when an executor abandons its job | executor | caught, counted | `tasks.rs` |
//! | task: drop, when its timeout does not go on | worker, executor | caught, counted | `tasks.rs` |
//! | task: drop, when it is refused or returned | the caller, who has it | the caller's | `tasks.rs` |
//! | payload of a panic: drop | where it is caught | caught | `tasks.rs` |
//! | executor: `execute` | worker | caught, counted; the job is abandoned | `executors.rs` |
//! | callback for refused jobs | worker | as `execute` | `executors.rs` |
//! | executor, callback for refused jobs: drop | worker, at its end | caught | `executors.rs` |
//! | clock: `now` | worker | caught, counted; the last time known counts | `clocks.rs` |
//! | clock: `now`, at the end of a run | worker, executor | caught, counted; the timeout goes on | `clocks.rs` |
//! | clock: `now`, by a task | worker, executor | the task's | `clocks.rs` |
//! | clock: `now`, after a reset of a future | a caller | caught; its task is woken | `clocks.rs` |
//! | clock: `now`, as a stream with a limit yields an item | a caller | caught; the next item has no limit | `clocks.rs` |
//! | clock: `now` | a caller | the caller's, before anything is changed | `clocks.rs`, `idle.rs` |
//! | clock: `now`, as a pause's guard or an idle stream is dropped | a caller | caught; the pause goes on | `idle.rs` |
//! | clock: `now` | an idle check | caught, counted; the check comes again | `idle.rs` |
//! | clock: `attach` | whoever builds | the caller's; no follower waits | `clocks.rs` |
//! | clock: drop | whoever has it last | caught | `clocks.rs` |
//! | idle callback | worker, executor | caught, counted by the manager | `idle.rs` |
//! | watched connection: drop | worker, executor | caught | `idle.rs` |
//! | watched connection: drop, with its handle | whoever drops the handle | the caller's | `idle.rs` |
//! | waker: `wake` | worker; whoever resets a future, or stops the timer | caught, counted | `tests/future/sleep.rs`, `stop.rs` |
//! | waker: drop | whoever polls or drops a future | caught, counted | `tests/future/sleep.rs` |
//! | waker: clone | whoever polls a future | the caller's, before anything is changed | `tests/future/sleep.rs` |
//! | waker of an idle stream: `wake` | worker, executor | caught, counted by the manager | `tests/idle_stream/halves.rs` |
//! | waker of an idle stream: drop | whoever polls or drops the stream | caught | `tests/idle_stream/halves.rs` |
//! | logger | any of them | caught | `tests/logger.rs` |
//!
//! No library can contain three panics, because the language aborts the process: one in a drop while
//! another panic unwinds through the value, one in the panic hook, and one in the drop of a
//! thread-local.

mod clocks;
mod executors;
mod idle;
mod tasks;

use crate::common::{Record, TICK, assert_conserved};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::time::Clock;
use wheelwork::{HashedWheelTimer, ManualClock, Timeout};

/// Panics when it is dropped, unless it is disarmed.
struct Bomb(bool);

impl Bomb {
    fn armed() -> Self {
        Self(true)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0, "a bad drop");
    }
}

/// Asserts that the timer still takes timeouts, runs them and stops, and that its counts add up.
#[track_caller]
fn assert_unhurt(timer: &HashedWheelTimer, clock: &ManualClock) {
    let ran = Record::new();
    timer.new_timeout(ran.note(()), TICK).unwrap();
    timer.new_timeout(|| (), Duration::MAX).unwrap();
    clock.advance_in_one_jump(TICK * 2);
    assert_eq!(ran.len(), 1, "others run on");
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(timer);
}

struct BadCancel(Record<&'static str>);

impl TimerTask for BadCancel {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.push("told");
        panic!("a bad cancelled callback");
    }
}

fn with_a_bomb() -> impl FnOnce() + Send + 'static {
    let bomb = Bomb::armed();
    move || drop(bomb)
}

/// The system's clock, which panics on one thread while `bad` is set.
#[derive(Clone)]
struct BadClock {
    on: &'static str,
    bad: Arc<AtomicBool>,
    panics: Arc<AtomicUsize>,
}

impl BadClock {
    fn on_the_worker() -> Self {
        Self { on: WORKER, bad: Arc::default(), panics: Arc::default() }
    }

    fn panics(&self) -> usize {
        self.panics.load(SeqCst)
    }
}

const WORKER: &str = "panics-worker";

impl Clock for BadClock {
    fn now(&self) -> Instant {
        if self.bad.load(SeqCst) && std::thread::current().name() == Some(self.on) {
            self.panics.fetch_add(1, SeqCst);
            panic!("a bad clock");
        }
        Instant::now()
    }
}
