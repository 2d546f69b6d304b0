//! The worker: one thread that waits for a tick, transfers, expires, reclaims.
//!
//! It owns the wheel. What other threads share with it is the shards (`inbox`), the alarm that
//! wakes it (`alarm`) and the order to end (`lifecycle`); each has its protocol at its head.

pub(crate) mod control;
mod expire;
pub(crate) mod lifecycle;
mod lookup;
mod sleep;
mod stop;
mod sweep;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod transfer;

pub(crate) use stop::live;

use crate::base::logging::warning;
use crate::base::sync::Arc;
use crate::executor::Dispatch;
use crate::shard::context::Context;
use crate::shard::{Drain, Record};
use crate::time::Pace;
use crate::wheel::{Agenda, Due, Exact};
use control::{Control, Ending};
use lifecycle::Command;

/// `W` is the structure of the wheel.
pub(crate) struct Worker<W> {
    control: Arc<Control>,
    wheel: W,
    dispatch: Option<Dispatch>,
    pace: Pace,
    /// The shard and the slot of an inline run that is over and not yet finished in its shard.
    ran: Option<(usize, u32)>,
    agenda: Agenda,
    /// Records on their way to the agenda.
    catching_up: Vec<Record>,
    /// What is being transferred.
    drain: Drain,
    /// The shard that the next transfer begins with.
    first_shard: usize,
    /// The last transfer has left a backlog, so the next may find what is due in a tick that has
    /// been expired already.
    behind: bool,
    /// The tick that was current when the backlog began: what is older counts as of this tick.
    backlog_from: u64,
    /// A walk over the wheel for dead entries is under way.
    sweeping: bool,
    /// The entry that the last look ahead has found to be next.
    confirmed: Option<Due>,
    /// The deadline that a producer last woke the worker for.
    woken_for: u64,
    /// The tick in which a producer last woke the worker.
    woken_at: Option<u64>,
    last_pass: u64,
    /// The last time that the clock has told. Clocks do not go back, so it is never too late.
    known: u64,
    /// The clock has panicked in this pass.
    blind: bool,
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
            ran: None,
            agenda,
            catching_up: Vec::new(),
            drain: Drain::default(),
            first_shard: 0,
            behind: false,
            backlog_from: 0,
            sweeping: false,
            confirmed: None,
            woken_for: 0,
            woken_at: None,
            last_pass: 0,
            known: 0,
            blind: false,
            ending,
        }
    }

    /// The heartbeat, until an order to end.
    pub(crate) fn run(&mut self) {
        while self.control.lifecycle.command() == Command::Run {
            let request = self.request_to_catch_up();
            self.blind = false;
            let now = self.now();
            let backlog = self.transfer_in_order(now);
            self.expire(now);
            let unswept = self.sweep();
            let all_done = !backlog && !unswept && !self.context().is_catching_up();
            if all_done && self.confirm_next() {
                self.caught_up(request);
                self.sleep(request);
            }
        }
    }

    /// Only a clock that moves in jumps makes requests.
    fn request_to_catch_up(&self) -> u64 {
        if self.pace == Pace::OnCall { self.control.lifecycle.requested() } else { 0 }
    }

    fn caught_up(&self, request: u64) {
        if self.pace == Pace::OnCall {
            self.control.lifecycle.caught_up(request);
        }
    }

    /// The present; the last time that is known if the clock panics.
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

    fn context(&self) -> &Context {
        &self.control.context
    }
}
