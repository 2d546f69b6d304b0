//! Transfer: timeouts move from the pending queues into the wheel.
//!
//! To *file* a timeout is to insert its entry into the wheel. Each pass of the worker scans the heaps in
//! which a timeout may be due, and takes a share of each heap's new timeouts, the oldest first (see
//! `heap/heap`). Of these it files the due timeouts, expires them, and then files the others. If it
//! reaches the drain cap, it leaves a *backlog*, and the next pass follows without a sleep.

use super::Worker;
use super::lanes::Lane;
use super::lifecycle::Command;
use crate::wheel::Exact;

/// The drain cap: the most pending timeouts that one pass moves into the wheel, like Netty's. A pass
/// takes whole chunks, so it may take up to 61 timeouts more from each heap, and those of these chunks that
/// were pulled forward.
pub(super) const DRAIN_CAP: usize = 100_000;

/// The least share of a heap in the drain cap, so that a pass over many heaps does not take one slot
/// from each. The heaps for which no room is left come first in the next pass.
const SHARE_AT_LEAST: usize = 1 << 9;

/// The number of timeouts filed between two checks for a command to end.
pub(super) const FILED_PER_CHECK: usize = 1 << 12;

impl<W: Exact> Worker<W> {
    /// Files the due timeouts. If time has jumped over a tick, the queues may have earlier ticks than
    /// the wheel. Then no cap applies, so that all due timeouts expire in order.
    pub(super) fn transfer_due(&mut self, now: u64) {
        let tick = self.context().scale.tick_at(now);
        if !self.behind {
            self.backlog_from = self.wheel.current_tick();
        }
        // If this tick has already expired, timeouts that are due now expire in the next tick. A backlog
        // is the exception: it expires in this pass.
        let expires = self.behind || self.wheel.current_tick() <= tick;
        let jumped = !self.behind && tick > self.last_pass + 1;
        self.transfer(tick, expires, jumped);
    }

    /// Scans all heaps in which a timeout may be due in `tick`. If due timeouts can expire in this pass
    /// (`expires`), files them.
    pub(super) fn transfer(&mut self, tick: u64, expires: bool, without_cap: bool) {
        self.lanes.discover(&self.control.registry);
        let by = self.context().scale.start_of(tick);
        self.behind = self.scan(by, expires, without_cap);
        if expires {
            self.behind |= self.file_due(if without_cap { usize::MAX } else { DRAIN_CAP });
        }
    }

    /// Scans all heaps in which a timeout may be due at time `by`. Returns true if chunks are left.
    fn scan(&mut self, by: u64, expires: bool, without_cap: bool) -> bool {
        let lanes = &mut self.lanes;
        let wanting = lanes.all.iter().filter(|lane| lane.heap.scan_by() <= by).count();
        let share = (DRAIN_CAP / wanting.max(1)).max(SHARE_AT_LEAST);
        let (mut room, mut capped) = (DRAIN_CAP, false);
        let (first, count) = (lanes.first, lanes.all.len());
        for number in (first..count).chain(0..first) {
            let most = share.min(room);
            let (taken, left) = lanes.scan(number, by, expires, most, without_cap);
            capped |= left;
            if taken >= room && room > 0 {
                lanes.first = (number + 1) % count;
            }
            room = room.saturating_sub(taken);
        }
        lanes.discover(&self.control.registry); // a candidate may be in a new chunk
        capped
    }

    /// Files at most `most` timeouts that expire in this pass. Returns true if some are left.
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
                // At a command to end, the end finds the remaining timeouts in their slots.
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

    /// Files the timeouts that are not due. Returns true if a backlog is left.
    pub(super) fn transfer_rest(&mut self) -> bool {
        for number in 0..self.lanes.all.len() {
            // Checked for each heap, because a jump in time can leave much to file.
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
