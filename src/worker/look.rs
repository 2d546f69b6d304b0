//! Look: finds new timeouts in their chunks, and moves those that are not due yet into the wheel.
//!
//! The pending queue says by when the worker must look at which chunk (see `intake/pending`). A look passes on
//! the timeouts that are due. Once these have run, the worker *files* the nearest three quarters of the others: it
//! inserts their entries into the wheel, each with its remaining rounds. The chunk goes back into the wheel
//! under its next deadline. So the worker looks at a chunk some three times in its life, and not at each
//! deadline. What is cancelled before it is filed leaves no dead entry.

use super::Worker;
use super::due::Order;
use super::expire::PREFETCHED_AHEAD;
use crate::intake::{FileChunk, SLOTS, version_of};
use crate::time::tick::NEVER;
use crate::wheel::{Exact, Standing, Token};

/// The drain cap: the most timeouts that one pass files, like Netty's. The pass takes whole chunks, so it
/// may file up to 61 more.
pub(super) const DRAIN_CAP: usize = 100_000;

/// The number of timeouts that are filed between two checks whether something is due.
const SLICE: usize = 1 << 12;

/// Of this many timeouts or fewer, all are filed.
const FEW: usize = 12;

impl<W: Exact> Worker<W> {
    /// Takes in the pending queue: files the chunks in it, each under the tick of its look.
    pub(super) fn take_in(&mut self) {
        let Self { control, looks, filing, ran, .. } = self;
        let scale = control.context.scale;
        looks.take_in(&control.registry, |FileChunk { by, token }| {
            *ran += 1;
            filing.insert(scale.tick_not_before(by), token);
        });
    }

    /// Makes sure that the worker looks at a chunk by this time.
    pub(super) fn look_by(&mut self, id: usize, by: u64) {
        let Self { control, looks, filing, .. } = self;
        if let Some(FileChunk { by, token }) = looks.look_by(id, by) {
            filing.insert(control.context.scale.tick_not_before(by), token);
        }
    }

    /// Puts the timeouts of the next tick up to `present` on the agenda. False if nothing is due.
    #[inline(never)]
    pub(super) fn begin_tick(&mut self, present: u64) -> bool {
        let mut tokens = std::mem::take(&mut self.tokens);
        let tick = self.filing.take_tick(present, &mut tokens);
        self.agenda.begin(self.control.context.scale.start_of(tick.unwrap_or_default()));
        for (at, &token) in tokens.iter().enumerate() {
            if let Some(&ahead) = tokens.get(at + PREFETCHED_AHEAD) {
                self.prefetch_order(ahead);
            }
            if let Some((sequence, arena)) = self.looks.order(token) {
                self.agenda.add_source(Order::new(sequence, arena), token);
            }
        }
        tokens.clear();
        tokens.shrink_to(SLICE);
        self.tokens = tokens;
        self.agenda.sort_sources();
        tick.is_some()
    }

    /// Looks at chunks, until the agenda has the next due timeouts of its tick. False if there are none.
    #[inline(never)]
    pub(super) fn look_on(&mut self, present: u64) -> bool {
        self.agenda.begin_group();
        while let Some(token) = self.agenda.next_look() {
            self.look(token, present);
        }
        if let Some(next) = self.agenda.next_source() {
            self.prefetch(next);
        }
        self.agenda.sort_group() || self.agenda.next_source().is_some()
    }

    /// Looks at a chunk in the agenda's tick.
    fn look(&mut self, token: Token, present: u64) {
        let Self { control, looks, filing, agenda, to_file, .. } = self;
        let scale = control.context.scale;
        let Some(id) = looks.take(token) else { return };
        let (now, end) = (agenda.start, scale.start_of(present));
        let left = looks.look(id, |chunk, offset, deadline| {
            if deadline > end {
                return false;
            }
            let sequence = chunk.slot(offset).sequence();
            let token = chunk.token(offset, version_of(sequence));
            if deadline <= now {
                agenda.add_to_group(Order::new(sequence, chunk.arena), token);
            } else {
                let later = Standing::Later(scale.tick_not_before(deadline));
                filing.settle(token, later, present);
            }
            true
        });
        if left != NEVER {
            to_file.push((id as u32, left));
        }
    }

    /// Files most timeouts of each chunk that was looked at in this pass, and puts the chunk back into the
    /// wheel. Beyond the drain cap, or once something is due, the chunks go back unfiled.
    pub(super) fn file(&mut self) {
        let mut to_file = std::mem::take(&mut self.to_file);
        let (mut filed, mut until_check, mut goes_on) = (0, SLICE, true);
        for (id, left) in to_file.drain(..) {
            if goes_on {
                let n = self.file_nearest(id as usize);
                (filed, until_check) = (filed + n, until_check.saturating_sub(n));
                if until_check == 0 {
                    (goes_on, until_check) = (filed < DRAIN_CAP && !self.is_needed(), SLICE);
                }
            } else {
                self.look_by(id as usize, left);
            }
        }
        if filed >= DRAIN_CAP {
            self.context().counts.metrics.backlog_left();
        }
        to_file.shrink_to(SLICE);
        self.to_file = to_file;
    }

    /// Whether the worker has something to do that must not wait.
    fn is_needed(&mut self) -> bool {
        let now = self.now();
        let tick = self.context().scale.tick_at(now);
        let due = self.filing.next_expiry().is_some_and(|next| next <= tick);
        let new = tick > self.last_pass && !self.context().pending.is_empty();
        due || new || self.context().is_closed()
    }

    /// Files the nearest three quarters of a chunk's New timeouts. Returns their number.
    pub(super) fn file_nearest(&mut self, id: usize) -> usize {
        let Self { control, looks, filing, .. } = self;
        let scale = control.context.scale;
        let (mut new, mut count) = ([(0, 0); SLOTS], 0);
        looks.look(id, |_, offset, deadline| {
            if deadline != NEVER {
                new[count] = (deadline, offset);
                count += 1;
            }
            true
        });
        let new = &mut new[..count];
        let near = if count > FEW { count - count / 4 } else { count };
        let mut next = NEVER;
        if near < count {
            next = new.select_nth_unstable(near).1.0;
        }
        let Some(chunk) = looks.get(id) else { return 0 };
        let mut filed = 0;
        for &(_, offset) in &new[..near] {
            if let Some((deadline, version)) = chunk.slot(offset).file() {
                filing.insert(scale.tick_not_before(deadline), chunk.token(offset, version));
                filed += 1;
            }
        }
        control.context.counts.filed(chunk.internal, filed);
        self.look_by(id, next);
        filed
    }
}
