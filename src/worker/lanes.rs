//! Lanes: the heaps that have something for the worker, and all chunks.
//!
//! A *lane* is a heap together with the candidates that the worker has taken from it and has not filed
//! yet. A heap that has had nothing for some passes rests without a lane (see `heap/heap`). So a pass does not
//! look at threads that do nothing. A dropped chunk leaves a gap in the list of chunks: all entries that
//! name it are dead.

use super::control::Control;
use crate::base::sync::Arc;
use crate::heap::{Candidate, Chunk, Heap, MarkedChunk, Registry, Slot, locate};
use crate::time::tick::NEVER;
use crate::timeout::Erased;
use crate::wheel::Token;
use std::collections::BinaryHeap;

/// A heap rests after this many passes without work. To rest and to come back costs as much as a few dozen
/// of these passes.
const QUIET_PASSES: u32 = 64;

/// The number of candidates for which a lane keeps memory between passes.
const KEPT: usize = 1 << 12;

/// A heap, and the candidates that were taken from it.
pub(super) struct Lane {
    pub(super) heap: Arc<Heap<Erased>>,
    /// Chunks that wait for a scan.
    to_scan: BinaryHeap<MarkedChunk<Erased>>,
    /// Candidates that are due, in the order in which the thread scheduled them.
    due: Vec<Candidate>,
    /// Candidates that are not due yet, in the same order. The pass that takes them also files them.
    rest: Vec<Candidate>,
    /// The number of passes since the heap had something for the worker.
    quiet: u32,
}

/// All lanes and chunks.
#[derive(Default)]
pub(super) struct Lanes {
    pub(super) all: Vec<Lane>,
    chunks: Vec<Option<Arc<Chunk<Erased>>>>,
    /// The lane with which the next transfer begins.
    pub(super) first: usize,
    /// Free slots that are not given back yet, all of one chunk: the chunk's number, and the slots' bits.
    freed: (usize, u64),
    /// The index of the slot that was prefetched last.
    prefetched: u32,
    /// A heap was retired, and the registry still has it.
    retired: bool,
}

/// A slot at most this far behind the last one is not prefetched.
const NEIGHBOURS: u32 = 8;

impl Lanes {
    /// Adds the heaps that have something for the worker since the last call, and the new chunks. A chunk is
    /// registered before any entry can name it.
    pub(super) fn discover(&mut self, registry: &Registry<Erased>) {
        while let Some(heap) = registry.next_heap() {
            if heap.come_to_worker() {
                let (to_scan, due, rest) = Default::default();
                self.all.push(Lane { heap, to_scan, due, rest, quiet: 0 });
            }
        }
        while let Some(chunk) = registry.next_new_chunk() {
            self.keep_chunk(chunk);
        }
    }

    fn keep_chunk(&mut self, chunk: Arc<Chunk<Erased>>) {
        if chunk.is_released() {
            return; // since the last call
        }
        let (id, _) = locate(chunk.index(0));
        if id >= self.chunks.len() {
            self.chunks.resize(id + 1, None);
        }
        self.chunks[id] = Some(chunk);
    }

    /// The time by which the worker must scan a queue or file candidates.
    pub(super) fn scan_by(&self) -> u64 {
        self.all.iter().map(Lane::scan_by).min().unwrap_or(NEVER)
    }

    /// The chunk of a token, unless it was dropped.
    #[inline]
    pub(super) fn chunk(&self, token: Token) -> Option<(&Arc<Chunk<Erased>>, usize)> {
        let (id, offset) = locate(token.index);
        Some((self.chunks.get(id)?.as_ref()?, offset))
    }

    #[inline]
    pub(super) fn slot(&self, token: Token) -> Option<&Slot<Erased>> {
        self.chunk(token).map(|(chunk, offset)| chunk.slot(offset))
    }

    /// Prefetches the memory that the run of an entry's timeout will use. Neighbours of the last slot are
    /// left to the processor, which recognizes a sequence by itself.
    #[inline]
    pub(super) fn prefetch(&mut self, token: Token) {
        let last = std::mem::replace(&mut self.prefetched, token.index);
        if token.index.wrapping_sub(last) <= NEIGHBOURS {
            return;
        }
        if let Some((chunk, offset)) = self.chunk(token) {
            chunk.prefetch(offset);
        }
    }

    /// The deadline of the pending timeout that an entry stands for. `None` if the entry is dead.
    #[inline]
    pub(super) fn standing(&self, token: Token) -> Option<u64> {
        self.slot(token)?.standing(token.version)
    }

    /// Scans a lane for `most` New slots, or a few more, if one of them may be due at time `by`. If
    /// `all_due`, takes all that are due. Keeps those that expire in this pass apart if `expires`. Returns
    /// how many it has taken, and whether New slots may be left.
    pub(super) fn scan(
        &mut self,
        number: usize,
        by: u64,
        expires: bool,
        most: usize,
        all_due: bool,
    ) -> (usize, bool) {
        let Some(lane) = self.all.get_mut(number) else { return (0, false) };
        if lane.heap.scan_by() > by {
            lane.free_memory();
            return (0, false);
        }
        let Lane { heap, to_scan, due, rest, .. } = lane;
        let before = due.len() + rest.len();
        let left = heap.scan(expires.then_some(by), most, all_due, to_scan, due, rest);
        (due.len() + rest.len() - before, left)
    }

    /// Files at most `most` due candidates of a lane, until `file` returns false. Returns the number of
    /// filed timeouts.
    pub(super) fn file_due(
        &mut self,
        number: usize,
        most: usize,
        mut file: impl FnMut(u64, Token) -> bool,
    ) -> usize {
        let Self { all, chunks, .. } = self;
        let Some(lane) = all.get_mut(number) else { return 0 };
        let (mut filed, mut tried) = (0, 0);
        for candidate in &lane.due {
            if filed == most {
                break;
            }
            tried += 1;
            let Some((deadline, token)) = file_one(chunks, candidate) else { continue };
            filed += 1;
            if !file(deadline, token) {
                break;
            }
        }
        lane.due.drain(..tried);
        recycle(&mut lane.due);
        filed
    }

    /// Files all candidates of a lane that are not due. Returns the number of filed timeouts.
    pub(super) fn file_rest(&mut self, number: usize, mut file: impl FnMut(u64, Token)) -> usize {
        let Self { all, chunks, .. } = self;
        let Some(lane) = all.get_mut(number) else { return 0 };
        let mut filed = 0;
        for candidate in lane.rest.drain(..) {
            let Some((deadline, token)) = file_one(chunks, &candidate) else { continue };
            file(deadline, token);
            filed += 1;
        }
        recycle(&mut lane.rest);
        filed
    }

    /// Records that a slot is Free. Free slots of one chunk are given back together.
    #[inline]
    pub(super) fn freed(&mut self, index: u32) {
        let (id, offset) = locate(index);
        if id != self.freed.0 {
            self.give_back();
            self.freed.0 = id;
        }
        self.freed.1 |= 1 << offset;
    }

    /// Gives back all slots that are recorded as Free.
    pub(super) fn give_back(&mut self) {
        let (id, slots) = std::mem::take(&mut self.freed);
        if let Some(chunk) = self.chunks.get(id).and_then(Option::as_ref).filter(|_| slots != 0) {
            chunk.give_back(slots);
        }
    }

    /// Drops the lanes of heaps that rest.
    pub(super) fn rest(&mut self) {
        self.retain(Lane::keeps_working);
    }

    /// Drops the lanes that `keep` denies. The others take turns as before.
    fn retain(&mut self, mut keep: impl FnMut(&mut Lane) -> bool) {
        let (mut number, mut before_first) = (0, 0);
        self.all.retain_mut(|lane| {
            let keeps = keep(lane);
            before_first += usize::from(keeps && number < self.first);
            number += 1;
            keeps
        });
        self.first = if before_first < self.all.len() { before_first } else { 0 };
        if self.all.len() < self.all.capacity() / 4 {
            self.all.shrink_to_fit();
        }
    }

    /// Drops the empty chunks of all heaps, except for the few that each heap keeps, and then the heaps of
    /// ended threads that have no chunk. Returns false if the worker must try again.
    pub(super) fn release(&mut self, control: &Control) -> bool {
        // First, because a chunk may have been used and emptied since the last pass.
        self.discover(&control.registry);
        let mut done = true;
        for number in 0..self.all.len() {
            if !self.all[number].heap.has_chunks_to_release() {
                continue;
            }
            let Self { all, chunks, .. } = self;
            let Lane { heap, to_scan, .. } = &mut all[number];
            done &= heap.release(to_scan, |id| {
                if let Some(known) = chunks.get_mut(id as usize) {
                    *known = None;
                }
                control.registry.recycle(id);
            });
        }
        let mut retired = self.retired;
        self.retain(|lane| match lane.is_unused().then(|| lane.heap.retire()) {
            Some(Some(retires)) => {
                retired |= retires;
                !retires
            }
            Some(None) => {
                done = false;
                true
            }
            None => true,
        });
        self.retired = retired && !control.registry.forget_retired();
        done && !self.retired
    }
}

/// Files a candidate if it is still New. Returns its deadline and its entry.
#[inline]
fn file_one(chunks: &[Option<Arc<Chunk<Erased>>>], candidate: &Candidate) -> Option<(u64, Token)> {
    let &Candidate { sequence, index, .. } = candidate;
    let (id, offset) = locate(index);
    let (deadline, version) = chunks.get(id)?.as_ref()?.slot(offset).file_as(sequence)?;
    Some((deadline, Token { index, version }))
}

impl Lane {
    /// The time by which the worker must file something.
    pub(super) fn scan_by(&self) -> u64 {
        if self.due.is_empty() { self.heap.scan_by() } else { 0 }
    }

    /// Whether the worker has nothing of the heap.
    fn is_unused(&self) -> bool {
        self.to_scan.is_empty() && self.due.is_empty() && self.rest.is_empty()
    }

    /// Counts a pass. Returns false if the heap rests now.
    fn keeps_working(&mut self) -> bool {
        let works = !self.is_unused() || self.heap.has_work();
        self.quiet = if works { 0 } else { self.quiet + 1 };
        self.quiet < QUIET_PASSES || !self.heap.rest()
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Frees the memory of empty lists, because the heap's thread may have ended.
    fn free_memory(&mut self) {
        let all = [&mut self.due, &mut self.rest].into_iter();
        all.filter(|some| some.is_empty()).for_each(|none| *none = Vec::new());
    }

    pub(super) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }
}

/// Limits the memory that an empty list keeps for the next pass.
fn recycle(candidates: &mut Vec<Candidate>) {
    if candidates.is_empty() && candidates.capacity() > KEPT {
        candidates.shrink_to(KEPT);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::heap::context::Context;
    use crate::heap::{Owner, Runs, SLOTS};

    const DUE: u64 = 1 << 40;

    fn arm(owner: &mut Owner<Erased>, count: usize) -> Vec<u32> {
        let armed = (0..count).map(|_| {
            assert!(owner.has_room());
            let offset = owner.arm(Erased::new(|| ()), DUE, Runs::MayGoOn);
            let chunk = owner.chunk().clone();
            owner.heap.announce(&chunk, DUE);
            chunk.index(offset)
        });
        armed.collect()
    }

    fn file(lanes: &mut Lanes, most: usize) -> Vec<u32> {
        let mut filed = Vec::new();
        let got = lanes.file_due(0, most, |deadline, token| {
            assert_eq!(deadline, DUE);
            filed.push(token.index);
            true
        });
        assert_eq!(got, filed.len());
        filed
    }

    /// Lanes with one heap, the heap's owner, and the control that they belong to.
    fn lane() -> (Arc<Control>, Lanes, Owner<Erased>) {
        let registry = Arc::new(Registry::new(Context::of_this_thread(None, 8)));
        let owner = Owner::enter(&registry).expect("there is room");
        let mut lanes = Lanes::default();
        lanes.discover(&registry);
        (Arc::new(Control::new(registry)), lanes, owner)
    }

    fn take(lanes: &mut Lanes, by: u64, expires: bool, control: &Control) {
        lanes.discover(&control.registry);
        lanes.scan(0, by, expires, usize::MAX, false);
    }

    /// Candidates of one scan are filed before those of a later scan.
    #[test]
    fn rule_07_scanned_timeouts_are_filed_before_later_ones() {
        let (control, mut lanes, mut owner) = lane();
        let mut armed = arm(&mut owner, 5);
        take(&mut lanes, DUE - 1, true, &control);
        assert_eq!((file(&mut lanes, 9).len(), lanes.scan_by()), (0, DUE), "nothing is due");
        take(&mut lanes, DUE, true, &control);
        assert_eq!(file(&mut lanes, 2), armed[..2]);
        assert_eq!(lanes.scan_by(), 0, "the candidates that are left must not wait");
        armed.extend(arm(&mut owner, 3));
        take(&mut lanes, DUE, true, &control);
        assert_eq!(file(&mut lanes, 9), armed[2..]);
        assert_eq!(lanes.scan_by(), NEVER);
    }

    /// A timeout that ends between the scan and the filing does not count against the drain cap.
    #[test]
    fn rule_01_only_pending_timeouts_are_filed() {
        for expires in [true, false] {
            let (control, mut lanes, mut owner) = lane();
            let armed = arm(&mut owner, 100);
            take(&mut lanes, DUE, expires, &control);
            for index in armed.iter().step_by(2) {
                let token = Token { index: *index, version: 0 };
                let (chunk, offset) = lanes.chunk(token).expect("known");
                assert!(chunk.slot(offset).take_back().is_some());
            }
            let left: Vec<u32> = armed.into_iter().skip(1).step_by(2).collect();
            if expires {
                assert_eq!(file(&mut lanes, 30), left[..30]);
                assert_eq!(file(&mut lanes, 30), left[30..]);
            } else {
                let mut filed = Vec::new();
                let got = lanes.file_rest(0, |_, token| filed.push(token.index));
                assert_eq!((got, filed), (50, left));
            }
        }
    }

    #[test]
    fn rule_04_memory_of_a_burst_is_freed() {
        for expires in [true, false] {
            let (control, mut lanes, mut owner) = lane();
            arm(&mut owner, 100_000);
            take(&mut lanes, DUE, expires, &control);
            if expires {
                assert_eq!(file(&mut lanes, usize::MAX).len(), 100_000);
            } else {
                assert_eq!(lanes.file_rest(0, |_, _| ()), 100_000);
            }
            let Lane { due, rest, .. } = &lanes.all[0];
            assert!(due.capacity() <= KEPT && rest.capacity() <= KEPT);
            take(&mut lanes, DUE, expires, &control);
            let Lane { due, rest, .. } = &lanes.all[0];
            assert_eq!((due.capacity(), rest.capacity()), (0, 0), "nothing is taken");
        }
    }

    /// All slots that a pass has freed go back to their chunks.
    #[test]
    fn rule_04_freed_slots_return_to_their_chunks() {
        let (control, mut lanes, mut owner) = lane();
        let armed = arm(&mut owner, 4 * SLOTS);
        lanes.discover(&control.registry);
        for &index in armed[..3 * SLOTS].iter().rev() {
            let slot = lanes.slot(Token { index, version: 0 }).expect("known");
            assert!(slot.take_back().is_some() && slot.unpin(2));
            lanes.freed(index);
        }
        lanes.give_back();
        lanes.give_back();
        let again: std::collections::BTreeSet<u32> =
            arm(&mut owner, 3 * SLOTS).into_iter().collect();
        assert_eq!(again, armed[..3 * SLOTS].iter().copied().collect());
    }

    /// Timeouts that were pulled forward have no order, so a scan need not read them all.
    #[test]
    fn rule_03_timeouts_that_were_pulled_forward_respect_the_cap() {
        const COUNT: usize = 20_000;
        let (control, mut lanes, mut owner) = lane();
        let armed = arm(&mut owner, COUNT);
        take(&mut lanes, DUE, false, &control);
        assert_eq!(lanes.file_rest(0, |_, _| ()), COUNT);
        for index in armed {
            let (chunk, offset) = lanes.chunk(Token { index, version: 0 }).expect("known");
            assert!(chunk.slot(offset).reschedule(DUE / 2).is_ok());
            chunk.announce(DUE / 2);
        }
        let (taken, left) = lanes.scan(0, DUE / 2, true, 1000, false);
        assert!(left && taken < 2000, "{taken} of a cap of 1,000");
    }

    /// Whatever number of chunks a burst has used, the heap of a thread that does nothing more rests.
    #[test]
    fn a_heap_without_work_rests() {
        for chunks in 1..50 {
            let (control, mut lanes, mut owner) = lane();
            let armed = arm(&mut owner, chunks * SLOTS);
            lanes.discover(&control.registry);
            for index in armed {
                let slot = lanes.slot(Token { index, version: 0 }).expect("known");
                assert!(slot.take_back().is_some() && slot.unpin(2));
                lanes.freed(index);
            }
            lanes.give_back();
            take(&mut lanes, DUE, true, &control);
            if control.context.is_release_wanted() {
                control.context.begin_release();
                assert!(lanes.release(&control));
            }
            (0..QUIET_PASSES).for_each(|_| lanes.rest());
            assert!(lanes.all.is_empty(), "after {chunks} chunks");
        }
    }

    /// A chunk that was released before the worker learnt of it is not kept.
    #[test]
    fn rule_04_a_released_chunk_is_not_discovered() {
        let (control, mut lanes, mut owner) = lane();
        let armed = arm(&mut owner, 2 * SLOTS);
        lanes.discover(&control.registry);
        let mut late = Lanes::default();
        let (first, _) = locate(armed[0]);
        let chunk = lanes.chunks[first].clone().expect("known");
        chunk.set_released();
        late.keep_chunk(chunk);
        assert!(late.chunks.is_empty());
    }

    #[test]
    fn an_entry_of_an_unknown_chunk_is_dead() {
        let lanes = Lanes::default();
        for index in [0, 64, u32::MAX] {
            assert_eq!(lanes.standing(Token { index, version: 0 }), None);
        }
    }
}
