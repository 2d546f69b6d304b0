//! Release: drops empty chunks.
//!
//! It happens at most once per second. So bursts that follow each other use the same chunks, and do not wake
//! the worker each time. `intake/release_request` says who asks for it.

use super::Worker;
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The shortest time between two releases, in nanoseconds of the timer's clock.
const RELEASE_EVERY: u64 = 1_000_000_000;

impl<W: Exact> Worker<W> {
    /// Drops empty chunks if a release is requested, and the last release is long enough ago. Returns true if the
    /// worker must try again.
    pub(super) fn release(&mut self) -> bool {
        if !self.context().is_release_requested() || self.known < self.release_from {
            return false;
        }
        let Self { control, chunks, .. } = self;
        control.context.begin_release();
        // First, because a chunk may have been used and emptied since the last pass.
        chunks.discover(&control.registry);
        let done = control.registry.release(|id| chunks.forget(id));
        if done {
            self.release_from = self.known.saturating_add(RELEASE_EVERY);
        } else {
            self.control.context.request_release();
        }
        !done
    }

    /// The tick in which chunks are to be released.
    pub(super) fn release_due(&self) -> u64 {
        let from = if self.context().is_release_requested() { self.release_from } else { NEVER };
        self.context().scale.tick_not_before(from)
    }
}
