//! The timeouts that are due in one tick, in the order of scheduling.
//!
//! They come from the wheel and from looks at chunks (see `intake/pending`).
//!
//! **The order of one thread is established here, and nowhere before.** The timeouts of one tick are sorted
//! by their sequence numbers, unless they are in order already, which is nearly always so. If a timeout is
//! here, so is each that its thread scheduled before it for the same tick:
//!
//! | step | a thread that schedules A and then B | the worker, in each pass |
//! |---|---|---|
//! | 1 | arms A; fence; announces A | sets `floor` just after the begin of the present tick |
//! | 2 | fence, if it has pushed an entry | fence |
//! | 3 | reads `floor`; arms B, with a deadline not before it | takes in the pending queue, then looks at chunks |
//!
//! Either the thread's last fence comes before the worker's, and the worker knows by when it must look at
//! A's chunk. Or B is due after this pass. So a timeout that is overdue when it is scheduled counts as due in
//! the next tick.
//!
//! A sequence number wraps after 2^44 timeouts of one thread, which takes days even if it does nothing else.

use crate::wheel::Token;
use std::collections::HashMap;

/// The bits of a key that have the number of the arena. Sequence numbers are above them.
const ARENA: u64 = (1 << 20) - 1;

/// Where a timeout stands in the order of its thread: its sequence number, and the number of its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u64);

impl Order {
    /// `sequence` has zeros in its low 20 bits.
    #[inline]
    pub(super) fn new(sequence: u64, arena: u32) -> Self {
        Self(sequence | u64::from(arena) & ARENA)
    }

    fn arena(self) -> u64 {
        self.0 & ARENA
    }

    /// Whether this is before another of the same arena. Sequence numbers wrap.
    fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i64) < 0
    }
}

/// A timeout that is due.
#[derive(Clone, Copy, Debug)]
struct Item {
    order: Order,
    token: Token,
}

/// The due timeouts. See the head.
#[derive(Default)]
pub(super) struct Agenda {
    pub(super) tick: u64,
    /// The timeouts of `tick`. The first `popped` ones are done.
    items: Vec<Item>,
    popped: usize,
}

/// The number of timeouts for which the agenda keeps memory between passes.
const KEPT: usize = 1 << 12;

impl Agenda {
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Token> {
        let item = self.items.get(self.popped)?;
        self.popped += 1;
        Some(item.token)
    }

    /// The token that comes `distance` after the next one.
    #[inline]
    pub(super) fn ahead(&self, distance: usize) -> Option<Token> {
        self.items.get(self.popped + distance).map(|item| item.token)
    }

    /// Begins a tick. All timeouts of the last one were popped.
    pub(super) fn begin(&mut self, tick: u64) {
        self.tick = tick;
        self.items.clear();
        self.popped = 0;
    }

    /// Adds a timeout of this tick.
    #[inline]
    pub(super) fn add(&mut self, order: Order, token: Token) {
        self.items.push(Item { order, token });
    }

    /// The number of timeouts of this tick so far.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Puts the timeouts of one chunk in order: those from number `first` on.
    pub(super) fn sort_chunk(&mut self, first: usize) {
        sort(&mut self.items[first..]);
    }

    /// Puts the timeouts of this tick in order.
    pub(super) fn sort(&mut self) {
        if !is_each_thread_in_order(&self.items) {
            sort(&mut self.items);
        }
    }

    /// Empties the agenda for the next pass, and frees most of its memory.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.items.shrink_to(KEPT);
        self.popped = 0;
    }
}

fn is_in_order(items: &[Item]) -> bool {
    items.is_sorted_by(|a, b| a.order.is_before(b.order))
}

/// Whether the timeouts of each thread are in order. Those of several threads may be mixed.
fn is_each_thread_in_order(items: &[Item]) -> bool {
    let mut last: HashMap<u64, Order> = HashMap::new();
    items.windows(2).all(|pair| {
        let (before, next) = (pair[0].order, pair[1].order);
        if before.arena() == next.arena() {
            return before.is_before(next);
        }
        last.insert(before.arena(), before);
        last.get(&next.arena()).is_none_or(|last| last.is_before(next))
    })
}

fn sort(items: &mut [Item]) {
    if is_in_order(items) {
        return;
    }
    // Halfway round from the first one, where sequence numbers hardly ever wrap.
    let base = items[0].order.0.wrapping_sub(1 << 63);
    // The stable sort finds runs, and a chunk is a run.
    items.sort_unstable_by_key(|item| item.order.0.wrapping_sub(base));
}
