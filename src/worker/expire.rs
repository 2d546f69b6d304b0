//! Expire: what is due goes to the executor, in the order of ticks.

use super::Worker;
use super::lifecycle::Order;
use crate::executor::Job;
use crate::shard::{self, Claim, Claimed, State};
use crate::timeout::{Task, Timeout};
use crate::wheel::{Agenda, Due, Exact, Token};

/// Timeouts handed over between two reads of the clock.
const FIRED_PER_CLOCK_READ: u32 = 16;

impl<W: Exact> Worker<W> {
    /// Hands over all that is due at `now`, in the order of ticks.
    pub(super) fn expire(&mut self, now: u64) {
        let tick = self.shared().scale.tick_at(now);
        self.shared().metrics.skipped(tick.saturating_sub(self.last_pass + 1));
        self.last_pass = tick;

        let mut agenda = std::mem::take(&mut self.agenda);
        let (mut now, mut until_read) = (now, FIRED_PER_CLOCK_READ);
        // A burst that the last pass has broken off comes after all that is due.
        let burst_from = if self.shared().is_urgent() { tick } else { 0 };
        loop {
            if self.shared().is_urgent() && self.is_in(tick) && self.shared().take_urgent() {
                self.put_urgent_on(&mut agenda, burst_from, tick);
            }
            let Some(due) = agenda.pop(&mut self.wheel, tick) else { break };
            // What is left when an order comes is still in its shard, and is found there.
            if self.station.lifecycle.order() != Order::Run {
                break;
            }
            match self.claim(due) {
                Claim::Stale => {}
                Claim::NotYet(deadline) => self.postpone(due.token, deadline, tick, &mut agenda),
                Claim::Due(claimed) => {
                    self.shared().metrics.late_by(now.saturating_sub(claimed.deadline));
                    self.hand_over(due.token, claimed);
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

    /// Whether this is the present tick: if it is over, a burst yields to what is due by now.
    pub(super) fn is_in(&mut self, tick: u64) -> bool {
        let now = self.now();
        self.shared().scale.tick_at(now) <= tick
    }

    /// Puts what has armed itself again for a time that has passed on the agenda, not before tick
    /// `from`.
    pub(super) fn put_urgent_on(&mut self, agenda: &mut Agenda, from: u64, present: u64) {
        let station = self.station.clone();
        for home in &station.shards {
            let urgent = home.shard.lock().take_urgent();
            for record in &urgent {
                let deadline = record.deadline.max(station.shared.scale.start_of(from));
                self.postpone(home.shard.token(record), deadline, present, agenda);
            }
        }
    }

    /// Files a timeout under its new deadline, which may be due in this very pass, after others. If
    /// not, it is left to a later pass, so that a pass comes to an end.
    pub(super) fn postpone(
        &mut self,
        token: Token,
        deadline: u64,
        present: u64,
        agenda: &mut Agenda,
    ) {
        let tick = self.shared().scale.tick_not_before(deadline);
        if tick <= present {
            agenda.postpone(tick, token);
        } else {
            self.wheel.insert(tick, token);
        }
    }

    /// Finishes the last inline run, and claims and names the next timeout: one hold of the lock for
    /// all, if they are of one shard.
    pub(super) fn claim(&mut self, due: Due) -> Claim<Task> {
        let (number, index) = shard::locate(due.token);
        if self.ran.is_some_and(|ran| ran != number) {
            self.finish_last_run();
        }
        let mut state = self.station.shards[number].shard.lock();
        if self.ran.take().is_some() {
            self.finish(number, &mut state);
        }
        let now = self.station.shared.scale.start_of(due.tick);
        let claim = state.claim(index, due.token.version, now);
        if matches!(claim, Claim::Due(_)) {
            self.station.begin_run(due.token, self.dispatch.is_none());
        }
        claim
    }

    pub(super) fn finish_last_run(&mut self) {
        if let Some(number) = self.ran.take() {
            let mut state = self.station.shards[number].shard.lock();
            self.finish(number, &mut state);
        }
    }

    pub(super) fn finish(&self, number: usize, state: &mut State<Task>) {
        self.handles[number].finish(state);
    }

    pub(super) fn hand_over(&mut self, token: Token, claimed: Claimed<Task>) {
        self.shared().ended(1);
        let Claimed { payload: task, run, .. } = claimed;
        let (number, index) = shard::locate(token);
        match &self.dispatch {
            None => {
                let handle = &mut self.handles[number];
                handle.move_to(index, run);
                handle.run(task);
                self.ran = Some(number);
            }
            Some(dispatch) => {
                let timeout = Timeout::for_run(self.station.shards[number].clone(), index, run);
                let lifecycle = &self.station.lifecycle;
                let metrics = &self.station.shared.metrics;
                dispatch.hand(Job::new(task, timeout), metrics, || lifecycle.order() != Order::Run);
            }
        }
        // Before the run ends in its shard: then the slot may be another timeout's.
        self.station.end_run();
    }
}
