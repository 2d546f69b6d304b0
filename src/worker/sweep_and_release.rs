//! Sweep and release: takes dead entries out of the wheel, and gives back the memory of vacant chunks, both over
//! several passes.
//!
//! **Sweep.** A timeout's entry is dead once the timeout has ended or was pulled forward. A chunk's is dead once
//! another look is promised. A promised look is live even if no timeout is pending in its chunk, so looks are
//! left out of the count that requests a sweep. A sweep is requested once the dead entries outnumber the pending
//! timeouts by too many (`wheel/sweep` has the rule; `intake/shared` defines by how many, and who asks). It visits the
//! whole wheel. Dead entries also leave the wheel in `expire`, when they are due, and in `sleep`, when they would be
//! the next to expire.
//!
//! **Release** (see `intake/pool`). Releases are at least 1 s apart, however long a tick is. So bursts that follow
//! each other use the same chunks. A release that has dropped chunks, or has met a table that another thread reads,
//! requests the next one itself. So a thread that empties chunks within that second finds it requested, and does not
//! wake the worker.
//!
//! To free a chunk takes about a microsecond, and there may be a million of them. So each pass visits 256 chunks of
//! the pools.

use super::Worker;
use crate::intake::Pool;
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The number of entries that one pass of a sweep checks. This takes 1-2 ms, since each look-up misses the cache.
pub(super) const SWEPT_PER_PASS: usize = 1 << 13;

/// The shortest time between two releases, in nanoseconds of the timer's clock.
const RELEASE_EVERY: u64 = 1_000_000_000;

/// The number of chunks that one pass visits. It takes about 0.2 ms if all of them are dropped.
pub(super) const CHUNKS_PER_PASS: usize = 256;

/// The sweep and the release in progress.
#[derive(Default)]
pub(super) struct Tidy {
    /// The number of runs, and of chunks filed, since the last check whether a sweep is worth its cost.
    pub(super) ran: u64,
    pub(super) sweeping: bool,
    /// How many chunks of each pool the release has still to visit. The last pool comes first.
    left: Vec<usize>,
    /// No release begins before this time.
    release_from: u64,
}

impl<W: Exact> Worker<W> {
    /// Begins or continues the sweep if one is requested. Returns true if there is more to do.
    pub(super) fn sweep(&mut self) -> bool {
        self.tell_entries();
        self.tidy.sweeping |= self.shared().sweep.is_made();
        if !self.tidy.sweeping {
            return false;
        }
        let Self { chunks, filing, .. } = self;
        if !filing.sweep(SWEPT_PER_PASS, |token| chunks.standing(token).is_some()) {
            return true;
        }
        self.tidy.sweeping = false;
        self.shared().counts.worker.sweeps.add(1);
        self.consider_sweep();
        self.shared().sweep.is_made()
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

    /// Begins or continues a release if one is due. Returns true if there is more to do.
    pub(super) fn release(&mut self) -> bool {
        if self.tidy.left.is_empty() {
            if !self.is_release_due() {
                return false;
            }
            self.shared().release.begin();
            self.consider_sweep(); // the slots may be those of cancelled timeouts that were never in the wheel
            self.tidy.left = self.shared().pools.iter().map(Pool::len).collect();
        }
        let Self { control, chunks, tidy, known, .. } = self;
        let mut budget = CHUNKS_PER_PASS;
        while let Some(left) = tidy.left.pop() {
            let pool = &control.shared.pools[tidy.left.len()];
            let visited = if pool.has_too_many() { left.min(budget) } else { 0 };
            let released = (visited > 0).then(|| chunks.release(pool, visited));
            if released.is_some_and(|released| released.is_none_or(|some| !some.is_empty())) {
                control.shared.release.make();
            }
            budget -= visited;
            if budget == 0 {
                tidy.left.push(left - visited);
                return true;
            }
        }
        tidy.release_from = known.saturating_add(RELEASE_EVERY);
        false
    }

    /// The time of the next release.
    pub(super) fn release_at(&self) -> u64 {
        if self.shared().release.is_made() { self.tidy.release_from } else { NEVER }
    }

    pub(super) fn is_release_due(&self) -> bool {
        self.known >= self.release_at()
    }
}
