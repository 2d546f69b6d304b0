//! Sweep: entries of timeouts that were cancelled or moved leave the wheel.

use super::Worker;
use super::lookup::Lookup;
use crate::wheel::Exact;

/// Wheel entries looked at in one pass for dead ones: one or two ms, since each look misses the cache.
pub(super) const LOOKUPS_PER_PASS: usize = 1 << 13;

impl<W: Exact> Worker<W> {
    pub(super) fn begin_sweep(&mut self) {
        self.sweeping = true;
        self.control.shards.iter().for_each(|shard| shard.lock().begin_sweep());
    }

    /// Walks on through the wheel for dead entries, if a shard has asked; true if there is more.
    pub(super) fn sweep(&mut self) -> bool {
        if !self.sweeping {
            return false;
        }
        let shards = &self.control.shards;
        let mut lookup = Lookup::new(shards);
        let ended = self.wheel.sweep(LOOKUPS_PER_PASS, |token| lookup.stands(token));
        drop(lookup);
        if !ended {
            return true;
        }
        self.sweeping = false;
        shards.iter().filter(|shard| shard.lock().end_sweep()).count() > 0
    }
}
