//! Release: drops empty chunks.
//!
//! After a complete release, the next one begins a second later at the earliest. So bursts that follow each
//! other use the same chunks, and do not wake the worker each time. If another thread had a list, the worker
//! sleeps and tries again in a later tick: the thread may need its processor. Each pass visits a few chunks (see
//! `intake/release`).

use super::Worker;
use crate::intake::{Release, Step};
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The shortest time between two releases, in nanoseconds of the timer's clock.
const RELEASE_EVERY: u64 = 1_000_000_000;

impl<W: Exact> Worker<W> {
    /// Begins or continues a release if one is requested, and the last one is long enough ago. Returns true if
    /// there is more to do.
    pub(super) fn release(&mut self) -> bool {
        let Self { control, chunks, releasing, .. } = self;
        if releasing.is_none() {
            if !control.context.is_release_requested() || self.known < self.release_from {
                return false;
            }
            control.context.begin_release();
            *releasing = Release::begin(&control.registry);
        }
        // First, because a chunk may have been used and emptied since the last pass.
        chunks.discover(&control.registry);
        let step = releasing.as_mut().map(|it| it.step(&control.registry, |id| chunks.forget(id)));
        match step {
            Some(Step::More) => return true,
            Some(Step::Done) => self.release_from = self.known.saturating_add(RELEASE_EVERY),
            Some(Step::Again) | None => {
                self.release_from = self.known.saturating_add(control.context.scale.tick_nanos());
                control.context.request_release();
            }
        }
        *releasing = None;
        false
    }

    /// The tick in which chunks are to be released.
    pub(super) fn release_due(&self) -> u64 {
        let from = if self.context().is_release_requested() { self.release_from } else { NEVER };
        self.context().scale.tick_not_before(from)
    }
}
