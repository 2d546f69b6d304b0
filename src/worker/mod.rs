//! The worker: one thread that transfers, expires, sweeps, and sleeps until the next tick.
//!
//! The worker owns the wheel. It shares three things with other threads: the heaps (`heap/heap` and
//! `heap/slot`), the alarm that wakes it (`heap/alarm`) and the command to end (`lifecycle`). The
//! protocol of each is at the head of its file. The worker waits for no lock: if another thread has one, it
//! tries again later. It waits for a producer only if it pops from a queue (`SegQueue`) while that
//! producer's push to the same place is in progress.
//!
//! A *pass* is one turn of the loop in `Worker::run`.
//!
//! - `transfer`: moves timeouts from the pending queues into the wheel
//! - `expire`: hands due timeouts to the executor, in the order of ticks
//! - `sweep`: drops dead entries from the wheel, and empty chunks
//! - `report`: warns of refusals, of a backlog, and of timeouts that run late
//! - `sleep`: drops dead entries that would be next, and sleeps until the next live one
//! - `stop`: starts and ends the thread
//! - `control`: the state that the worker shares with the timer's handles
//! - `running`: the name of the timeout that runs
//! - `lifecycle`: the command to end, and the report of the end
//! - `lanes`: the heaps that have something for the worker, and all chunks

pub(crate) mod control;
mod expire;
mod lanes;
pub(crate) mod lifecycle;
mod report;
mod running;
mod sleep;
mod stop;
mod sweep;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod transfer;

pub(crate) use stop::run_thread;

use crate::base::logging::warning;
use crate::base::sync::{Arc, Ordering, fence};
use crate::executor::Dispatch;
use crate::heap::CatchUp;
use crate::heap::context::Context;
use crate::time::Pace;
use crate::wheel::{Agenda, Due, Exact};
use control::{Control, Ending};
use expire::Named;
use lanes::Lanes;
use lifecycle::Command;
use report::Reports;

/// The worker's state. `W` is the structure of the wheel.
pub(crate) struct Worker<W> {
    control: Arc<Control>,
    wheel: W,
    dispatch: Option<Dispatch>,
    pace: Pace,
    lanes: Lanes,
    agenda: Agenda,
    /// The timeout that the worker has named.
    named: Option<Named>,
    /// Entries of missed runs of inline tasks, which the next pass puts on the agenda.
    missed: Vec<CatchUp>,
    /// Whether the last transfer left a backlog. If so, the next one may find timeouts that are due in
    /// a tick that has already expired.
    behind: bool,
    /// The tick that was current when the backlog began. Timeouts due before it count as due in it.
    backlog_from: u64,
    /// The number of runs since the last check whether a sweep is worth its cost.
    ran: u64,
    /// Chunks are released only from this time on.
    release_from: u64,
    /// If a sweep of the wheel is in progress: the number of entries that had died when it began.
    sweeping: Option<u64>,
    /// The entry that `confirm_next` last found to be the next one.
    confirmed: Option<Due>,
    /// The deadline for which a producer last woke the worker.
    woken_for: u64,
    /// The tick in which a producer last woke the worker.
    woken_at: Option<u64>,
    /// The tick of the last pass.
    last_pass: u64,
    /// The last time that the clock returned. Clocks do not go back, so it is never in the future.
    known: u64,
    /// Whether the clock panicked in this pass.
    blind: bool,
    reports: Reports,
    ending: Ending,
}

impl<W: Exact> Worker<W> {
    pub(crate) fn new(
        control: Arc<Control>,
        mut wheel: W,
        dispatch: Option<Dispatch>,
        pace: Pace,
        ending: Ending,
    ) -> Self {
        // Tick 0 begins at the origin, and a zero delay means the next tick after that.
        let mut agenda = Agenda::default();
        agenda.pop(&mut wheel, 0);
        agenda.clear();
        Self {
            control,
            wheel,
            dispatch,
            pace,
            lanes: Lanes::default(),
            agenda,
            named: None,
            missed: Vec::new(),
            behind: false,
            backlog_from: 0,
            ran: 0,
            release_from: 0,
            sweeping: None,
            confirmed: None,
            woken_for: 0,
            woken_at: None,
            last_pass: 0,
            known: 0,
            blind: false,
            reports: Reports::default(),
            ending,
        }
    }

    /// Runs the heartbeat until a command to end.
    pub(crate) fn run(&mut self) {
        while self.control.lifecycle.command() == Command::Run {
            let request = self.request_to_catch_up();
            self.blind = false;
            let now = self.now();
            // Pairs with the fence of `Heap::announce`: this pass finds a timeout that another thread
            // announces meanwhile, or that thread reads a clock that shows at least `now`. Without this,
            // a clock that stands still after passing a deadline could cause no further pass.
            fence(Ordering::SeqCst);
            self.transfer_due(now);
            self.expire(now);
            let backlog = self.transfer_rest();
            let unswept = self.sweep();
            self.lanes.rest();
            self.report();
            let all_done = !backlog && !unswept && !self.is_catching_up();
            if all_done && self.confirm_next() {
                self.caught_up(request);
                self.sleep(request);
            }
        }
        self.report_rest();
    }

    /// The number of the clock's last request to catch up. Only a clock that moves in jumps makes
    /// requests.
    fn request_to_catch_up(&self) -> u64 {
        if self.pace == Pace::OnCall { self.control.lifecycle.requested() } else { 0 }
    }

    fn caught_up(&self, request: u64) {
        if self.pace == Pace::OnCall {
            self.control.lifecycle.caught_up(request);
        }
    }

    /// Reads the clock. Returns the last known time if the clock panics.
    fn now(&mut self) -> u64 {
        if let Some(now) = self.context().time.now_contained() {
            self.known = now;
        } else {
            self.blind = true;
            self.context().metrics.task_panicked();
            warning!("the clock panicked on the worker");
        }
        self.known
    }

    fn is_catching_up(&self) -> bool {
        !self.missed.is_empty() || self.context().is_catching_up()
    }

    fn context(&self) -> &Context {
        &self.control.context
    }
}
