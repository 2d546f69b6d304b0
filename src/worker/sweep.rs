//! Sweep: entries of timeouts that were cancelled or moved leave the wheel.

use super::Worker;
use super::looks::Looks;
use crate::wheel::Exact;

/// Wheel entries looked at in one pass for dead ones: one or two ms, since each look misses the cache.
pub(super) const LOOKS_PER_PASS: usize = 1 << 13;

impl<W: Exact> Worker<W> {
    pub(super) fn begin_reclaim(&mut self) {
        self.reclaiming = true;
        self.station.shards.iter().for_each(|home| home.shard.lock().begin_reclaim());
    }

    /// Walks on through the wheel for dead entries, if a shard has asked; true if there is more.
    pub(super) fn reclaim(&mut self) -> bool {
        if !self.reclaiming {
            return false;
        }
        let shards = &self.station.shards;
        let mut looks = Looks::new(shards);
        let ended = self.wheel.reclaim(LOOKS_PER_PASS, |token| looks.stands(token));
        drop(looks);
        if !ended {
            return true;
        }
        self.reclaiming = false;
        shards.iter().filter(|home| home.shard.lock().end_reclaim()).count() > 0
    }
}
