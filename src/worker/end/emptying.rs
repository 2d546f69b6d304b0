//! Emptying: what the end of a timer does with the timeouts that are pending.

use crate::intake::{Emptied, Phase};
use crate::timeout::{Erased, Shared, Timeout, Unprocessed};

/// Ends the remaining timeouts and returns them ordered by deadline. Their tasks stay in their slots. Those that only
/// wake a waker, and internal ones, are returned apart, with their tasks.
pub(super) fn empty(shared: &Shared, end: Phase) -> (Vec<Unprocessed>, Vec<(Erased, Timeout)>) {
    let (mut found, mut own) = (Vec::new(), Vec::new());
    shared.empty(end, |emptied: Emptied<Erased>| {
        let pin = emptied.pin();
        if pin.chunk().internal || emptied.read(Erased::only_wakes) {
            let (task, pin) = emptied.take();
            own.push((task, Timeout::from(pin)));
        } else {
            found.push((pin.slot().deadline(), Unprocessed::new(emptied)));
        }
    });
    // After they were counted as returned, so that no count is too low.
    own.iter().for_each(|(_, timeout)| timeout.cancel_returned());
    found.sort_unstable_by_key(|&(deadline, _)| deadline);
    (found.into_iter().map(|(_, unprocessed)| unprocessed).collect(), own) // in the same memory
}
