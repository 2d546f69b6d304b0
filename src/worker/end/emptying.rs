//! Emptying: what the end of a timer does with the timeouts that are pending.

use crate::intake::{Emptied, EmptiedSlots, Phase, SLOTS};
use crate::timeout::{Erased, Shared, Timeout, Unprocessed};

/// Ends the remaining timeouts and returns them ordered by deadline. Their tasks stay in their slots, and
/// only numbers are sorted. Those that only wake a waker, and internal ones, are returned apart, with their tasks.
pub(super) fn empty(shared: &Shared, end: Phase) -> (Vec<Unprocessed>, Vec<(Erased, Timeout)>) {
    let (mut chunks, mut found) = (Vec::<EmptiedSlots<Erased>>::new(), Vec::<[u64; 2]>::new());
    let mut own = Vec::new();
    shared.empty(end, |chunk, mut emptied| {
        for offset in emptied.offsets() {
            if chunk.internal || emptied.is(offset, Erased::only_wakes) {
                let taken = emptied.take(offset).map(Emptied::take);
                own.extend(taken.map(|(task, pin)| (task, Timeout::from(pin))));
            } else {
                let deadline = chunk.slot(offset).deadline();
                found.push([deadline, (chunks.len() * SLOTS + offset) as u64]);
            }
        }
        chunks.push(emptied);
    });
    // After they were counted as returned, so that no count is too low.
    own.iter().for_each(|(_, timeout)| timeout.cancel_returned());
    found.sort_unstable();
    let unprocessed = |[_deadline, at]: [u64; 2]| {
        let at = at as usize;
        let emptied = chunks[at / SLOTS].take(at % SLOTS).expect("each slot is found once");
        Unprocessed::new(emptied)
    };
    (found.into_iter().map(unprocessed).collect(), own) // in the same memory
}
