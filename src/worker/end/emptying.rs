//! Emptying: what the end of a timer does with the timeouts that are pending.

use crate::intake::{Phase, PinnedChunk, Registry, SLOTS};
use crate::timeout::{Erased, Internals, Place, Timeout, Unprocessed};

/// Ends the remaining timeouts and returns them ordered by deadline. Their tasks stay in their slots, and
/// only numbers are sorted. Timeouts that only wake a waker, and internal ones, are left to the worker's
/// thread.
pub(super) fn empty(
    registry: &Registry<Erased>,
    internals: &Internals,
    end: Phase,
) -> Vec<Unprocessed> {
    let (mut chunks, mut found) = (Vec::<PinnedChunk<Erased>>::new(), Vec::<[u64; 2]>::new());
    let mut for_worker = Vec::new();
    registry.empty(end, |chunk, offset, deadline| {
        let slot = chunk.slot(offset);
        if chunk.internal || slot.read_emptied(Erased::only_wakes) {
            let timeout = Timeout::pinned(Place { chunk, offset });
            return for_worker.push((slot.take_emptied(), timeout));
        }
        if !chunks.last().is_some_and(|last| std::ptr::eq(&**last, chunk)) {
            chunks.push(PinnedChunk::new(chunk));
        }
        let last = chunks.len() - 1;
        found.push([deadline, (last * SLOTS + offset) as u64]);
    });
    // After they were counted as returned, so that no count is too low.
    for_worker.iter().for_each(|(_, timeout)| timeout.cancel_returned());
    internals.leave(for_worker);
    found.sort_unstable();
    let place = |[_deadline, at]: [u64; 2]| {
        let at = at as usize;
        Unprocessed::new(Place { chunk: &chunks[at / SLOTS], offset: at % SLOTS })
    };
    found.into_iter().map(place).collect() // in the same memory
}
