//! A heap: the part of a thread's timeouts that the thread shares with the worker.
//!
//! Concepts:
//!
//! - A thread arms slots, which lie in chunks (see `slot` and `chunk`). An armed slot is *New* until the
//!   worker files it in the wheel.
//! - The *pending queue* holds the chunks that the worker has to scan: those with a slot that became
//!   New, or with a New slot whose deadline moved to a sooner time.
//! - A chunk in the queue is *marked*, so it is there at most once. The first thread that has something
//!   new marks the chunk and queues it.
//! - `earliest` is the earliest deadline that was announced since the last scan. After a cancel it may
//!   be too early, but it is never too late.
//! - To *announce* a slot is to mark its chunk and to lower `earliest`.
//! - To *scan* is to take chunks out of the queue, to remove their marks, and to read their slots. The
//!   worker scans a heap only when one of its New slots may be due. So a timeout that is cancelled
//!   before that costs the worker nothing.
//!
//! | step | a producer, after arming a slot | the worker |
//! |---|---|---|
//! | 1 | fence | sets `earliest` to never, fence; takes a chunk out of the queue and removes its mark |
//! | 2 | if the chunk has no mark: marks and queues it, fence | fence |
//! | 3 | if `earliest` is later than the deadline: lowers it, fence | reads the slots of the chunk |
//!
//! **No new timeout is missed.** The fences are sequentially consistent, so one of the two fences comes
//! first. If the producer's does, the worker finds the slot armed. If the worker's does, the producer
//! finds the chunk without its mark, and `earliest` at never or at a value that was stored later. So it
//! queues the chunk again and lowers `earliest`. A producer that has queued a chunk fences again before
//! it reads `earliest`: if it reads a value from before the worker's step 1, the worker finds the chunk
//! in the queue.
//!
//! **A mark can be relied on.** Two threads can announce slots of one chunk: the owner, and a thread that
//! moves a timeout of the chunk. Suppose that the second finds the mark of the first before the chunk is
//! in the queue. Then a scan between the two loses the deadline of the second. So the first announces
//! the earliest deadline of all New slots of the chunk once the chunk is in the queue. One of the two
//! threads' fences comes first: either the first thread finds the second's slot New, or the second
//! announces its deadline after the chunk was queued.
//!
//! **The order of one thread is kept.** The worker reads `next_sequence` before it takes the queue. It
//! takes only slots with smaller sequence numbers, and sorts them by these. All of these slots were armed
//! before the scan. The others wait for the next scan, so a slot that is armed during a scan does not
//! overtake an earlier one. A slot that the scan has found can be reused before the worker files it. The
//! new timeout does not overtake an earlier one either: `Slot::file_as` compares the sequence number
//! again.
//!
//! **A scan is bounded.** The worker keeps the marked chunks in a priority queue, ordered by their
//! lowest sequence number, and reads chunks from there until it has found enough New slots. A chunk that
//! is left may have older slots than some of these. The worker takes only slots that are older than
//! every slot in the chunks that are left. So the order also holds from scan to scan.
//!
//! The fence in `announce` also serves closing and the alarm (see `context` and `alarm`).

use super::chunk::{Chunk, Home, SLOTS};
use super::context::Context;
use super::tally::Tally;
use crate::base::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, SegQueue, fence,
};
use crate::time::tick::NEVER;
use std::collections::{BinaryHeap, HashMap};

/// A queue of this many chunks is scanned even if nothing in it is due. A smaller number would be
/// worse: a timeout that is cancelled before its chunk is scanned costs the worker nothing.
const LONG_QUEUE: usize = 1 << 12;

/// A queue is also scanned once per this many timeouts, so that the sequence numbers of New slots can
/// be compared.
pub(super) const SEQUENCES_PER_SCAN: u64 = 1 << 30;

/// The most chunks that one scan reads. If few of their slots are New, this takes about 2 ms.
const MOST_CHUNKS: usize = 1 << 14;

/// The most chunks that a scan reads between two fences.
const CHUNKS_PER_FENCE: usize = 64;

/// The number of empty chunks that a heap keeps for the next burst.
const EMPTY_KEPT: usize = if cfg!(loom) { 0 } else { 16 };

/// The part of a thread's timeouts that the thread shares with the worker.
#[repr(align(128))] // no two threads write to one pair of cache lines
pub(crate) struct Heap<P> {
    /// The sequence number of the next slot that the owner arms. Only the owner writes it.
    pub(super) next_sequence: AtomicU64,
    /// The earliest deadline that was announced and not scanned yet; `NEVER` if there is none.
    earliest: AtomicU64,
    /// The worker must scan the queue even if nothing is due.
    scan_wanted: AtomicBool,
    /// The counts of the heap's thread.
    pub(crate) tally: Arc<Tally>,
    /// Whether this is the heap of the crate's own timeouts. Its tally is `Context::internals`.
    pub(crate) internal: bool,
    pub(crate) context: Arc<Context>,
    pending: SegQueue<Arc<Chunk<P>>>,
    /// Disowned chunks that have free slots for a next owner.
    pub(super) pool: SegQueue<Arc<Chunk<P>>>,
    /// The number of chunks in the pool, or on their way there, that have no used slot.
    /// It wraps for a moment if a chunk is uncounted before it is counted.
    empty: AtomicUsize,
    /// All chunks, by number. The worker waits for this lock only to end the timer; see `registry`.
    pub(super) chunks: Mutex<HashMap<u32, Arc<Chunk<P>>>>,
}

/// A marked chunk that the worker has taken out of the queue, and has not scanned yet.
pub(crate) struct MarkedChunk<P> {
    /// A sequence number before which no slot is New.
    from: u64,
    chunk: Arc<Chunk<P>>,
}

impl<P> MarkedChunk<P> {
    fn new(chunk: Arc<Chunk<P>>) -> Self {
        Self { from: chunk.new_from(), chunk }
    }
}

/// The chunk with the lowest sequence number compares as the greatest, so `BinaryHeap` returns it first.
impl<P> Ord for MarkedChunk<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.from.cmp(&self.from)
    }
}

impl<P> PartialOrd for MarkedChunk<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for MarkedChunk<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for MarkedChunk<P> {}

/// The New slots of a chunk that wait for the next scan.
struct Left {
    /// The lowest sequence number.
    from: u64,
    /// The earliest deadline.
    earliest: u64,
}

/// Offers the New slots that were armed before sequence number `bound` to `take`. Returns the other New
/// slots, and those that `take` refuses.
fn scan_chunk<P>(
    chunk: &Chunk<P>,
    bound: u64,
    mut take: impl FnMut(Candidate) -> bool,
) -> Option<Left> {
    let mut left = None::<Left>;
    for (offset, slot) in chunk.slots().enumerate() {
        let Some((deadline, sequence)) = slot.if_new() else { continue };
        let sequence = sequence.unwrap_or((bound as u32).wrapping_sub(1));
        let ahead = sequence.wrapping_sub(bound as u32) as i32;
        if ahead < 0 && take(Candidate { sequence, index: chunk.index(offset), deadline }) {
            continue;
        }
        let (from, earliest) = (bound.saturating_add_signed(i64::from(ahead)), deadline);
        let other = left.get_or_insert(Left { from, earliest });
        (other.from, other.earliest) = (other.from.min(from), other.earliest.min(earliest));
    }
    left
}

/// A slot that a scan has found New, and that the worker will file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The slot's sequence number. If that is out of date, the slot counts as the last before this scan.
    pub(crate) sequence: u32,
    pub(crate) index: u32,
    /// Its deadline during this scan. If the timeout is pulled forward later, another scan finds it. If
    /// it is pushed back, it is filed under its new deadline.
    pub(crate) deadline: u64,
}

impl Candidate {
    /// Sorts the candidates of one scan into the order in which the thread scheduled them. Sequence
    /// numbers wrap, so they are compared by their distance from one of them.
    pub(crate) fn sort(candidates: &mut [Self]) {
        let Some(base) = candidates.first().map(|first| first.sequence) else { return };
        // The stable sort finds runs, so it is linear if most slots were armed in a row.
        candidates.sort_by_key(|candidate| candidate.sequence.wrapping_sub(base) as i32);
    }
}

impl<P> Heap<P> {
    pub(super) fn new(context: Arc<Context>, tally: Arc<Tally>) -> Self {
        Self {
            internal: Arc::ptr_eq(&tally, &context.internals),
            next_sequence: AtomicU64::new(0),
            earliest: AtomicU64::new(NEVER),
            scan_wanted: AtomicBool::new(false),
            tally,
            context,
            pending: SegQueue::new(),
            pool: SegQueue::new(),
            empty: AtomicUsize::new(0),
            chunks: Mutex::new(HashMap::new()),
        }
    }

    /// Announces that a slot of `chunk`, which is a chunk of this heap, is New with this deadline (see
    /// the head). Wakes the worker if it would sleep too long.
    #[inline]
    pub(crate) fn announce(&self, chunk: &Arc<Chunk<P>>, deadline: u64) {
        fence(Ordering::SeqCst);
        let deadline = if chunk.mark() { self.queue(chunk, deadline) } else { deadline };
        if deadline < self.earliest.load(Ordering::Relaxed) {
            self.lower_earliest(deadline);
        }
        self.context.alarm.submitted(deadline);
    }

    #[cold]
    fn lower_earliest(&self, deadline: u64) {
        let relaxed = Ordering::Relaxed;
        let lower = |earliest| (deadline < earliest).then_some(deadline);
        let _ = self.earliest.fetch_update(relaxed, relaxed, lower);
        fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
    }

    /// Queues a chunk that the caller has marked. Returns the deadline to announce.
    #[cold]
    fn queue(&self, chunk: &Arc<Chunk<P>>, deadline: u64) -> u64 {
        // Slots that rely on this mark are armed later, or are the slot that the owner armed last.
        chunk.lower_new_from(self.next_sequence.load(Ordering::Relaxed).saturating_sub(1));
        self.pending.push(chunk.clone());
        if self.pending.len() >= LONG_QUEUE {
            self.want_scan();
        }
        fence(Ordering::SeqCst);
        // Another thread may have found the mark before the chunk was in the queue. If a scan between
        // the two has lost its deadline, its slot is found New here.
        deadline.min(chunk.earliest_new())
    }

    /// Requests a scan, even if nothing is due.
    #[cold]
    pub(super) fn want_scan(&self) {
        let wanted = self.scan_wanted.load(Ordering::Relaxed);
        if !wanted && !self.scan_wanted.swap(true, Ordering::Release) {
            self.context.alarm.call();
        }
    }

    /// The time by which the worker must scan the queue.
    #[inline]
    pub(crate) fn scan_by(&self) -> u64 {
        if self.scan_wanted.load(Ordering::Acquire) {
            return 0;
        }
        self.earliest.load(Ordering::Acquire)
    }

    /// Takes `most` New slots, the oldest first. It reads whole chunks, so it may take up to 61 more. If
    /// `all_due`, also takes all others that are due at time `by`. Appends the slots that are due at `by`
    /// to `due` and the others to `rest`, both in the order of scheduling. Returns true if New slots may
    /// be left. The caller keeps `to_scan` from call to call.
    ///
    /// Stops early once the timer is closed: closing finds all pending timeouts in their slots.
    pub(crate) fn scan(
        &self,
        by: Option<u64>,
        most: usize,
        all_due: bool,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
        due: &mut Vec<Candidate>,
        rest: &mut Vec<Candidate>,
    ) -> bool {
        let next = self.next_sequence.load(Ordering::Acquire);
        self.scan_wanted.store(false, Ordering::Relaxed);
        // Acquire: if this swap loses a deadline, the chunk of that deadline is already queued.
        self.earliest.swap(NEVER, Ordering::Acquire);
        fence(Ordering::SeqCst);
        self.drain_queue(to_scan);
        let ends = || self.context.is_closed();
        let (mut scanned, mut found) = (Vec::new(), 0);
        while !ends()
            && found < most
            && !to_scan.is_empty()
            && scanned.len() < MOST_CHUNKS.max(most)
        {
            let first = scanned.len();
            let chunks = CHUNKS_PER_FENCE.min((most - found).div_ceil(SLOTS));
            let next_ones = (0..chunks).map_while(|_| to_scan.pop());
            scanned
                .extend(next_ones.map(|marked| marked.chunk).filter(|chunk| !chunk.is_released()));
            scanned[first..].iter().for_each(|chunk| chunk.unmark());
            fence(Ordering::SeqCst);
            found += scanned[first..].iter().map(|chunk| chunk.count_new()).sum::<usize>();
        }
        // Slots that are newer than a slot in a chunk that is left must wait, to keep the order.
        let bound = to_scan.peek().map_or(next, |marked| marked.from.min(next));
        let capped = !to_scan.is_empty() && !ends();
        let first = (due.len(), rest.len());
        let is_due = |candidate: &Candidate| by.is_some_and(|by| candidate.deadline <= by);
        for chunk in scanned {
            let left = scan_chunk(&chunk, bound, |candidate| {
                if is_due(&candidate) {
                    due.push(candidate)
                } else {
                    rest.push(candidate)
                }
                true
            });
            self.scan_again(chunk, left, to_scan);
        }
        if all_due && by.is_some() {
            let others: Vec<_> = to_scan.drain().map(|marked| marked.chunk).collect();
            others.iter().for_each(|chunk| chunk.unmark());
            fence(Ordering::SeqCst);
            let others = others.into_iter().take_while(|_| !ends());
            for chunk in others.filter(|chunk| !chunk.is_released()) {
                let left = scan_chunk(&chunk, next, |candidate| {
                    let takes = is_due(&candidate);
                    due.extend(Some(candidate).filter(|_| takes));
                    takes
                });
                self.scan_again(chunk, left, to_scan);
            }
        }
        Candidate::sort(&mut due[first.0..]);
        Candidate::sort(&mut rest[first.1..]);
        if capped {
            self.scan_wanted.store(true, Ordering::Relaxed);
        }
        capped
    }

    /// Keeps a chunk for the next scan if New slots are left in it.
    fn scan_again(
        &self,
        chunk: Arc<Chunk<P>>,
        left: Option<Left>,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
    ) {
        let Some(Left { from, earliest }) = left else { return };
        chunk.lower_new_from(from);
        self.lower_earliest(earliest);
        if chunk.mark() {
            to_scan.push(MarkedChunk { from, chunk });
        }
    }

    fn drain_queue(&self, to_scan: &mut BinaryHeap<MarkedChunk<P>>) {
        for _ in 0..self.pending.len() {
            to_scan.extend(self.pending.pop().map(MarkedChunk::new));
        }
    }

    /// Removes the marks of the empty chunks, which have nothing to scan. The worker calls it before it
    /// releases them. If a chunk is no longer empty after the fence, it may have a New slot that relies
    /// on the mark, so it is marked again.
    fn unmark_empty(&self, to_scan: &mut BinaryHeap<MarkedChunk<P>>) {
        self.drain_queue(to_scan);
        to_scan.retain(|marked| {
            let chunk = &marked.chunk;
            if !chunk.is_empty() {
                return true;
            }
            chunk.unmark();
            fence(Ordering::SeqCst);
            if chunk.is_empty() {
                return false;
            }
            chunk.lower_new_from(marked.from);
            chunk.mark()
        });
    }

    fn has_more_empty_than(&self, kept: usize) -> bool {
        self.empty.load(Ordering::Relaxed) as isize > kept as isize
    }

    pub(super) fn uncount_empty(&self) {
        self.empty.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the worker should `release` chunks.
    pub(crate) fn has_chunks_to_release(&self) -> bool {
        self.has_more_empty_than(EMPTY_KEPT)
    }

    /// Drops the empty chunks of the pool, except for the `EMPTY_KEPT` that stay, and passes their
    /// numbers to `released`. Only the worker calls it. Returns false if another thread uses the list
    /// of chunks: the worker tries again later.
    pub(crate) fn release(
        &self,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
        mut released: impl FnMut(u32),
    ) -> bool {
        self.unmark_empty(to_scan);
        let Some(mut chunks) = self.chunks.try_lock() else { return false };
        for _ in 0..self.pool.len() {
            let Some(chunk) = self.pool.pop() else { break };
            if chunk.is_empty() && !chunk.is_marked() && self.has_chunks_to_release() {
                self.uncount_empty();
                chunk.set_released();
                chunks.remove(&chunk.id);
                released(chunk.id);
            } else {
                self.pool.push(chunk);
            }
        }
        if chunks.len() < chunks.capacity() / 4 {
            chunks.shrink_to_fit();
        }
        true
    }

    /// Gives up all chunks after the timer has ended.
    pub(super) fn clear(&self) {
        std::mem::take(&mut *self.chunks.lock()).values().for_each(Chunk::orphan);
        while self.pending.pop().is_some() {}
        while self.pool.pop().is_some() {}
    }
}

impl<P: Send> Home<P> for Heap<P> {
    fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn is_internal(&self) -> bool {
        self.internal
    }

    fn announce(&self, chunk: &Arc<Chunk<P>>, deadline: u64) {
        Heap::announce(self, chunk, deadline);
    }

    fn reuse(&self, chunk: Arc<Chunk<P>>) {
        self.pool.push(chunk);
    }

    fn count_empty(&self) {
        self.empty.fetch_add(1, Ordering::Relaxed);
        if self.has_more_empty_than(EMPTY_KEPT + self.pool.len() / 4) {
            self.context.want_release();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::heap::chunk::locate;
    use crate::heap::owner::tests::{DUE, Place, Producer, end_elsewhere};
    use crate::heap::slot::{Claim, Moved, Phase};

    impl Producer {
        fn heap(&self) -> &Heap<u32> {
            &self.owner.heap
        }

        /// Scans for New slots and files them. Returns the numbers of the timeouts, in that order.
        fn take(&self) -> Vec<u32> {
            let (due, rest) = self.scan(Some(NEVER));
            assert!(rest.is_empty());
            due.iter().map(|candidate| self.claim(candidate.index)).collect()
        }

        fn scan(&self, by: Option<u64>) -> (Vec<Candidate>, Vec<Candidate>) {
            let (mut due, mut rest) = (Vec::new(), Vec::new());
            let mut to_scan = BinaryHeap::new();
            self.heap().scan(by, usize::MAX, false, &mut to_scan, &mut due, &mut rest);
            to_scan.into_iter().for_each(|marked| self.heap().pending.push(marked.chunk));
            (due, rest)
        }

        fn release(&self, released: impl FnMut(u32)) -> bool {
            let mut to_scan = BinaryHeap::new();
            let done = self.heap().release(&mut to_scan, released);
            to_scan.into_iter().for_each(|marked| self.heap().pending.push(marked.chunk));
            done
        }

        /// Files a timeout and runs it. Returns its number.
        fn claim(&self, index: u32) -> u32 {
            let (id, offset) = locate(index);
            let chunk = self.registry.chunk(id as u32).expect("the chunk exists");
            let slot = chunk.slot(offset);
            let (_, version) = slot.file().expect("the slot is New");
            let Claim::Due(claimed) = slot.claim(version, NEVER) else { panic!("not due") };
            slot.finish();
            assert!(slot.unpin(2));
            chunk.give_back(1 << offset);
            claimed.payload
        }
    }

    fn numbers(range: std::ops::Range<u32>) -> Vec<u32> {
        range.collect()
    }

    #[test]
    fn rule_07_new_timeouts_are_scanned_in_scheduling_order() {
        let mut producer = Producer::new();
        let places = producer.arm(5 * SLOTS);
        places.iter().step_by(3).for_each(end_elsewhere);
        let left: Vec<u32> = (0..5 * SLOTS as u32).filter(|n| n % 3 != 0).collect();
        assert_eq!(producer.take(), left);
        assert!(producer.take().is_empty(), "each slot is taken once");
    }

    /// Reuses the slots of one chunk one at a time, in an order that differs from their places.
    fn in_slots_used_again(producer: &mut Producer) {
        let mut places = producer.arm(SLOTS);
        let rounds = 3 * SLOTS as u32;
        for n in 0..rounds as usize {
            let at = n * 29 % SLOTS;
            producer.end(&places[at]);
            let place = producer.arm(1).remove(0);
            assert!(place.1 == places[at].1, "the freed slot is reused first");
            places[at] = place;
        }
        let all = SLOTS as u32 + rounds;
        assert_eq!(producer.take(), numbers(all - SLOTS as u32..all));
    }

    #[test]
    fn rule_07_reused_slots_keep_the_order() {
        in_slots_used_again(&mut Producer::new());
    }

    /// Several chunks are reused, and one of them comes from the pool.
    #[test]
    fn rule_07_reused_chunks_keep_the_order() {
        let mut producer = Producer::new();
        let first = producer.arm(4 * SLOTS);
        first[..3 * SLOTS].iter().rev().for_each(end_elsewhere);
        producer.arm(3 * SLOTS + 5);
        let from = 3 * SLOTS as u32;
        assert_eq!(producer.take(), numbers(from..7 * SLOTS as u32 + 5));
    }

    #[test]
    fn wrapped_sequence_numbers_keep_the_order() {
        for begin in [u64::from(u32::MAX) - 100, (1 << 31) - 100, u64::from(u32::MAX)] {
            let mut producer = Producer::new();
            producer.heap().next_sequence.store(begin, Ordering::Relaxed);
            producer.arm(5 * SLOTS);
            assert_eq!(producer.take(), numbers(0..5 * SLOTS as u32), "from {begin}");
            in_slots_used_again(&mut Producer::new());
        }
    }

    /// Sequence numbers that are half their range apart could not be compared.
    #[test]
    fn a_scan_is_requested_before_sequence_numbers_become_ambiguous() {
        let mut producer = Producer::new();
        producer.heap().next_sequence.store(SEQUENCES_PER_SCAN - 2, Ordering::Relaxed);
        producer.arm(1);
        assert_eq!(producer.heap().scan_by(), DUE);
        producer.arm(1);
        assert_eq!(producer.heap().scan_by(), 0);
        assert!(producer.registry.context.was_woken());
        const { assert!(SEQUENCES_PER_SCAN < 1 << 31) };
    }

    #[test]
    fn a_scan_separates_due_timeouts_from_the_rest() {
        let mut producer = Producer::new();
        let deadlines = |n: u64| 800 + 8 * (n * 37 % 100);
        let places: Vec<Place> = (0..100).map(|n| producer.arm_at(deadlines(n))).collect();
        let (due, rest) = producer.scan(Some(1000));
        let named = |candidates: &[Candidate]| -> Vec<u32> {
            candidates.iter().map(|candidate| candidate.index).collect()
        };
        let expected = |is_due: bool| -> Vec<u32> {
            let of = (0..100).filter(|&n| (deadlines(n) <= 1000) == is_due);
            of.map(|n| places[n as usize].0.index(places[n as usize].1)).collect()
        };
        assert_eq!(named(&due), expected(true));
        assert_eq!(named(&rest), expected(false));
        for candidate in due.iter().chain(&rest) {
            let (id, offset) = locate(candidate.index);
            assert_eq!(deadlines((id * SLOTS + offset) as u64), candidate.deadline);
        }
        // A second scan finds nothing.
        assert_eq!(producer.heap().scan_by(), NEVER);
        let (due, none) = producer.scan(None);
        assert!(due.is_empty() && none.is_empty());
    }

    /// The slots of the first chunk are reused after later chunks were armed. A scan that reaches its
    /// cap between them does not take the reused slots before those of the later chunks.
    #[test]
    fn rule_07_a_capped_scan_keeps_the_order() {
        let mut producer = Producer::new();
        let places = producer.arm(64 * SLOTS);
        for place in &places[..SLOTS] {
            producer.end(place);
        }
        producer.arm(3 * SLOTS);
        let (mut to_scan, mut filed, mut scans) = (BinaryHeap::new(), Vec::new(), 0);
        let (mut due, mut rest) = (Vec::new(), Vec::new());
        while producer.heap().scan(None, 1, false, &mut to_scan, &mut due, &mut rest) {
            scans += 1;
            filed.extend(rest.drain(..).map(|candidate| producer.claim(candidate.index)));
        }
        filed.extend(rest.drain(..).map(|candidate| producer.claim(candidate.index)));
        assert!(scans > 0 && due.is_empty(), "one scan took everything");
        filed.extend(producer.take());
        assert_eq!(filed.len(), 66 * SLOTS);
        assert!(filed.is_sorted(), "{filed:?}");
    }

    /// Rule 9: a stop does not wait for a scan of millions of timeouts. The stop empties their slots
    /// itself.
    #[test]
    fn rule_09_a_scan_stops_when_the_timer_is_closed() {
        for all_due in [false, true] {
            let mut producer = Producer::new();
            producer.arm(9 * SLOTS);
            let (mut to_scan, mut due, mut rest) = Default::default();
            producer.registry.context.close();
            let most = if all_due { 1 } else { usize::MAX };
            let heap = producer.heap();
            assert!(!heap.scan(Some(NEVER), most, all_due, &mut to_scan, &mut due, &mut rest));
            assert!(due.is_empty() && rest.is_empty());
        }
    }

    /// Another thread has found the mark before the chunk was in the queue, and a scan has lost its
    /// deadline.
    #[test]
    fn queueing_a_chunk_announces_its_earliest_deadline() {
        let mut producer = Producer::new();
        let (chunk, _) = producer.arm_at(80);
        producer.arm_at(DUE);
        producer.scan(None);
        producer.heap().announce(&chunk, DUE);
        assert_eq!(producer.heap().scan_by(), 80);
    }

    /// A slot that is armed during a scan waits for the next, so that it does not overtake older ones.
    #[test]
    fn timeouts_newer_than_the_scan_wait_for_the_next_one() {
        for begin in [0, u64::from(u32::MAX) - 49] {
            let mut producer = Producer::new();
            producer.heap().next_sequence.store(begin, Ordering::Relaxed);
            producer.arm(50);
            producer.arm_at(40);
            producer.arm_at(48);
            producer.arm(SLOTS);
            let armed = producer.heap().next_sequence.swap(begin + 50, Ordering::Relaxed);
            assert_eq!(producer.take(), numbers(0..50));
            assert_eq!(producer.heap().scan_by(), 40, "they are announced again");
            producer.heap().next_sequence.store(armed, Ordering::Relaxed);
            assert_eq!(producer.take(), numbers(50..52 + SLOTS as u32));
        }
    }

    /// Its sequence number is out of date, so it may be on either side of any bound.
    #[test]
    fn a_slot_pulled_forward_is_always_scanned() {
        for begin in [1000, 1 << 31, u64::from(u32::MAX)] {
            let mut producer = Producer::new();
            producer.heap().next_sequence.store(begin, Ordering::Relaxed);
            let (chunk, offset) = producer.arm(1).remove(0);
            assert_eq!(producer.scan(Some(NEVER)).0.len(), 1);
            let slot = chunk.slot(offset);
            assert!(slot.file().is_some());
            assert_eq!(slot.reschedule(DUE / 2), Ok(Moved::LeftEntry));
            producer.heap().announce(&chunk, DUE / 2);
            assert_eq!(producer.heap().scan_by(), DUE / 2);
            for bound in [0, 1 << 31, begin, begin + 1] {
                producer.heap().next_sequence.store(bound, Ordering::Relaxed);
                let due = producer.scan(Some(NEVER)).0;
                assert_eq!(due.len(), 1, "armed at {begin}, bound {bound}");
                producer.heap().announce(&chunk, DUE / 2);
            }
            assert_eq!(producer.take(), [0]);
        }
    }

    /// The sequence number of a timeout that goes on after a run is out of date too.
    #[test]
    fn a_slot_that_went_on_is_always_scanned() {
        let mut producer = Producer::new();
        producer.heap().next_sequence.store(1000, Ordering::Relaxed);
        let (chunk, offset) = producer.arm(1).remove(0);
        let slot = chunk.slot(offset);
        let (_, version) = slot.file().unwrap();
        assert!(matches!(slot.claim(version, NEVER), Claim::Due(_)));
        slot.pin();
        assert!(slot.go_on(7, DUE, Phase::New).is_ok() && !slot.unpin(1));
        chunk.announce(DUE);
        producer.heap().next_sequence.store(0, Ordering::Relaxed);
        assert_eq!(producer.take(), [7]);
    }

    #[test]
    fn a_chunk_is_queued_once_per_scan() {
        let mut producer = Producer::new();
        for round in 0..3 {
            let places = producer.arm(SLOTS);
            assert_eq!(producer.heap().pending.len(), 1, "round {round}");
            assert_eq!(producer.take().len(), SLOTS);
            assert_eq!(producer.heap().pending.len(), 0);
            drop(places);
        }
    }

    #[test]
    fn the_earliest_deadline_is_never_too_late() {
        let mut producer = Producer::new();
        assert_eq!(producer.heap().scan_by(), NEVER);
        let places = [48, 40, 64].map(|deadline| producer.arm_at(deadline));
        assert_eq!(producer.heap().scan_by(), 40);
        let (chunk, offset) = &places[2];
        assert_eq!(chunk.slot(*offset).reschedule(32), Ok(Moved::Sooner));
        chunk.announce(32);
        assert_eq!(producer.heap().scan_by(), 32);
        assert_eq!(producer.take(), [0, 1, 2]);
        assert_eq!(producer.heap().scan_by(), NEVER);
    }

    /// A queue that grows long wakes the worker once. The next long queue wakes it again.
    #[test]
    fn a_long_queue_requests_one_scan() {
        let mut producer = Producer::new();
        for _ in 0..2 {
            producer.arm((LONG_QUEUE - 1) * SLOTS);
            assert_eq!(producer.heap().scan_by(), DUE);
            assert!(!producer.registry.context.was_woken());
            producer.arm(1);
            assert_eq!(producer.heap().scan_by(), 0);
            assert!(producer.registry.context.was_woken());
            producer.arm(3 * SLOTS - 1);
            assert!(!producer.registry.context.was_woken(), "a scan is already requested");
            assert_eq!(producer.take().len(), (LONG_QUEUE + 2) * SLOTS);
            producer.registry.context.was_woken(); // consumes the wake-up for many empty chunks
        }
    }

    /// A burst of 40 chunks that are all empty again. The last one is owned.
    fn after_a_burst() -> (Producer, Vec<Place>) {
        let mut producer = Producer::new();
        let places = producer.arm(40 * SLOTS);
        let wanted = || producer.registry.context.is_release_wanted();
        assert!(!wanted());
        places[..16 * SLOTS].iter().for_each(end_elsewhere);
        assert!(!wanted(), "a few are kept");
        places[16 * SLOTS..].iter().for_each(end_elsewhere);
        assert!(wanted());
        assert!(producer.take().is_empty());
        (producer, places)
    }

    #[test]
    fn rule_04_all_but_a_few_empty_chunks_are_dropped() {
        let (producer, mut places) = after_a_burst();
        let heap = producer.heap();
        let mut released = Vec::new();
        {
            let _others = heap.chunks.lock();
            assert!(!producer.release(|id| released.push(id)), "it does not wait for the lock");
        }
        assert!(released.is_empty() && heap.has_chunks_to_release());
        assert!(producer.release(|id| released.push(id)));
        assert_eq!((released.len(), heap.pool.len()), (39 - EMPTY_KEPT, EMPTY_KEPT));
        assert_eq!(heap.chunks.lock().len(), 1 + EMPTY_KEPT);
        assert!(!heap.has_chunks_to_release());
        assert!(released.iter().all(|&id| producer.registry.chunk(id).is_none()));
        places.retain(|(chunk, _)| released.contains(&chunk.id));
        assert!(places.iter().all(|(chunk, _)| chunk.is_released()));
        let chunks = places.iter().step_by(SLOTS).map(|(chunk, _)| Arc::downgrade(chunk));
        let chunks: Vec<_> = chunks.collect();
        drop(places);
        while producer.registry.next_new_chunk().is_some() {} // the worker does this too
        assert!(chunks.iter().all(|chunk| chunk.strong_count() == 0), "something keeps a chunk");
    }

    #[test]
    fn chunks_with_a_timeout_are_not_dropped() {
        let mut producer = Producer::new();
        let places = producer.arm(40 * SLOTS);
        let (used, unused): (Vec<_>, Vec<_>) = places.iter().partition(|(_, offset)| *offset == 7);
        unused.into_iter().for_each(end_elsewhere);
        assert!(!producer.heap().has_chunks_to_release());
        assert!(producer.release(|id| panic!("chunk {id} is not empty")));
        assert_eq!((producer.heap().pool.len(), used.len()), (39, 40));
        assert_eq!(producer.take().len(), 40);
    }

    /// Chunks with a timeout stay although most of the others are dropped.
    #[test]
    fn rule_04_only_empty_chunks_are_dropped() {
        let mut producer = Producer::new();
        let places = producer.arm(40 * SLOTS);
        let (used, unused): (Vec<_>, Vec<_>) =
            places.iter().partition(|(chunk, offset)| chunk.id < 10 && *offset == 7);
        unused.into_iter().for_each(end_elsewhere);
        let mut released = Vec::new();
        assert!(producer.release(|id| released.push(id)));
        assert!(!released.is_empty() && released.iter().all(|&id| id >= 10), "{released:?}");
        assert_eq!(used.len(), 10);
        assert_eq!(
            producer.take(),
            numbers(0..10).iter().map(|n| n * SLOTS as u32 + 7).collect::<Vec<_>>()
        );
    }

    /// An empty chunk that is reused is not empty.
    #[test]
    fn reused_chunks_are_not_dropped() {
        let (mut producer, places) = after_a_burst();
        drop(places);
        producer.arm(40 * SLOTS);
        assert!(!producer.heap().has_chunks_to_release());
        assert!(producer.release(|id| panic!("chunk {id} is not empty")));
        assert_eq!(producer.take().len(), 40 * SLOTS);
    }

    /// A token of a dropped chunk must not match a slot of the next chunk with the same number.
    #[test]
    fn a_reused_chunk_number_has_another_version() {
        let (mut producer, places) = after_a_burst();
        let versions: std::collections::HashMap<u32, u16> = places
            .iter()
            .map(|(chunk, offset)| (chunk.index(*offset), chunk.slot(*offset).version()))
            .collect();
        drop(places);
        let registry = producer.registry.clone();
        assert!(producer.release(|id| registry.recycle(id)));
        let again = producer.arm(40 * SLOTS);
        for (chunk, offset) in again {
            let index = chunk.index(offset);
            let before = versions.get(&index).expect("no number is new");
            assert_ne!(chunk.slot(offset).version(), *before, "slot {index}");
        }
    }

    /// A thread that marks late may queue a chunk that the worker has dropped.
    #[test]
    fn a_dropped_chunk_in_the_queue_is_skipped() {
        let mut producer = Producer::new();
        let (chunk, _) = producer.arm(1).remove(0);
        chunk.set_released();
        assert!(producer.take().is_empty());
    }

    #[test]
    fn rule_04_a_cleared_heap_keeps_no_chunk() {
        let mut producer = Producer::new();
        let places = producer.arm(3 * SLOTS);
        let chunks: Vec<_> = places.iter().map(|(chunk, _)| Arc::downgrade(chunk)).collect();
        places.iter().for_each(end_elsewhere);
        drop(places);
        while producer.registry.next_new_chunk().is_some() {}
        producer.heap().clear();
        let owned = chunks.last().map(std::sync::Weak::as_ptr);
        let kept = chunks.iter().filter(|chunk| chunk.strong_count() > 0);
        assert!(kept.into_iter().all(|chunk| Some(chunk.as_ptr()) == owned));
    }
}
