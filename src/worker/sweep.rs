//! Sweep: removes dead entries from the wheel.
//!
//! An entry is dead once its timeout has ended or has another entry, and once its chunk has another look. The
//! promised look of a chunk is live even if the chunk has no pending timeout, so it counts for no sweep. A
//! sweep is requested once the dead entries outnumber the pending timeouts by too many (`wheel/filing` says by
//! how many, and `intake/shared` who asks). It visits the whole wheel, over several passes. Dead
//! entries also leave the wheel in `expire`, when they are due, and in `sleep`, when they would be the next to
//! expire.

use super::Worker;
use crate::wheel::Exact;

/// The number of wheel entries checked in one pass. This takes 1-2 ms, since each lookup misses the
/// cache.
pub(super) const LOOKUPS_PER_PASS: usize = 1 << 13;

impl<W: Exact> Worker<W> {
    /// Begins or continues the sweep if one is requested. Returns true if there is more to do.
    pub(super) fn sweep(&mut self) -> bool {
        self.tell_entries();
        self.sweeping |= self.shared().is_sweep_requested();
        if !self.sweeping {
            return false;
        }
        let Self { chunks, filing, .. } = self;
        if !filing.sweep(LOOKUPS_PER_PASS, |token| chunks.standing(token).is_some()) {
            return true;
        }
        self.sweeping = false;
        self.shared().counts.worker.sweeps.add(1);
        self.consider_sweep();
        self.shared().is_sweep_requested()
    }

    /// Requests a sweep if one is worth its cost.
    pub(super) fn consider_sweep(&self) {
        self.tell_entries();
        self.shared().consider_sweep();
    }

    /// Tells how many entries the wheel has that may be dead, or whose timeouts are pending. At the end of the
    /// timer, live looks may have left the wheel.
    pub(super) fn tell_entries(&self) {
        let entries = self.filing.entries().saturating_sub(self.chunks.live());
        self.shared().set_entries(entries);
    }
}
