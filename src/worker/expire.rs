//! Expire: claims due timeouts in the order of ticks, and hands their tasks to the executor. The worker itself runs the
//! tasks of a timer without an executor, and always wake-ups and the watchdog's checks, so that a busy executor delays
//! none of these.
//!
//! A claim decides what a token of the tick is now: a timeout that is due, one that was pushed back, which is filed
//! again, or nothing, because the timeout has ended. The slots of ended timeouts are collected, and given back chunk
//! by chunk.
//!
//! Once the timer is closed, nothing more is claimed: its end finds the remaining timeouts in their slots.
//!
//! During a pass, a timeout can be announced that is due now, such as a missed run of a series. It runs in the same
//! pass, because after each tick the worker takes in what was announced (`due_turn` in `intake/shared`). Once the
//! clock is beyond the last tick of the pass, the timeout waits for the next pass, so that a series whose runs are
//! late does not delay others.

use super::Worker;
use crate::executor::Job;
use crate::intake::{Claim, Claimed, DEAD_PER_CHECK, Runner, locate};
use crate::timeout::{Erased, Shared, run_on_worker};
use crate::wheel::{Exact, Token};

/// The number of timeouts handed over between two reads of the clock.
const FIRED_PER_CLOCK_READ: u32 = 64;

impl<W: Exact> Worker<W> {
    /// Hands over all timeouts that are due at `now`, in the order of ticks.
    pub(super) fn expire(&mut self, now: u64) {
        let tick = self.gate().scale.tick_at(now);
        let skipped = tick.saturating_sub(self.last_pass + 1);
        self.shared().counts.worker.ticks_skipped.add(skipped);
        self.last_pass = tick;

        let (mut now, mut until_read) = (now, FIRED_PER_CLOCK_READ);
        while let Some(token) = self.next_due(tick) {
            if self.gate().is_closed() {
                break;
            }
            match self.claim(token) {
                Claim::Dead => {}
                Claim::NotYet { deadline, filed } => self.file_later(token, deadline, filed),
                Claim::Due((claimed, runner)) => {
                    self.hand_over(claimed, runner, now);
                    self.tidy.ran += 1;
                    until_read -= 1;
                    if until_read == 0 {
                        (now, until_read) = (self.now(), FIRED_PER_CLOCK_READ);
                    }
                }
            }
        }
        self.gate().set_next_tick(self.filing.current_tick());
        self.control.running.end();
        self.freed.give_back();
        self.due.clear();
        if self.tidy.ran >= DEAD_PER_CHECK {
            // Fewer timeouts are pending now, so the dead entries may outnumber them.
            self.tidy.ran = 0;
            self.consider_sweep();
        }
    }

    /// Files the token of a timeout that was pushed back. If the timeout is not Filed, files its chunk.
    fn file_later(&mut self, token: Token, deadline: u64, filed: bool) {
        let token =
            if filed { Some(token) } else { self.chunks.promise_look(locate(token).0, deadline) };
        if let Some(token) = token {
            let later = self.gate().scale.tick_not_before(deadline);
            self.filing.insert_in_pass(later, token, self.last_pass);
        }
    }

    /// Claims a timeout.
    #[inline(always)] // the claim stays in registers
    pub(super) fn claim(&self, token: Token) -> Claim<(Claimed<Erased>, Runner<Erased>)> {
        let Self { control, chunks, due, .. } = self;
        let Some((chunk, offset)) = chunks.chunk(token) else {
            return Claim::Dead;
        };
        let claim = chunk.claim(offset, token.version, due.start);
        if matches!(claim, Claim::Due(_)) {
            let Shared { gate, counts, .. } = &**control.shared;
            if chunk.internal {
                counts.internals.expired.add_shared(1);
            } else {
                gate.release_permits(1); // first, so whoever sees it ended also sees the freed permit
                counts.by_worker.expired.add(1);
            }
        }
        claim
    }

    /// Hands the claimed task to the executor, or runs it inline if there is no executor. Files its timeout
    /// again if it goes on. A task that only wakes a waker always runs inline, so that an executor that
    /// is busy or refuses it does not delay the wake-up.
    #[inline]
    fn hand_over(&mut self, claimed: Claimed<Erased>, mut runner: Runner<Erased>, now: u64) {
        let Claimed { payload: task, deadline, .. } = claimed;
        let Self { control, warnings, freed, dispatch, .. } = self;
        control.running.begin(task.calls(), now);
        if !runner.pin().chunk().internal {
            let late = now.saturating_sub(deadline);
            control.shared.counts.worker.lateness.record(late);
            warnings.late_by(late);
        }
        let goes_on = if let Some(dispatch) = dispatch.as_mut().filter(|_| !task.only_wakes()) {
            let job = Job::new(task, runner.hand_over());
            let stopping = || control.shared.gate.is_closed();
            dispatch.hand(job, &control.shared.counts.worker, stopping);
            None
        } else {
            run_on_worker(&mut runner, task)
        };
        runner.finish_and_unpin().into_iter().for_each(|slot| freed.add(slot));
        if let Some((deadline, token)) = goes_on {
            // The deadline is not before the floor, so its tick comes after the pass.
            self.filing.insert(self.gate().scale.tick_not_before(deadline), token);
        }
    }
}
