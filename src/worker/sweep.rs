//! Sweep: dead entries leave the wheel, and empty chunks are given up.
//!
//! An entry is dead once its timeout was cancelled or has another entry. Who leaves many to die asks
//! for a sweep (see `heap/context`). The sweep goes through the whole wheel, over several passes.

use super::Worker;
use crate::heap::context;
use crate::wheel::Exact;

/// The number of wheel entries checked in one pass. This takes 1-2 ms, since each lookup misses the
/// cache.
pub(super) const LOOKUPS_PER_PASS: usize = 1 << 13;

impl<W: Exact> Worker<W> {
    /// Begins or continues the sweep, if one is wanted, and gives up empty chunks. True if there is
    /// more to do.
    pub(super) fn sweep(&mut self) -> bool {
        let unreleased = self.release();
        if self.sweeping.is_none() && self.context().is_sweep_wanted() {
            self.sweeping = Some(context::died(self.lanes.tallies(self.context())));
        }
        let Some(died_at_begin) = self.sweeping else { return unreleased };
        let Self { control, lanes, wheel, .. } = self;
        let context = &control.context;
        let ended = wheel.sweep(LOOKUPS_PER_PASS, |token| {
            let stands = lanes.standing(token).is_some();
            if !stands {
                context.metrics.found_dead();
            }
            stands
        });
        if !ended {
            return true;
        }
        self.sweeping = None;
        context.end_sweep(died_at_begin, self.lanes.tallies(context)) || unreleased
    }

    /// Gives up empty chunks, if there are many. True if it must be tried again.
    fn release(&mut self) -> bool {
        if !self.context().is_release_wanted() {
            return false;
        }
        self.control.context.begin_release();
        let done = self.lanes.release(&self.control);
        if !done {
            self.control.context.want_release();
        }
        !done
    }
}
