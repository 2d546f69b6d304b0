//! Expire: hands due timeouts, and missed runs that catch up, to the executor, in the order of ticks.

use super::Worker;
use super::lifecycle::Command;
use crate::executor::Job;
use crate::heap::{CatchUp, Claim, Claimed};
use crate::timeout::{Erased, GoesOn, Place, Run, Timeout};
use crate::wheel::{Agenda, Due, Exact, Token};

/// The number of missed runs for which the worker keeps memory.
const MISSED_KEPT: usize = 1 << 10;

/// The number of timeouts handed over between two reads of the clock.
const FIRED_PER_CLOCK_READ: u32 = 16;

/// How many timeouts before its claim a slot is prefetched.
const PREFETCHED_AHEAD: usize = 16;

/// The timeout that the worker has named (see `running`).
pub(super) struct Named {
    token: Token,
    last: LastUse,
}

/// The last step for the slot of a named timeout, after its name is cleared.
enum LastUse {
    /// Nothing: the timeout was not claimed.
    None,
    /// Removes the worker's pin. The timeout goes on, or the executor has it.
    Unpin,
    /// Finishes the run.
    Finish,
}

impl<W: Exact> Worker<W> {
    /// Hands over all timeouts that are due at `now`, in the order of ticks.
    pub(super) fn expire(&mut self, now: u64) {
        let tick = self.context().scale.tick_at(now);
        self.context().metrics.skipped(tick.saturating_sub(self.last_pass + 1));
        self.last_pass = tick;

        let mut agenda = std::mem::take(&mut self.agenda);
        let (mut now, mut until_read, mut ran) = (now, FIRED_PER_CLOCK_READ, false);
        // A burst that the last pass interrupted continues after all due timeouts.
        let burst_from = if self.is_catching_up() { tick } else { 0 };
        loop {
            if self.is_catching_up() && self.is_in(tick) {
                self.let_catch_up(&mut agenda, burst_from, tick);
            }
            if let Some(token) = agenda.ahead(PREFETCHED_AHEAD) {
                self.lanes.prefetch(token);
            }
            let Some(due) = agenda.pop(&mut self.wheel, tick) else { break };
            // At a command to end, the end finds the remaining timeouts in their slots.
            if self.control.lifecycle.command() != Command::Run {
                break;
            }
            match self.claim(due) {
                Claim::Dead => self.end_naming(),
                Claim::NotYet(deadline) => {
                    self.end_naming();
                    self.postpone(due.token, deadline, tick, &mut agenda);
                }
                Claim::Due(claimed) => {
                    self.hand_over(due.token, claimed, now, tick);
                    ran = true;
                    until_read -= 1;
                    if until_read == 0 {
                        (now, until_read) = (self.now(), FIRED_PER_CLOCK_READ);
                    }
                }
            }
        }
        self.end_naming();
        self.lanes.give_back();
        if ran {
            // Fewer timeouts are pending now, so the dead entries may outnumber them.
            self.context().consider_sweep(self.lanes.tallies(self.context()));
        }
        agenda.clear();
        self.agenda = agenda;
    }

    /// Whether `tick` is not over yet. Once it is over, a burst yields to the other due timeouts.
    pub(super) fn is_in(&mut self, tick: u64) -> bool {
        let now = self.now();
        self.context().scale.tick_at(now) <= tick
    }

    /// Puts the entries that catch up on the agenda, each in its own tick, but not before tick
    /// `from`. Takes only the entries that are queued when it begins, so it always ends.
    pub(super) fn let_catch_up(&mut self, agenda: &mut Agenda, from: u64, present: u64) {
        let control = self.control.clone();
        let begin = control.context.scale.start_of(from);
        let mut entries = std::mem::take(&mut self.missed);
        let waiting = control.context.catching_up();
        self.lanes.discover(&control.registry);
        entries.extend((0..waiting).map_while(|_| control.context.next_catching_up()));
        for CatchUp { token, deadline } in entries.drain(..) {
            self.postpone(token, deadline.max(begin), present, agenda);
        }
        entries.shrink_to(MISSED_KEPT);
        self.missed = entries;
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

    /// Claims a timeout. Before the claim, names it in place of the timeout that ran last.
    #[inline]
    pub(super) fn claim(&mut self, due: Due) -> Claim<Erased> {
        let Due { tick, token } = due;
        let Self { control, lanes, named, .. } = self;
        let Some((chunk, offset)) = lanes.chunk(token) else {
            control.context.metrics.found_dead();
            return Claim::Dead;
        };
        let mut before = None;
        let claim = chunk.slot(offset).claim_if(
            token.version,
            control.context.scale.start_of(tick),
            || {
                before = named.take();
                let may = control.running.begin(before.is_some(), token.index);
                *named = may.then_some(Named { token, last: LastUse::None });
                may
            },
        );
        match &claim {
            Claim::Due(claimed) => control.context.claimed(chunk.internal, claimed.filed),
            Claim::Dead => control.context.metrics.found_dead(),
            Claim::NotYet(_) => {}
        }
        if let Some(before) = before {
            control.running.let_go(matches!(claim, Claim::Due(_)));
            self.finish(before);
        }
        claim
    }

    /// Clears the name, if there is one.
    #[inline]
    pub(super) fn end_naming(&mut self) {
        if let Some(named) = self.named.take() {
            self.control.running.end();
            self.finish(named);
        }
    }

    /// Finishes a run whose timeout is not named any more.
    #[inline]
    fn finish(&mut self, Named { token, last }: Named) {
        let free = match (last, self.lanes.slot(token)) {
            (LastUse::Finish, Some(slot)) => slot.finish_and_unpin(),
            (LastUse::Unpin, Some(slot)) => slot.unpin(1),
            _ => false,
        };
        if free {
            self.lanes.freed(token);
        }
    }

    /// Sets the last step for the slot of the named timeout.
    #[inline]
    fn leave(&mut self, last: LastUse) {
        if let Some(named) = &mut self.named {
            named.last = last;
        }
    }

    /// Hands a claimed task to the executor, or runs it inline if there is no executor. Files its timeout
    /// again if it goes on. A task that only wakes a waker always runs inline, so that an executor that
    /// is busy or refuses it does not delay the wake-up.
    #[inline]
    fn hand_over(&mut self, token: Token, claimed: Claimed<Erased>, now: u64, present: u64) {
        let Claimed { payload: task, deadline, .. } = claimed;
        let Some((chunk, offset)) = self.lanes.chunk(token) else { return };
        if !chunk.internal {
            let late = now.saturating_sub(deadline);
            self.context().metrics.late_by(late);
            self.reports.late_by(late);
            self.context().ended(1);
        }
        if self.dispatch.is_some() && !task.only_wakes() {
            return self.hand_to_executor(token, task);
        }
        match Run::new(Place { chunk, offset }).on_worker(task) {
            None => self.leave(LastUse::Finish),
            Some(goes_on) => {
                self.leave(LastUse::Unpin);
                self.file_again(goes_on, present);
            }
        }
    }

    fn hand_to_executor(&mut self, token: Token, task: Erased) {
        let Self { control, lanes, dispatch, .. } = self;
        let (Some(dispatch), Some((chunk, offset))) = (dispatch, lanes.chunk(token)) else {
            return;
        };
        let slot = chunk.slot(offset);
        slot.pin(); // the worker's pin while the timeout is named
        let job = Job::new(task, Timeout::pinned(Place { chunk, offset }));
        let stopping = || control.lifecycle.command() != Command::Run;
        dispatch.hand(job, &control.context.metrics, stopping);
        self.leave(LastUse::Unpin);
    }

    /// Files the entry of a timeout that goes on.
    #[cold]
    fn file_again(&mut self, goes_on: GoesOn, present: u64) {
        let GoesOn { entry, missed } = goes_on;
        if missed {
            self.missed.push(entry);
        } else {
            let tick = self.context().scale.tick_not_before(entry.deadline).max(present + 1);
            self.wheel.insert(tick, entry.token);
        }
    }
}
