//! The timeouts that are due in one tick, in the order of scheduling.
//!
//! They come out of the wheel as *sources*: single timeouts, and chunks to look at (see `intake/pending`). The sources
//! are sorted by sequence number, unless they are in order already. A chunk sorts by the lower bound of its sequence
//! numbers, `Chunk::lowest`. The worker looks at a chunk when its turn comes. The chunk's due timeouts form a *group*.
//! The next sources join it, up to a chunk that stands after the group's last timeout. Then the group is sorted. With
//! one thread, a group is nearly always one chunk, in order. So a burst runs chunk by chunk, while the slots
//! are in the processor's cache.
//!
//! **The order of one thread is established here, and nowhere before.** If a timeout is due in a tick, so
//! is each that its thread scheduled before it for the same tick:
//!
//! | step | a thread that schedules A and then B | the worker, in each pass |
//! |---|---|---|
//! | 1 | arms A; fence; announces A | sets `floor` just after the begin of the current tick |
//! | 2 | fence, if it wants a look | fence |
//! | 3 | reads `floor`; arms B, with a deadline not before it | takes in the pending queue, then looks at chunks |
//!
//! Either the thread's last fence comes before the worker's, and the worker knows by when it must look at
//! A's chunk. Or B is due after this pass. So a timeout that is overdue when it is scheduled counts as due in
//! the next tick.
//!
//! A sequence number wraps after 2^41 timeouts of one timer, which takes 25 days at a million in a second. So the order
//! holds for timeouts within half of that.

use crate::intake::is_look;
use crate::wheel::Token;

/// Whether a sequence number, in the high bits, is not after another. They wrap.
#[inline]
fn is_within(sequence: u64, last: u64) -> bool {
    (last.wrapping_sub(sequence) as i64) >= 0
}

/// A timeout that is due, or a chunk to look at.
#[derive(Clone, Copy, Debug)]
struct Item {
    sequence: u64,
    token: Token,
}

/// The due timeouts. See the head.
#[derive(Default)]
pub(super) struct TickQueue {
    /// When the tick begins.
    pub(super) start: u64,
    /// The sources of the tick. The first `taken` ones are done, or in the group.
    pub(super) sources: Items,
    /// The timeouts of the current group.
    pub(super) group: Items,
}

/// Items, of which the first `taken` ones were taken.
#[derive(Default)]
pub(super) struct Items {
    list: Vec<Item>,
    taken: usize,
    /// Whether an item was added that does not come after the last one.
    unsorted: bool,
    /// The sequence number of the last one in order.
    last: u64,
}

/// The number of timeouts for which the queue keeps memory between passes.
const KEPT: usize = 1 << 10;

impl TickQueue {
    /// Takes the next timeout of the group.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Token> {
        let next = self.group.next()?;
        self.group.taken += 1;
        Some(next.token)
    }

    /// The token of the group that comes `distance` after the next one.
    #[inline]
    pub(super) fn ahead(&self, distance: usize) -> Option<Token> {
        self.group.list.get(self.group.taken + distance).map(|item| item.token)
    }

    /// Takes the next chunk to look at for this group. Adds the timeouts before it. `None` if the group is
    /// complete: the next source is a chunk, and stands after the group's last timeout.
    pub(super) fn next_look(&mut self) -> Option<Token> {
        while let Some(source) = self.sources.next() {
            let is_look = is_look(source.token);
            let stands_after =
                !self.group.list.is_empty() && !is_within(source.sequence, self.group.last);
            if is_look && stands_after {
                return None;
            }
            self.sources.taken += 1;
            if is_look {
                return Some(source.token);
            }
            self.group.add(source.sequence, source.token);
        }
        None
    }

    /// Empties the queue for the next pass, and frees most of its memory.
    pub(super) fn clear(&mut self) {
        for items in [&mut self.sources, &mut self.group] {
            items.clear();
            items.list.shrink_to(KEPT);
        }
    }
}

impl Items {
    /// Whether all were taken.
    pub(super) fn is_done(&self) -> bool {
        self.taken == self.list.len()
    }

    #[inline]
    fn next(&self) -> Option<Item> {
        self.list.get(self.taken).copied()
    }

    #[inline]
    pub(super) fn add(&mut self, sequence: u64, token: Token) {
        if self.list.is_empty() || !is_within(sequence, self.last) {
            self.last = sequence;
        } else {
            self.unsorted = true;
        }
        self.list.push(Item { sequence, token });
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.taken = 0;
        self.unsorted = false;
    }

    pub(super) fn sort(&mut self) {
        if self.unsorted {
            // Halfway round from the first one, where sequence numbers hardly ever wrap.
            let base = self.list[0].sequence.wrapping_sub(1 << 63);
            self.list.sort_unstable_by_key(|item| item.sequence.wrapping_sub(base));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
