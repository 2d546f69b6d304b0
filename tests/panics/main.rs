//! Every place in which the library calls code of its user, and what a panic there does: it ends
//! where it began. Other timeouts run on, `stop` returns, and the counts are right (rule 5).
//!
//! | code of the user | runs on | a panic is | shown by |
//! |---|---|---|---|
//! | task: `run` | worker, executor | caught, counted | `rule_05_a_panic_in_a_run_is_contained` |
//! | task: `cancelled` | whoever cancels; the worker, after the last handle | caught, counted | `rule_05_a_panic_in_a_cancel_callback_is_contained` |
//! | task: drop of its captures, after its run | worker, executor | caught, counted | `rule_05_a_panic_in_the_drop_of_captures_after_a_run_is_contained` |
//! | task: drop, when it is cancelled | as `cancelled` | caught, counted | `rule_05_a_panic_in_the_drop_of_a_cancelled_task_is_contained` |
//! | task: drop, when an executor abandons its job | executor | caught, counted | `rule_05_a_panic_in_the_drop_of_an_abandoned_task_is_contained` |
//! | task: drop, when its timeout does not go on | worker, executor | caught, counted | `rule_05_a_panic_in_the_drop_of_a_task_cancelled_during_its_run_is_contained` |
//! | task: drop, when it is refused or returned | the caller, who has it | the caller's | `rule_05_a_panic_in_the_drop_of_a_task_given_back_is_the_callers` |
//! | payload of a panic: drop | where it is caught | caught | `rule_05_a_panic_in_the_drop_of_a_panic_payload_is_contained` |
//! | executor: `execute` | worker | caught, counted; the job is abandoned | `rule_05_a_panic_in_an_executor_is_contained` |
//! | callback for refused jobs | worker | as `execute` | `rule_05_a_panic_in_the_callback_for_refused_jobs_is_contained` |
//! | executor, callback for refused jobs: drop | worker, at its end | caught | `rule_05_panics_in_the_drops_of_an_executor_and_its_callback_are_contained` |
//! | clock: `now` | worker | caught, counted; the last time known counts | `rule_05_a_clock_that_panics_on_the_worker_stands_still_until_it_recovers*` |
//! | clock: `now` | a caller | the caller's, before anything is changed | `rule_05_a_panic_of_the_clock_on_a_caller_changes_nothing` |
//! | clock: `now` | an idle check | caught, counted; the check comes again | `rule_05_an_idle_check_whose_clock_panics_is_replaced*` |
//! | clock: `attach` | whoever builds | the caller's; no follower waits | `rule_05_a_panic_while_a_clock_is_attached_blocks_no_follower` |
//! | clock: drop | whoever has it last | caught | `rule_05_a_panic_in_the_drop_of_a_clock_is_contained` |
//! | idle callback | worker, executor | caught, counted by the manager | `rule_05_a_panic_in_an_idle_callback_is_contained` |
//! | watched connection: drop | worker, executor | caught | `rule_05_a_panic_in_the_drop_of_a_watched_connection_is_contained` |
//! | watched connection: drop, with its handle | whoever drops the handle | the caller's | `rule_05_a_panic_in_the_drop_of_a_watched_connection_is_contained` |
//! | waker: `wake` | worker; whoever resets a future, or stops the timer | caught, counted | `tests/future/sleep.rs`, `stop.rs` |
//! | waker: drop | whoever polls or drops a future | caught, counted | `tests/future/sleep.rs` |
//! | waker: clone | whoever polls a future | the caller's, before anything is changed | `tests/future/sleep.rs` |
//! | logger | any of them | caught | `tests/logger.rs` |
//!
//! No library can contain three panics, because the language aborts the process: one in a drop while
//! another panic unwinds through the value, one in the panic hook, and one in the drop of a
//! thread-local.

mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod executors;
mod idle;
mod tasks;

use common::{Record, TICK, assert_conserved};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wheelwork::{Clock, HashedWheelTimer, ManualClock, Next, Run, Timeout, TimerTask};

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

/// After a panic: the timer takes timeouts, runs them, stops, and has lost count of nothing.
#[track_caller]
fn assert_unhurt(timer: &HashedWheelTimer, clock: &ManualClock) {
    let ran = Record::new();
    timer.new_timeout(ran.note(()), TICK).unwrap();
    timer.new_timeout(|| (), Duration::MAX).unwrap();
    clock.advance(TICK * 2);
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

/// The system's clock, which panics while it is told to, on one thread.
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
