//! A fixture of tests: a thread that schedules, without a timer.

use super::chunk::{Chunk, SLOTS};
use super::owner::Owner;
use super::pin::FreeSlots;
use super::pool::Pool;
use super::shared::{Shared, SharedRef};
use super::slot::{Cancel, Runs};
use super::table::WorkerTable;
use crate::base::sync::Arc;
use std::mem::ManuallyDrop;

/// A deadline that is far away.
pub(crate) const DUE: u64 = 1 << 40;

/// The chunk and the offset of a timeout's slot.
pub(crate) type Place = (Arc<Chunk<u32>>, usize);

/// An owner whose timeouts are numbered in the order of scheduling.
pub(crate) struct Producer {
    pub(crate) shared: SharedRef<Chunk<u32>>,
    /// What the worker has.
    pub(crate) table: Option<WorkerTable<Chunk<u32>>>,
    pub(crate) owner: Owner<u32>,
    scheduled: u32,
}

impl Producer {
    pub(crate) fn new() -> Self {
        let (shared, table) = Shared::of_this_thread(None, 8);
        let owner = Owner::enter(&shared).expect("there is room");
        Self { shared, table: Some(table), owner, scheduled: 0 }
    }

    pub(crate) fn arm(&mut self, count: usize) -> Vec<Place> {
        (0..count).map(|_| self.arm_at(DUE)).collect()
    }

    pub(crate) fn arm_at(&mut self, deadline: u64) -> Place {
        // Its pin stays with the place.
        let payload = self.scheduled;
        let pin = self.owner.arm(|| payload, deadline, Runs::MayGoOn).expect("there is room");
        let pin = ManuallyDrop::new(pin);
        let offset = pin.offset();
        let place = (self.owner.chunk.clone(), offset);
        self.scheduled += 1;
        place.0.announce_new(deadline);
        place
    }

    pub(crate) fn pool(&self) -> &Pool<Chunk<u32>> {
        self.owner.pool_in(&self.shared)
    }

    /// Ends all timeouts of the owned chunk.
    pub(crate) fn end_all(&mut self) {
        let chunk = self.owner.chunk.clone();
        for offset in 0..SLOTS {
            if chunk.slot(offset).pending_deadline().is_some() {
                self.end(&(chunk.clone(), offset));
            }
        }
    }

    /// Ends a timeout on its own thread.
    pub(crate) fn end(&mut self, (chunk, offset): &Place) {
        assert!(free(chunk, *offset));
        if let Err(slot) = self.owner.give_back(FreeSlots::of(chunk, 1 << offset)) {
            slot.give_back();
        }
    }
}

/// Ends a timeout of a chunk that the thread does not own. The owner collects its slot.
pub(crate) fn end_and_collect(owner: &mut Owner<u32>, (chunk, offset): &Place) -> bool {
    assert!(free(chunk, *offset));
    owner.collect(FreeSlots::of(chunk, 1 << offset)).is_ok()
}

/// Ends a timeout as another thread does: its slot goes back to the chunk's own bitmap.
pub(crate) fn end_elsewhere((chunk, offset): &Place) {
    assert!(free(chunk, *offset));
    chunk.give_back(1 << offset);
}

fn free(chunk: &Chunk<u32>, offset: usize) -> bool {
    let slot = chunk.slot(offset);
    matches!(slot.cancel(|_| ()), Cancel::Won(_)) && slot.unpin(2)
}
