//! Look: takes in the pending queue, and finds the timeouts that are due, tick by tick.
//!
//! The pending queue says by when the worker must look at which chunk (see `intake/pending`). The chunk is
//! filed in the wheel under that time, as a timeout is. A look passes the timeouts that are due to
//! `tick_queue`, which sorts them. The others are left to `drain`.

use super::Worker;
use super::chunks::FileChunk;
use super::expire::PREFETCHED_AHEAD;
use super::tick_queue::Order;
use crate::intake::version_of;
use crate::time::tick::NEVER;
use crate::wheel::{Exact, Token};

/// The number of tokens for which the worker keeps memory between ticks.
const TOKENS_KEPT: usize = 1 << 10;

impl<W: Exact> Worker<W> {
    /// Takes in the pending queue: files the chunks in it, each under the tick of its look. If that has come by the
    /// `present` tick, the pass up to that finds it.
    pub(super) fn take_in(&mut self, present: u64) {
        let Self { control, chunks, filing, ran, .. } = self;
        let scale = control.shared.gate.scale;
        chunks.take_in(&control.shared, |FileChunk { by, token }| {
            *ran += 1;
            filing.put_off(scale.tick_not_before(by), token, present);
        });
    }

    /// Makes sure that the worker looks at a chunk by this time.
    pub(super) fn look_by(&mut self, id: usize, by: u64) {
        let Self { control, chunks, filing, .. } = self;
        if let Some(FileChunk { by, token }) = chunks.look_by(id, by) {
            filing.insert(control.shared.gate.scale.tick_not_before(by), token);
        }
    }

    /// Puts the timeouts of the next tick up to `present` into the tick's queue. False if nothing is due.
    #[inline(never)]
    pub(super) fn begin_tick(&mut self, present: u64) -> bool {
        let mut tokens = std::mem::take(&mut self.tokens);
        let tick = self.filing.take_tick(present, &mut tokens);
        self.due.begin(self.control.shared.gate.scale.start_of(tick.unwrap_or_default()));
        for (at, &token) in tokens.iter().enumerate() {
            if let Some(&ahead) = tokens.get(at + PREFETCHED_AHEAD) {
                self.prefetch_order(ahead);
            }
            if let Some(sequence) = self.chunks.order(token) {
                self.due.add_source(Order::new(sequence), token);
            }
        }
        tokens.clear();
        tokens.shrink_to(TOKENS_KEPT);
        self.tokens = tokens;
        self.due.sort_sources();
        tick.is_some()
    }

    /// Looks at chunks, until the next due timeouts of the tick are found. False if there are none.
    #[inline(never)]
    pub(super) fn look_on(&mut self, present: u64) -> bool {
        self.due.begin_group();
        while let Some(token) = self.due.next_look() {
            self.look(token, present);
        }
        if let Some(next) = self.due.next_source() {
            self.prefetch(next);
        }
        self.due.sort_group() || self.due.next_source().is_some()
    }

    /// Looks at a chunk in the present tick.
    ///
    /// A timeout may have been armed after its tick was expired: the first of a series, which keeps its phase, or one
    /// whose thread has read an old floor. It runs in the next tick that can expire. A missed run, and an internal timeout
    /// that was announced as due, run in their own tick.
    fn look(&mut self, token: Token, present: u64) {
        let Self { control, chunks, filing, due, to_file, first, .. } = self;
        let scale = control.shared.gate.scale;
        let Some(id) = chunks.take(token) else { return };
        let (now, end) = (due.start, scale.start_of(present));
        let expired = first.checked_sub(1).map(|tick| scale.start_of(tick));
        let left = chunks.look(id, |chunk, offset, slot, deadline| {
            let waits = Some(deadline) <= expired && !slot.has_gone_on() && !chunk.internal;
            let due_at = if waits { scale.start_of(*first) } else { deadline };
            if due_at > end {
                return false;
            }
            let sequence = slot.sequence();
            let token = chunk.token(offset, version_of(sequence));
            if due_at <= now {
                due.add_to_group(Order::new(sequence), token);
            } else {
                filing.put_off(scale.tick_not_before(due_at), token, present);
            }
            true
        });
        if left != NEVER {
            to_file.push((id as u32, left));
        }
    }
}
