//! Drain: moves timeouts that are not due yet into the wheel.
//!
//! After a look, once the due timeouts of the pass have run, the worker *files* the nearest three quarters of
//! the chunk's other timeouts, or all if they are few: it inserts their entries into the wheel, which keeps the
//! remaining rounds of each. If others stay behind, the chunk goes back into the wheel under the earliest of
//! their deadlines. So the worker looks at a chunk some three times in its life, and not at each deadline. What
//! is cancelled before it is filed leaves no dead entry.

use super::Worker;
use crate::intake::SLOTS;
use crate::time::tick::NEVER;
use crate::wheel::Exact;

/// The drain cap: the most timeouts that one pass files, like Netty's. The pass takes whole chunks, so it
/// may file up to 61 more.
pub(super) const DRAIN_CAP: usize = 100_000;

/// The number of timeouts that are filed between two checks whether something is due.
const SLICE: usize = 1 << 12;

/// The number of chunks for which the worker keeps memory between passes.
const CHUNKS_KEPT: usize = 1 << 10;

/// Of this many timeouts or fewer, all are filed.
const FEW: usize = 12;

impl<W: Exact> Worker<W> {
    /// Files most timeouts of each chunk that was looked at in this pass, and puts the chunk back into the
    /// wheel. Beyond the drain cap, or once something is due, the chunks go back unfiled.
    pub(super) fn drain(&mut self) {
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
            self.shared().counts.worker.passes_with_backlog.add(1);
        }
        to_file.shrink_to(CHUNKS_KEPT);
        self.to_file = to_file;
    }

    /// Whether the worker has something to do that must not wait.
    fn is_needed(&mut self) -> bool {
        let now = self.now();
        let tick = self.gate().scale.tick_at(now);
        let due = self.filing.next_expiry().is_some_and(|next| next <= tick);
        let new = tick > self.last_pass && !self.shared().pending.is_empty();
        due || new || self.gate().is_closed()
    }

    /// Files the nearest three quarters of a chunk's New timeouts. Returns their number.
    pub(super) fn file_nearest(&mut self, id: usize) -> usize {
        let Self { control, chunks, filing, .. } = self;
        let scale = control.shared.gate.scale;
        let (mut new, mut count) = ([(0, 0); SLOTS], 0);
        chunks.look(id, |_, offset, _, deadline| {
            new[count] = (deadline, offset);
            count += 1;
            true
        });
        let new = &mut new[..count];
        let near = if count > FEW { count - count / 4 } else { count };
        let mut next = NEVER;
        if near < count {
            next = new.select_nth_unstable(near).1.0;
        }
        let Some(chunk) = chunks.get(id) else { return 0 };
        let mut filed = 0;
        for &(_, offset) in &new[..near] {
            if let Some((deadline, version)) = chunk.slot(offset).file() {
                filing.insert(scale.tick_not_before(deadline), chunk.token(offset, version));
                filed += 1;
            }
        }
        self.look_by(id, next);
        filed
    }
}
