//! Sweep: removes dead entries from the wheel, and drops empty chunks.
//!
//! An entry is dead once its timeout has ended or has another entry, and once its chunk has another look. A
//! sweep is wanted once the dead entries outnumber the pending timeouts by more than 4,096, or by more than
//! the number of buckets if that is greater (`wheel/filing`). A thread checks this once per 1,024 entries
//! that it leaves dead, and the worker once per 1,024 runs and filed chunks. The sweep visits the whole wheel, over several
//! passes. Dead entries also leave the wheel in `expire`, when they are due, and in `sleep`, when they
//! would be the next to expire.
//!
//! Empty chunks are dropped at most once per second. So bursts that follow each other use the same chunks,
//! and do not wake the worker each time.

use super::Worker;
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The number of wheel entries checked in one pass. This takes 1-2 ms, since each lookup misses the
/// cache.
pub(super) const LOOKUPS_PER_PASS: usize = 1 << 13;

/// The shortest time between two releases of chunks, in nanoseconds of the timer's clock.
const RELEASE_EVERY: u64 = 1_000_000_000;

impl<W: Exact> Worker<W> {
    /// Begins or continues the sweep if one is wanted, and drops empty chunks. Returns true if there is
    /// more to do.
    pub(super) fn sweep(&mut self) -> bool {
        let unreleased = self.release();
        self.context().set_entries(self.filing.entries());
        self.sweeping |= self.context().is_sweep_wanted();
        if !self.sweeping {
            return unreleased;
        }
        let Self { looks, filing, .. } = self;
        if !filing.sweep(LOOKUPS_PER_PASS, |token| looks.standing(token).is_some()) {
            return true;
        }
        self.sweeping = false;
        self.context().counts.metrics.swept();
        self.consider_sweep();
        self.context().is_sweep_wanted() || unreleased
    }

    /// Wants a sweep if one is worth its cost.
    pub(super) fn consider_sweep(&self) {
        self.context().set_entries(self.filing.entries());
        self.context().consider_sweep();
    }

    /// Drops empty chunks if there are many, and the last release is long enough ago. Returns true if the
    /// worker must try again.
    fn release(&mut self) -> bool {
        if !self.context().is_release_wanted() || self.known < self.release_from {
            return false;
        }
        let Self { control, looks, .. } = self;
        control.context.begin_release();
        // First, because a chunk may have been used and emptied since the last pass.
        looks.discover(&control.registry);
        let done = control.registry.release(|id| looks.forget(id));
        if done {
            self.release_from = self.known.saturating_add(RELEASE_EVERY);
        } else {
            self.control.context.want_release();
        }
        !done
    }

    /// The tick in which chunks are to be released.
    pub(super) fn release_due(&self) -> u64 {
        let from = if self.context().is_release_wanted() { self.release_from } else { NEVER };
        self.context().scale.tick_not_before(from)
    }
}
