//! Look: takes in the pending queue, decides whether each new timeout is due, near or far, and gives out the tokens of
//! those that are due, tick by tick (`next_due`).
//!
//! From the pending queue, the worker learns by when it must look at which chunk (see `intake/pending`). The chunk is
//! filed in the wheel under that time, as a timeout is. At a look, each New timeout of the chunk is one of these:
//!
//! - *due* in the current tick: it goes to `tick_queue`, which sorts it
//! - due in a later tick of this pass: it goes into the wheel at once, under that tick
//! - *near*: of the others, the nearest three quarters; all of them if they are twelve or fewer; none once the pass has
//!   reached the drain cap. After the due timeouts of the pass have run, the worker *files* it: it inserts its entry into
//!   the wheel
//! - *far*: it stays New, and the chunk is promised for the earliest of them
//!
//! So the worker looks about three times at a chunk that was filled, and not at each deadline. A cancel before
//! the filing leaves no dead entry.

use super::Worker;
use crate::intake::{SLOTS, Slot, is_look, version_of};
use crate::wheel::{Exact, Token};

/// The drain cap: the most timeouts that one pass files, like Netty's. The pass takes whole chunks, so it
/// may file up to 46 more.
pub(super) const DRAIN_CAP: usize = 100_000;

/// Of this many timeouts or fewer, all are near.
const FEW: usize = 12;

/// The number of tokens for which the worker keeps memory between ticks.
const TOKENS_KEPT: usize = 1 << 10;

/// How many timeouts before its claim a slot is prefetched.
const PREFETCHED_AHEAD: usize = 16;

/// A slot at most this far behind the last one is not prefetched.
const NEIGHBOURS: u32 = 8;

/// What the looks of one pass share.
#[derive(Default)]
pub(super) struct Look {
    /// Memory for the tokens of one tick.
    tokens: Vec<Token>,
    /// The near timeouts that were found in this pass.
    pub(super) near: Vec<Token>,
    /// The first tick that this pass may expire.
    pub(super) first: u64,
}

impl<W: Exact> Worker<W> {
    /// Takes in the pending queue: files the chunks in it, each under the tick of its look. If that has come by the
    /// `tick_now` tick, the pass up to that finds it.
    pub(super) fn take_in(&mut self, tick_now: u64) {
        let Self { control, chunks, filing, tidy, .. } = self;
        let scale = control.shared.gate.scale;
        chunks.take_in(&control.shared, |by, token| {
            tidy.ran += 1;
            filing.insert_in_pass(scale.tick_not_before(by), token, tick_now);
        });
    }

    /// Makes sure that the worker looks at a chunk by this time.
    pub(super) fn promise_look(&mut self, id: usize, by: u64) {
        let Self { control, chunks, filing, .. } = self;
        if let Some(token) = chunks.promise_look(id, by) {
            filing.insert(control.shared.gate.scale.tick_not_before(by), token);
        }
    }

    /// The next timeout of the current tick, or of the next one up to `tick`. `None` if no more are due.
    #[inline]
    pub(super) fn next_due(&mut self, tick: u64) -> Option<Token> {
        loop {
            if let Some(token) = self.due.ahead(PREFETCHED_AHEAD) {
                self.prefetch(token);
            }
            let next = self.due.pop();
            if next.is_some() {
                return next;
            }
            if self.look_on(tick) {
                continue;
            }
            // Once the tick is over, a burst yields to the other due timeouts.
            if self.shared().due_turn.is_made() && self.tick_now() <= tick {
                self.shared().due_turn.begin();
                self.take_in(tick);
            }
            if !self.begin_tick(tick) {
                return None;
            }
        }
    }

    /// Puts the timeouts of the next tick up to `tick_now` into the tick's queue. False if nothing is due.
    #[inline(never)]
    pub(super) fn begin_tick(&mut self, tick_now: u64) -> bool {
        let mut tokens = std::mem::take(&mut self.look.tokens);
        let tick = self.filing.take_tick(tick_now, &mut tokens);
        self.due.start = self.gate().scale.start_of(tick.unwrap_or_default());
        self.due.sources.clear(); // all were taken
        for (at, &token) in tokens.iter().enumerate() {
            if let Some(&ahead) = tokens.get(at + PREFETCHED_AHEAD) {
                self.prefetch(ahead);
            }
            if let Some(sequence) = self.chunks.order(token) {
                self.due.sources.add(sequence, token);
            }
        }
        tokens.clear();
        tokens.shrink_to(TOKENS_KEPT);
        self.look.tokens = tokens;
        self.due.sources.sort();
        tick.is_some()
    }

    /// Looks at chunks, until the next due timeouts of the tick are found. False if there are none.
    #[inline(never)]
    pub(super) fn look_on(&mut self, tick_now: u64) -> bool {
        self.due.group.clear();
        while let Some(token) = self.due.next_look() {
            self.look(token, tick_now);
        }
        self.due.group.sort();
        !self.due.group.is_done() || !self.due.sources.is_done()
    }

    /// Prefetches the memory that the run of a token's timeout will use. Neighbours of the last slot are
    /// left to the processor, which recognizes a sequence by itself.
    #[inline]
    fn prefetch(&mut self, token: Token) {
        let last = std::mem::replace(&mut self.prefetched, token.index);
        if token.index.wrapping_sub(last) <= NEIGHBOURS {
            return;
        }
        if let Some((chunk, offset)) = self.chunks.chunk(token).filter(|_| !is_look(token)) {
            chunk.prefetch(offset);
        }
    }

    /// Looks at a chunk in the current tick: what is due goes to the tick's queue, what is near is remembered for
    /// `file_near`, and the chunk is promised for the earliest of the others.
    ///
    /// A timeout may have been armed after its tick was expired: the first of a series, which keeps its phase, or one
    /// whose thread has read an old floor. It runs in the next tick that can expire. A missed run, and an internal timeout
    /// that was announced as due, run in their own tick.
    fn look(&mut self, token: Token, tick_now: u64) {
        let Self { control, chunks, filing, due, look, .. } = self;
        let scale = control.shared.gate.scale;
        let (now, end) = (due.start, scale.start_of(tick_now));
        let expired = look.first.checked_sub(1).map(|tick| scale.start_of(tick));
        let (mut left, mut count) = ([(0, token); SLOTS], 0);
        let looked = chunks.look(token, |chunk, offset, slot, deadline| {
            let waits = Some(deadline) <= expired && !slot.has_gone_on() && !chunk.internal;
            let due_at = if waits { scale.start_of(look.first) } else { deadline };
            let sequence = slot.sequence();
            let token = chunk.token(offset, version_of(sequence));
            if due_at > end {
                left[count] = (deadline, token);
                count += 1;
            } else if due_at <= now {
                due.group.add(sequence, token);
            } else {
                filing.insert_in_pass(scale.tick_not_before(due_at), token, tick_now);
            }
        });
        let Some(id) = looked else { return };
        let left = &mut left[..count];
        let nearest = if count > FEW { count - count / 4 } else { count };
        let nearest = if look.near.len() < DRAIN_CAP { nearest } else { 0 };
        if nearest < count {
            let (_, &mut (earliest, _), _) = left.select_nth_unstable(nearest);
            self.promise_look(id, earliest);
        }
        self.look.near.extend(left[..nearest].iter().map(|&(_, token)| token));
    }

    /// Files the near timeouts of this pass, once its due ones have run.
    pub(super) fn file_near(&mut self) {
        let Self { control, chunks, filing, look, .. } = self;
        if look.near.len() >= DRAIN_CAP {
            control.shared.counts.worker.passes_with_backlog.add(1);
        }
        let scale = control.shared.gate.scale;
        for token in look.near.drain(..) {
            let slot = chunks.chunk(token).map(|(chunk, offset)| chunk.slot(offset));
            if let Some((deadline, version)) = slot.and_then(Slot::file) {
                filing.insert(scale.tick_not_before(deadline), Token { version, ..token });
            }
        }
        look.near.shrink_to(TOKENS_KEPT);
    }
}
