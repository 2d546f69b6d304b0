//! Sweep: dead entries leave the wheel.
//!
//! An entry is dead once its timeout was cancelled or has another entry. A shard asks for a sweep
//! (see `shard/dead`). The sweep goes through the wheel of all shards, over several passes.

use super::Worker;
use super::lookup::Lookup;
use crate::wheel::Exact;

/// The number of wheel entries checked in one pass. This takes 1-2 ms, since each lookup misses the
/// cache.
pub(super) const LOOKUPS_PER_PASS: usize = 1 << 13;

impl<W: Exact> Worker<W> {
    /// Begins a sweep, and tells every shard.
    pub(super) fn begin_sweep(&mut self) {
        self.sweeping = true;
        self.control.shards.iter().for_each(|shard| shard.lock().begin_sweep());
    }

    /// Continues the sweep, if one is under way. True if it has not ended, or if a shard wants
    /// another.
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
