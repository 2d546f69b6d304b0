//! Release: drops vacant chunks (see `intake/pool`), a few in each pass.
//!
//! Between two releases lies a second, however long a tick is. So bursts that follow each other use the same
//! chunks. A release that has dropped chunks, or has met a table that another thread reads, requests the next one
//! itself. So whatever empties chunks within that second does not wake the worker.
//!
//! To free a chunk takes about a microsecond, and there may be a million of them. So each pass visits 256 chunks of
//! the pools.

use super::Worker;
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The shortest time between two releases, in nanoseconds of the timer's clock.
const RELEASE_EVERY: u64 = 1_000_000_000;

/// The number of chunks that one pass visits. It takes some 0.2 ms if all of them are dropped.
pub(super) const CHUNKS_PER_PASS: usize = 256;

/// A release in progress.
#[derive(Default)]
pub(super) struct Release {
    /// The number of the pool that is visited.
    pool: usize,
    /// How many of its chunks are left to visit, once the visit has begun.
    left: Option<usize>,
    /// Whether there must be another release.
    again: bool,
}

impl<W: Exact> Worker<W> {
    /// Begins or continues a release if one is due. Returns true if there is more to do.
    pub(super) fn release(&mut self) -> bool {
        let mut release = match self.releasing.take() {
            Some(release) => release,
            None if self.is_release_due() => {
                self.shared().begin_release();
                Release::default()
            }
            None => return false,
        };
        if self.visit_pools(&mut release) {
            self.releasing = Some(release);
            return true;
        }
        if release.again {
            self.shared().plan_release();
        }
        self.release_from = self.known.saturating_add(RELEASE_EVERY);
        false
    }

    /// Visits the next few chunks of the pools. Returns true if there are more.
    fn visit_pools(&mut self, release: &mut Release) -> bool {
        let Self { control, chunks, .. } = self;
        let mut budget = CHUNKS_PER_PASS;
        while let Some(pool) = control.shared.pools.get(release.pool) {
            let left = release.left.take().unwrap_or_else(|| pool.len());
            let visited = if pool.has_too_many() { left.min(budget) } else { 0 };
            if visited > 0 {
                let released = chunks.release(pool, visited);
                release.again |= released.is_none_or(|released| !released.is_empty());
            }
            budget -= visited;
            if budget == 0 && visited < left {
                release.left = Some(left - visited);
                return true;
            }
            release.pool += 1;
        }
        false
    }

    /// The time of the next release.
    pub(super) fn release_at(&self) -> u64 {
        if self.shared().is_release_requested() { self.release_from } else { NEVER }
    }

    pub(super) fn is_release_due(&self) -> bool {
        self.known >= self.release_at()
    }
}
