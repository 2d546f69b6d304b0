//! Transfer: what other threads have handed in moves from the queues into the wheel.

use super::Worker;
use super::lifecycle::Command;
use crate::wheel::Exact;

/// Live timeouts that one pass moves from the queues into the wheel, as in Netty.
pub(super) const DRAIN_CAP: usize = 100_000;

/// Timeouts that are filed between two looks at the order to end.
pub(super) const FILED_PER_LOOK: usize = 1 << 12;

impl<W: Exact> Worker<W> {
    /// Transfers once; true if that has left a backlog. If time has jumped over a tick, there may be
    /// earlier ticks in the queues than in the wheel, so all that is queued is transferred first:
    /// each shard once, so that producers cannot prolong it.
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

    /// Moves at most `most` live timeouts from the queues in which something is due by that time
    /// into the wheel; true if that has left some behind.
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

    /// Returns how many it has moved, at most `room`.
    pub(super) fn transfer_shard(&mut self, number: usize, room: usize, by: u64) -> usize {
        let shard = self.control.shards[number].clone();
        let mut state = shard.lock();
        let walk = state.sweep_wanted() && !self.sweeping;
        if state.take_by() <= by {
            self.drain.fill(&mut state, room);
        }
        drop(state);
        if walk {
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
            // The timeouts themselves are in the shards, so an end may leave the rest unfiled.
            filed % FILED_PER_LOOK > 0 || control.lifecycle.command() == Command::Run
        })
    }
}
