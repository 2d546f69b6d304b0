//! Expire: due timeouts go to the executor, in the order of ticks.

use super::Worker;
use super::lifecycle::Command;
use crate::executor::Job;
use crate::shard::{self, CATCHING_UP_KEPT, Claim, Claimed};
use crate::timeout::{BoxedTask, Run, Timeout};
use crate::wheel::{Agenda, Due, Exact, Token};

/// The number of timeouts handed over between two reads of the clock.
const FIRED_PER_CLOCK_READ: u32 = 16;

impl<W: Exact> Worker<W> {
    /// Hands over all timeouts that are due at `now`, in the order of ticks.
    pub(super) fn expire(&mut self, now: u64) {
        let tick = self.context().scale.tick_at(now);
        self.context().metrics.skipped(tick.saturating_sub(self.last_pass + 1));
        self.last_pass = tick;

        let mut agenda = std::mem::take(&mut self.agenda);
        let (mut now, mut until_read) = (now, FIRED_PER_CLOCK_READ);
        // A burst that the last pass interrupted continues after all due timeouts.
        let burst_from = if self.context().is_catching_up() { tick } else { 0 };
        loop {
            if self.context().is_catching_up() && self.is_in(tick) {
                self.let_catch_up(&mut agenda, burst_from, tick);
            }
            let Some(due) = agenda.pop(&mut self.wheel, tick) else { break };
            // At a command to end, the remaining timeouts are still in their shards, and found
            // there.
            if self.control.lifecycle.command() != Command::Run {
                break;
            }
            match self.claim(due) {
                Claim::Dead => {}
                Claim::NotYet(deadline) => self.postpone(due.token, deadline, tick, &mut agenda),
                Claim::Due(claimed) => {
                    self.context().metrics.late_by(now.saturating_sub(claimed.deadline));
                    self.hand_over(due.token, claimed, tick);
                    until_read -= 1;
                    if until_read == 0 {
                        (now, until_read) = (self.now(), FIRED_PER_CLOCK_READ);
                    }
                }
            }
        }
        self.finish_last_run();
        agenda.clear();
        self.agenda = agenda;
    }

    /// Whether `tick` is not over yet. Once it is over, a burst yields to the other due timeouts.
    pub(super) fn is_in(&mut self, tick: u64) -> bool {
        let now = self.now();
        self.context().scale.tick_at(now) <= tick
    }

    /// Puts the records that catch up on the agenda, each in its own tick, but not before tick
    /// `from`.
    pub(super) fn let_catch_up(&mut self, agenda: &mut Agenda, from: u64, present: u64) {
        if !self.context().take_catching_up() {
            return;
        }
        let control = self.control.clone();
        let mut records = std::mem::take(&mut self.catching_up);
        for shard in &control.shards {
            shard.lock().take_catching_up(&mut records);
            for record in records.drain(..) {
                let deadline = record.deadline.max(control.context.scale.start_of(from));
                self.postpone(shard.token(&record), deadline, present, agenda);
            }
        }
        records.shrink_to(CATCHING_UP_KEPT);
        self.catching_up = records;
    }

    /// Files a timeout under its new deadline: on the agenda if that is due by the present tick, or
    /// else in the wheel. The present tick is fixed for the pass, so the pass ends.
    pub(super) fn postpone(
        &mut self,
        token: Token,
        deadline: u64,
        present: u64,
        agenda: &mut Agenda,
    ) {
        let tick = self.context().scale.tick_not_before(deadline);
        if tick <= present {
            agenda.postpone(tick, token);
        } else {
            self.wheel.insert(tick, token);
        }
    }

    /// Finishes the last inline run, claims the next timeout, and names it as running. Takes the
    /// lock only once if both are in one shard.
    #[inline]
    pub(super) fn claim(&mut self, due: Due) -> Claim<BoxedTask> {
        let (number, index) = shard::locate(due.token);
        if self.ran.is_some_and(|(ran, _)| ran != number) {
            self.finish_last_run();
        }
        let mut state = self.control.shards[number].lock();
        if let Some((_, ran)) = self.ran.take() {
            state.finish_and_unpin(ran);
        }
        let begin = self.control.context.scale.start_of(due.tick);
        let claim = state.claim(index, due.token.version, begin);
        if matches!(claim, Claim::Due(_)) {
            self.control.begin_run(due.token);
        }
        claim
    }

    /// Finishes the last inline run in its shard, if that has not happened yet.
    pub(super) fn finish_last_run(&mut self) {
        if let Some((number, index)) = self.ran.take() {
            self.control.shards[number].lock().finish_and_unpin(index);
        }
    }

    /// Runs a claimed task inline, or hands it to the executor.
    #[inline]
    pub(super) fn hand_over(&mut self, token: Token, claimed: Claimed<BoxedTask>, present: u64) {
        self.context().ended(1);
        let task = claimed.payload;
        let (number, index) = shard::locate(token);
        let Some(dispatch) = &self.dispatch else {
            return self.run_inline(task, (number, index), present);
        };
        let timeout = Timeout::pinned(self.control.shards[number].clone(), index);
        let lifecycle = &self.control.lifecycle;
        let metrics = &self.control.context.metrics;
        let job = Job::new(task, timeout);
        dispatch.hand(job, metrics, || lifecycle.command() != Command::Run);
        self.control.end_run();
    }

    /// Runs a task on the worker. Files its timeout again if it goes on.
    #[inline]
    fn run_inline(&mut self, task: BoxedTask, (number, index): (usize, u32), present: u64) {
        let Self { control, wheel, .. } = self;
        let shard = &control.shards[number];
        let mut next = None;
        let goes_on = Run::new(shard, index).of(task, |state, record, missed| {
            if missed {
                state.queue(record);
                state.catch_up(index);
            } else {
                next = Some(record);
            }
            // Under the lock: once it is released, the timeout may end, and another may use the
            // slot.
            state.unpin(index);
            control.end_run();
        });
        if !goes_on {
            // The name is cleared before the run is finished in its shard, for the same reason.
            control.end_run();
            self.ran = Some((number, index));
        } else if let Some(record) = next {
            let tick = control.context.scale.tick_not_before(record.deadline).max(present + 1);
            wheel.insert(tick, shard.token(&record));
        } else {
            control.context.catch_up();
        }
    }
}
