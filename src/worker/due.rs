//! The due timeouts of one pass: tick by tick, and within one tick in the order of scheduling.
//!
//! The timeouts of a tick come from three places: from the wheel, from looks at chunks (see
//! `intake/pending`), and from earlier ticks of the same pass. A timeout that was pushed back, and one that
//! shares a bucket or a chunk with an earlier one, waits in `later` for its tick.
//!
//! **The order of one thread is established here, and nowhere before.** The timeouts of one tick are sorted
//! by their sequence numbers, unless they are in order already, which is nearly always so. If a timeout is
//! here, so is each that its thread scheduled before it for the same tick:
//!
//! | step | a thread that schedules A and then B | the worker, in each pass |
//! |---|---|---|
//! | 1 | arms A; fence; announces A | sets `floor` to the end of the present tick |
//! | 2 | fence, if it has pushed an entry | fence |
//! | 3 | reads `floor`; arms B, with a deadline not before it | takes in the pending queue, then looks at chunks |
//!
//! Either the thread's last fence comes before the worker's, and the worker knows by when it must look at
//! A's chunk. Or B is due after this pass. So a timeout that is overdue when it is scheduled counts as due in
//! the next tick.
//!
//! A sequence number wraps after 2^44 timeouts of one thread, which takes days even if it does nothing else.

use crate::wheel::{Batch, Due, Token, TokenWheel};
use std::collections::{BTreeMap, HashMap};

/// The bits of a key that have the number of the arena. Sequence numbers are above them.
const HEAP: u64 = (1 << 20) - 1;

/// Where a timeout stands in the order of its thread: its sequence number, and the number of its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u64);

impl Order {
    /// `sequence` has zeros in its low 20 bits.
    #[inline]
    pub(super) fn new(sequence: u64, arena: u32) -> Self {
        Self(sequence | u64::from(arena) & HEAP)
    }

    fn arena(self) -> u64 {
        self.0 & HEAP
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
    /// Tokens of later ticks of this pass.
    pub(super) later: BTreeMap<u64, Vec<Token>>,
    /// Memory for what the wheel passes on.
    batch: Batch,
    /// Memory for a list in `later`.
    spare: Vec<Token>,
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

    /// Begins the next tick up to `present` that has tokens, and puts these into `tokens`. All timeouts of
    /// the last tick were popped. False ends the pass.
    pub(super) fn next_tokens(
        &mut self,
        wheel: &mut impl TokenWheel,
        present: u64,
        tokens: &mut Vec<Token>,
    ) -> bool {
        tokens.clear();
        let Some(tick) = self.take_from_wheel(wheel, present, tokens) else {
            return false;
        };
        if let Some(mut waited) = self.later.remove(&tick) {
            tokens.append(&mut waited);
            self.spare = waited;
        }
        self.tick = tick;
        self.items.clear();
        self.popped = 0;
        true
    }

    /// Finds the next tick. Takes its tokens out of the wheel, but not those in `later`.
    fn take_from_wheel(
        &mut self,
        wheel: &mut impl TokenWheel,
        present: u64,
        tokens: &mut Vec<Token>,
    ) -> Option<u64> {
        let Self { later, batch, .. } = self;
        let first = later.keys().next().copied();
        if first.is_some_and(|first| wheel.next_expiry().is_none_or(|next| next > first)) {
            return first;
        }
        let wait = |Due { tick, token }| later.entry(tick).or_default().push(token);
        let Some(tick) = wheel.take_next(present, batch, wait) else {
            return later.keys().next().copied(); // beyond its reach, the wheel passes on all at once
        };
        let taken = (0..).map_while(|at| batch.get(at));
        if first.is_some_and(|first| first < tick) {
            later.entry(tick).or_default().extend(taken); // the wheel has announced an earlier tick
            batch.clear();
            return first;
        }
        tokens.extend(taken);
        batch.clear();
        Some(tick)
    }

    /// Adds a timeout of this tick.
    #[inline]
    pub(super) fn add(&mut self, order: Order, token: Token) {
        self.items.push(Item { order, token });
    }

    /// Keeps a token for a later tick of this pass.
    pub(super) fn postpone(&mut self, tick: u64, token: Token) {
        self.later.entry(tick).or_insert_with(|| std::mem::take(&mut self.spare)).push(token);
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
        self.later.clear();
        self.spare = Vec::new();
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
    items.sort_by_key(|item| item.order.0.wrapping_sub(base));
}
