//! Release: drops empty chunks.
//!
//! Between two releases lies a second, however long a tick is. So bursts that follow each other use the same
//! chunks. A release that has dropped chunks, or has met a list that another thread had, requests the next one
//! itself. So whatever empties chunks within that second does not wake the worker. Each pass visits a few chunks
//! (see `intake/release`).

use super::Worker;
use crate::intake::{Release, Step};
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The shortest time between two releases, in nanoseconds of the timer's clock.
const RELEASE_EVERY: u64 = 1_000_000_000;

impl<W: Exact> Worker<W> {
    /// Begins or continues a release if one is due. Returns true if there is more to do.
    pub(super) fn release(&mut self) -> bool {
        let is_due = self.is_release_due();
        let Self { control, chunks, releasing, .. } = self;
        if releasing.is_none() {
            if !is_due {
                return false;
            }
            control.context.begin_release();
            *releasing = Release::begin(&control.registry);
        }
        let step = releasing.as_mut().map(|it| it.step(&control.registry, |id| chunks.forget(id)));
        match step {
            Some(Step::More) => return true,
            Some(Step::Done) => {}
            Some(Step::Again) | None => control.context.plan_release(),
        }
        *releasing = None;
        self.release_from = self.known.saturating_add(RELEASE_EVERY);
        false
    }

    /// The time of the next release.
    pub(super) fn release_at(&self) -> u64 {
        if self.context().is_release_requested() { self.release_from } else { NEVER }
    }

    pub(super) fn is_release_due(&self) -> bool {
        self.known >= self.release_at()
    }
}
