//! Transfer: timeouts move from the pending queues into the wheel.
//!
//! A *pass* is one turn of the worker's loop. A transfer leaves a *backlog* if it reaches the drain
//! cap before it has taken every queue in which a timeout may be due.

use super::Worker;
use super::lifecycle::Command;
use crate::wheel::Exact;

/// The drain cap: the most live timeouts that one pass moves into the wheel, as in Netty.
pub(super) const DRAIN_CAP: usize = 100_000;

/// The number of timeouts filed between two checks for a command to end.
pub(super) const FILED_PER_LOOK: usize = 1 << 12;

impl<W: Exact> Worker<W> {
    /// Transfers once; true if a backlog is left. If time has jumped over a tick, the queues may
    /// have earlier ticks than the wheel. Then the transfer ignores the drain cap, but visits each
    /// shard only once, so that producers cannot prolong it.
    pub(super) fn transfer_in_order(&mut self, now: u64) -> bool {
        let tick = self.context().scale.tick_at(now);
        if !self.behind {
            self.backlog_from = self.wheel.current_tick();
        }
        let by = self.context().scale.start_of(tick);
        let jumped = tick > self.last_pass + 1;
        self.behind = self.transfer(if jumped { usize::MAX } else { DRAIN_CAP }, by);
        if self.behind {
            self.context().metrics.backlog_left();
        }
        self.behind
    }

    /// Moves at most `most` live timeouts into the wheel, from the queues in which one may be due
    /// at time `by`. True if such a queue is left.
    pub(super) fn transfer(&mut self, most: usize, by: u64) -> bool {
        let mut room = most;
        let count = self.control.shards.len();
        let first = self.first_shard;
        for number in (first..count).chain(0..first) {
            room -= self.transfer_shard(number, room, by);
            if room == 0 {
                self.first_shard = (number + 1) % count;
                return self.control.shards.iter().any(|shard| shard.lock().take_by() <= by);
            }
        }
        false
    }

    /// Moves at most `room` live timeouts out of one shard's queue. Returns how many it moved.
    pub(super) fn transfer_shard(&mut self, number: usize, room: usize, by: u64) -> usize {
        let shard = self.control.shards[number].clone();
        let mut state = shard.lock();
        let sweep = state.sweep_wanted() && !self.sweeping;
        if state.take_by() <= by {
            self.drain.fill(&mut state, room);
        }
        drop(state);
        if sweep {
            self.begin_sweep();
        }
        let Self { control, drain, wheel, agenda, backlog_from, .. } = self;
        let mut filed = 0;
        drain.empty(|record| {
            let tick = control.context.scale.tick_not_before(record.deadline).max(*backlog_from);
            if tick < wheel.current_tick() {
                agenda.postpone(tick, shard.token(record));
            } else {
                wheel.insert(tick, shard.token(record));
            }
            filed += 1;
            // The timeouts themselves are in the shards, so a command to end may leave the rest
            // unfiled.
            filed % FILED_PER_LOOK > 0 || control.lifecycle.command() == Command::Run
        })
    }
}
