//! Transfer: timeouts move from the pending queues into the wheel.
//!
//! A *pass* is one turn of the worker's loop. It takes what is new from each heap in which something
//! may be due, and files what is due. After these have expired, it files the others: what is due comes
//! first. It leaves a *backlog* if it reaches a cap. The worker does not sleep then.

use super::Worker;
use super::lanes::Lane;
use super::lifecycle::Command;
use crate::wheel::Exact;

/// The drain cap: the most live timeouts that one pass moves into the wheel, as in Netty. A pass takes
/// whole chunks, and ends with the one that reaches the cap.
pub(super) const DRAIN_CAP: usize = 100_000;

/// What one pass takes out of each heap at least, so that many heaps do not take one slot at a time.
const SHARE_AT_LEAST: usize = 1 << 9;

/// The number of timeouts filed between two checks for a command to end.
pub(super) const FILED_PER_CHECK: usize = 1 << 12;

impl<W: Exact> Worker<W> {
    /// Files what is due. If time has jumped over a tick, the queues may have earlier ticks than the
    /// wheel. Then no cap applies, so that all of it expires in order.
    pub(super) fn transfer_due(&mut self, now: u64) {
        let tick = self.context().scale.tick_at(now);
        if !self.behind {
            self.backlog_from = self.wheel.current_tick();
        }
        // If this tick has expired, what is due counts as due in the next one, as others do. But what
        // a backlog has left expires at once.
        let expires = self.behind || self.wheel.current_tick() <= tick;
        let jumped = !self.behind && tick > self.last_pass + 1;
        self.transfer(tick, expires, jumped);
    }

    /// Takes what is new from all heaps in which something may be due in `tick`, and files what is due
    /// if it `expires` in this pass.
    pub(super) fn transfer(&mut self, tick: u64, expires: bool, without_cap: bool) {
        self.lanes.discover(&self.control.registry);
        let by = self.context().scale.start_of(tick);
        self.behind = self.scan(by, expires, without_cap);
        if expires {
            self.behind |= self.file_due(if without_cap { usize::MAX } else { DRAIN_CAP });
        }
    }

    /// Takes what is new from all heaps in which something may be due at time `by`. True if chunks
    /// are left.
    fn scan(&mut self, by: u64, expires: bool, without_cap: bool) -> bool {
        let lanes = &mut self.lanes;
        let wanting = lanes.all.iter().filter(|lane| lane.heap.scan_by() <= by).count();
        let share = (DRAIN_CAP / wanting.max(1)).max(SHARE_AT_LEAST);
        let mut capped = false;
        for number in 0..lanes.all.len() {
            capped |= lanes.scan(number, by, expires, share, without_cap);
        }
        lanes.discover(&self.control.registry); // what was taken may be in chunks that are new
        capped
    }

    /// Files at most `most` timeouts that expire in this pass. True if some are left.
    fn file_due(&mut self, most: usize) -> bool {
        let Self { control, lanes, wheel, agenda, backlog_from, .. } = self;
        let scale = control.context.scale;
        let (mut room, mut filed) = (most, 0);
        let count = lanes.all.len();
        let first = lanes.first;
        for number in (first..count).chain(0..first) {
            let done = lanes.file_due(number, room, |deadline, token| {
                filed += 1;
                let tick = scale.tick_not_before(deadline).max(*backlog_from);
                if tick < wheel.current_tick() {
                    agenda.postpone(tick, token);
                } else {
                    wheel.insert(tick, token);
                }
                // What is not filed yet is in its slot, and found there at a command to end.
                filed % FILED_PER_CHECK > 0 || control.lifecycle.command() == Command::Run
            });
            control.context.filed(lanes.all[number].heap.internal, done);
            room -= done;
            if room == 0 {
                lanes.first = (number + 1) % count;
                break;
            }
        }
        room == 0 && lanes.all.iter().any(Lane::has_due)
    }

    /// Files what is not due. True if a backlog is left.
    pub(super) fn transfer_rest(&mut self) -> bool {
        for number in 0..self.lanes.all.len() {
            // After a jump it may be much.
            let goes_on = self.control.lifecycle.command() == Command::Run;
            if goes_on && self.lanes.all[number].has_rest() {
                self.file_rest(number);
            }
        }
        if self.behind {
            self.context().metrics.backlog_left();
        }
        self.behind
    }

    fn file_rest(&mut self, number: usize) {
        let Self { control, lanes, wheel, .. } = self;
        let scale = control.context.scale;
        let filed = lanes.file_rest(number, |deadline, token| {
            wheel.insert(scale.tick_not_before(deadline), token);
        });
        control.context.filed(lanes.all[number].heap.internal, filed);
    }
}
