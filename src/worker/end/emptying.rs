//! Emptying: what the end of a timer does with the timeouts that are pending.

use crate::intake::{Emptied, Phase};
use crate::timeout::{Erased, Shared, Timeout, Unprocessed};

/// Ends the remaining timeouts and returns them ordered by deadline, and then by slot. Their tasks stay in their slots.
/// Those that only wake a waker, and internal ones, are returned apart, with their tasks.
pub(super) fn empty(shared: &Shared, end: Phase) -> (Vec<Unprocessed>, Vec<(Erased, Timeout)>) {
    let (mut found, mut own) = (Vec::new(), Vec::new());
    shared.empty(end, |emptied: Emptied<Erased>| {
        let pin = emptied.pin();
        if pin.chunk().internal || emptied.read(Erased::only_wakes) {
            let (task, pin) = emptied.take();
            own.push((task, Timeout::from(pin)));
        } else {
            found.push((pin.slot().deadline(), emptied));
        }
    });
    // After they were counted as returned, so that no count is too low.
    own.iter().for_each(|(_, timeout)| timeout.cancel_returned());
    let slot = |emptied: &Emptied<Erased>| emptied.pin().chunk().index(emptied.pin().offset());
    found.sort_unstable_by(|(a, at_a), (b, at_b)| {
        a.cmp(b).then_with(|| slot(at_a).cmp(&slot(at_b)))
    });
    let unprocessed = found.into_iter().map(|(_, emptied)| Unprocessed::new(emptied));
    (unprocessed.collect(), own) // in the same memory
}
