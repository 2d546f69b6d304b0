//! The fixture of the arena's tests: a thread that schedules, without a timer.

use super::chunk::Chunk;
use super::context::Context;
use super::owner::Owner;
use super::pin::FreeSlots;
use super::registry::Registry;
use super::slot::{Cancel, Runs};
use crate::base::sync::Arc;

/// A deadline that is far away.
pub(super) const DUE: u64 = 1 << 40;

/// The chunk and the offset of a timeout's slot.
pub(super) type Place = (Arc<Chunk<u32>>, usize);

/// An owner whose timeouts are numbered in the order of scheduling.
pub(super) struct Producer {
    pub(super) registry: Arc<Registry<u32>>,
    pub(super) owner: Owner<u32>,
    scheduled: u32,
}

impl Producer {
    pub(super) fn new() -> Self {
        let registry = Arc::new(Registry::new(Context::of_this_thread(None, 8)));
        let owner = Owner::enter(&registry).expect("there is room");
        Self { registry, owner, scheduled: 0 }
    }

    pub(super) fn arm(&mut self, count: usize) -> Vec<Place> {
        (0..count).map(|_| self.arm_at(DUE)).collect()
    }

    pub(super) fn arm_at(&mut self, deadline: u64) -> Place {
        assert!(self.owner.has_room());
        let offset = self.owner.arm(self.scheduled, deadline, Runs::MayGoOn).offset();
        let place = (self.owner.chunk().clone(), offset);
        self.scheduled += 1;
        place.0.announce_new(deadline);
        place
    }

    /// Ends a timeout on its own thread.
    pub(super) fn end(&mut self, (chunk, offset): &Place) {
        assert!(free(chunk, *offset));
        if let Err(slot) = self.owner.give_back(FreeSlots::of(chunk, 1 << offset)) {
            slot.give_back();
        }
    }
}

/// Ends a timeout of a chunk that the thread does not own. The owner collects its slot.
pub(super) fn end_and_collect(owner: &mut Owner<u32>, (chunk, offset): &Place) -> bool {
    assert!(free(chunk, *offset));
    owner.collect(FreeSlots::of(chunk, 1 << offset)).is_ok()
}

/// Ends a timeout as another thread does: its slot goes back to the chunk's own bitmap.
pub(super) fn end_elsewhere((chunk, offset): &Place) {
    assert!(free(chunk, *offset));
    chunk.give_back(1 << offset);
}

fn free(chunk: &Chunk<u32>, offset: usize) -> bool {
    let slot = chunk.slot(offset);
    matches!(slot.cancel(), Cancel::Won { .. }) && slot.unpin(2)
}
