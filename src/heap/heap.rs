//! A heap: the part of a thread's timeouts that the thread shares with the worker.
//!
//! Concepts:
//!
//! - A thread arms slots, which lie in chunks (see `slot` and `chunk`). An armed slot is *New* until the
//!   worker files it in the wheel.
//! - The *pending queue* holds the chunks that the worker has to scan: those with a slot that became
//!   New, or with a New slot whose deadline moved to a sooner time.
//! - A chunk in the queue is *marked* (see `mark`), so that new slots do not queue it again.
//! - `earliest` is the earliest deadline that was announced since the last scan. After a cancel it may
//!   be too early, but it is never too late.
//! - To *announce* a slot is to queue its chunk, unless that is marked, and to lower `earliest`.
//! - To *scan* is to take chunks out of the queue, to remove their marks, and to read their slots. The
//!   worker scans a heap only when one of its New slots may be due, or soon if the queue is long. So a
//!   timeout that is cancelled before that costs the worker nothing.
//!
//! | step | a producer, after arming a slot | the worker |
//! |---|---|---|
//! | 1 | fence | sets `earliest` to never, fence; takes a chunk out of the queue and removes its mark |
//! | 2 | if the chunk has no mark: queues it, fence, marks it | fence |
//! | 3 | if `earliest` is later than the deadline: lowers it, fence | reads the slots of the chunk |
//!
//! **No new timeout is missed.** The fences are sequentially consistent, so of two fences one comes first.
//!
//! 1. The chunk has an entry in the queue. Compare the fence of the producer's step 1 with that of the
//!    worker's step 2. If the producer's comes first, the worker finds the slot armed. If the worker's
//!    does, the producer finds the chunk without its mark, and queues it again.
//! 2. The worker sees the deadline. Let a producer read a value of `earliest` that the worker's swap then
//!    loses. Compare the fence of step 2, of the producer that has queued the chunk, with that of the
//!    worker's step 1. If the producer's comes first, the worker finds the chunk in the queue. If the
//!    worker's does, this producer and all that find its mark read what came after the swap, because a
//!    mark releases and a producer that finds it acquires. The lowered value releases too: a swap that
//!    loses it finds the queue with the chunk.
//!
//! **No producer relies on another that is interrupted.** Two threads can announce slots of one chunk: the
//! owner, and a thread that moves a timeout of the chunk. Each relies on the other only if it finds the
//! mark, and then the chunk is already in the queue.
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
//! every slot in the chunks that are left. So the order also holds from scan to scan. If too few slots
//! are that old, it reads more chunks first.
//!
//! The fence in `announce` also serves closing and the alarm (see `context` and `alarm`).
//!
//! **The worker knows the heaps that have something for it.** A heap is *listed* if the worker has it, or
//! if it waits in the registry's queue `to_worker`, which the worker empties in each pass. A thread that
//! queues a chunk, or finds chunks to release, lists the heap, unless the heap is marked as `listed`. A heap
//! that has had nothing for some passes *rests*:
//!
//! | step | a producer | the worker |
//! |---|---|---|
//! | 1 | queues a chunk, or counts an empty one | removes the mark `listed` |
//! | 2 | fence | fence |
//! | 3 | if the heap has no mark: lists it | if it finds something after all: keeps the heap |
//!
//! One of the two fences comes first. If the producer's does, the worker finds what it has queued. If the
//! worker's does, the producer finds no mark. A producer marks a chunk after it has listed the heap, so a
//! thread that finds the chunk's mark knows that the chunk is queued and the heap is listed.
//!
//! | user | means | changed by |
//! |---|---|---|
//! | OWNED | a thread has the heap | that thread, when it ends: to IDLE |
//! | IDLE | the heap waits for the next thread | a thread that begins: to OWNED; the worker, if no chunk is left: to RETIRED |
//! | RETIRED | the worker has dropped the heap | the worker, if a chunk is left or the list of chunks is locked: to IDLE |

use super::chunk::{Chunk, Home, SLOTS};
use super::context::Context;
use super::mark::{Mark, Seen};
use super::slot::Slot;
use super::tally::Tally;
use crate::base::sync::{
    Arc, AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Mutex, Ordering, SegQueue, fence,
};
use crate::time::tick::NEVER;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Weak;

/// A queue of this many chunks is scanned even if nothing in it is due. A smaller number would be
/// worse: a timeout that is cancelled before its chunk is scanned costs the worker nothing.
const LONG_QUEUE: usize = 1 << 12;

/// A queue of this many chunks is scanned earlier than it must be.
const LEAD_FROM: usize = 1 << 8;

/// How many nanoseconds earlier: about the time that it takes to file the timeouts of the longest queue. So
/// they are in the wheel when they are due, if a tick is not longer than this.
const LEAD: u64 = 40 * (LONG_QUEUE * SLOTS) as u64;

/// A queue is also scanned once per this many timeouts, so that the sequence numbers of New slots can
/// be compared.
pub(super) const SEQUENCES_PER_SCAN: u64 = 1 << 30;

/// The most chunks that one scan reads. If few of their slots are New, this takes about 2 ms.
const MOST_CHUNKS: usize = 1 << 14;

/// The most chunks that a scan reads between two fences.
const CHUNKS_PER_FENCE: usize = 64;

const OWNED: u8 = 0;
const IDLE: u8 = 1;
const RETIRED: u8 = 2;

/// The number of empty chunks that the heap of a thread keeps for the next burst.
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
    user: AtomicU8,
    listed: Mark,
    /// The queue of heaps that the worker does not have yet.
    /// Weak, because the queue has references to heaps.
    to_worker: Weak<SegQueue<Arc<Self>>>,
    me: Weak<Self>,
    /// Whether the worker has the heap. Relaxed: only the worker uses it.
    with_worker: AtomicBool,
    /// The name of the thread that has the heap.
    pub(super) thread: Mutex<Option<String>>,
    pub(crate) context: Arc<Context>,
    pending: SegQueue<MarkedChunk<P>>,
    /// Disowned chunks that have free slots for a next owner.
    pub(super) pool: SegQueue<Arc<Chunk<P>>>,
    /// The number of chunks in the pool, or on their way there, that have no used slot.
    /// It wraps for a moment if a chunk is uncounted before it is counted.
    empty: AtomicUsize,
    /// All chunks, by number. The worker waits for this lock only to end the timer; see `registry`.
    pub(super) chunks: Mutex<HashMap<u32, Arc<Chunk<P>>>>,
}

/// A chunk in the queue, or taken out of it and not scanned yet.
pub(crate) struct MarkedChunk<P> {
    /// No slot that relies on this entry has a lower sequence number.
    from: u64,
    chunk: Arc<Chunk<P>>,
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

/// The New slots that were armed before sequence number `bound`. Appends to `ages` how long before. Returns
/// the number of those whose sequence number is out of date: they count as armed just before.
fn ages_before<P>(chunk: &Chunk<P>, bound: u64, ages: &mut Vec<u32>) -> usize {
    let mut undated = 0;
    for (_, sequence) in chunk.slots().filter_map(Slot::if_new) {
        let Some(sequence) = sequence else {
            undated += 1;
            continue;
        };
        let age = (bound as u32).wrapping_sub(sequence);
        ages.extend(Some(age).filter(|&age| age as i32 > 0));
    }
    undated
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
    /// A heap that the calling thread owns.
    pub(super) fn new(
        context: Arc<Context>,
        tally: Arc<Tally>,
        to_worker: Weak<SegQueue<Arc<Self>>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            internal: Arc::ptr_eq(&tally, &context.internals),
            next_sequence: AtomicU64::new(0),
            earliest: AtomicU64::new(NEVER),
            scan_wanted: AtomicBool::new(false),
            tally,
            user: AtomicU8::new(OWNED),
            listed: Mark::new(),
            to_worker,
            me: me.clone(),
            with_worker: AtomicBool::new(false),
            thread: Mutex::new(None),
            context,
            pending: SegQueue::new(),
            pool: SegQueue::new(),
            empty: AtomicUsize::new(0),
            chunks: Mutex::new(HashMap::new()),
        })
    }

    /// Announces that a slot of `chunk`, which is a chunk of this heap, is New with this deadline (see
    /// the head). Wakes the worker if it would sleep too long.
    #[inline]
    pub(crate) fn announce(&self, chunk: &Arc<Chunk<P>>, deadline: u64) {
        fence(Ordering::SeqCst);
        let mark = chunk.mark.load();
        if !mark.is_set() {
            self.queue(chunk, mark);
        }
        if deadline < self.earliest.load(Ordering::Relaxed) {
            self.lower_earliest(deadline);
        }
        self.context.alarm.submitted(deadline);
    }

    #[cold]
    fn lower_earliest(&self, deadline: u64) {
        let lower = |earliest| (deadline < earliest).then_some(deadline);
        // Release: pairs with the swap in `scan`.
        let _ = self.earliest.fetch_update(Ordering::Release, Ordering::Relaxed, lower);
        fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
    }

    /// Queues and marks a chunk whose mark the caller has not found.
    #[cold]
    fn queue(&self, chunk: &Arc<Chunk<P>>, mark: Seen) {
        // A slot that relies on this entry is armed later, or is the slot that the owner armed last.
        let from = self.next_sequence.load(Ordering::Relaxed).saturating_sub(1);
        self.pending.push(MarkedChunk { from, chunk: chunk.clone() });
        fence(Ordering::SeqCst);
        self.list();
        chunk.mark.set(mark);
        let chunks = self.pending.len();
        if chunks >= LONG_QUEUE {
            self.want_scan();
        }
        let scan_by = if chunks < LEAD_FROM { 0 } else { self.scan_by() };
        // It may be sooner now than when the worker went to sleep. It is 0 if the worker was called already.
        if scan_by > 0 {
            self.context.alarm.submitted(scan_by);
        }
    }

    /// Gives the heap to the worker, unless the worker has it or will find it. The caller has fenced.
    fn list(&self) {
        let listed = self.listed.load();
        if !listed.is_set() {
            if let Some((queue, me)) = self.to_worker.upgrade().zip(self.me.upgrade()) {
                queue.push(me);
            }
            fence(Ordering::SeqCst); // pairs with the fence of `Alarm::arm`
            self.listed.set(listed);
        }
    }

    /// The worker takes the heap. False if it has it already.
    pub(crate) fn come_to_worker(&self) -> bool {
        !self.with_worker.swap(true, Ordering::Relaxed)
    }

    /// Whether the heap has something for the worker. A timeout that waits in the queue is something, even
    /// if it is far from due.
    pub(crate) fn has_work(&self) -> bool {
        !self.pending.is_empty() || self.scan_by() != NEVER || self.wants_release()
    }

    /// The worker gives the heap up, if there is nothing to do. The next producer lists it again.
    pub(crate) fn rest(&self) -> bool {
        self.listed.clear();
        fence(Ordering::SeqCst);
        if self.has_work() {
            self.listed.set(self.listed.load());
            return false;
        }
        self.with_worker.store(false, Ordering::Relaxed);
        true
    }

    /// A thread takes an idle heap. False if the worker has retired it.
    pub(super) fn occupy(&self) -> bool {
        self.change_user(IDLE, OWNED)
    }

    /// The heap's thread has ended. Its empty chunks are released.
    pub(super) fn vacate(&self) {
        self.user.store(IDLE, Ordering::Release); // the worker adds up the counts of a retired heap
        fence(Ordering::SeqCst); // pairs with the fence of `count_empty`
        if self.wants_release() {
            self.list();
            self.context.want_release();
        }
    }

    /// The worker takes an idle heap without chunks out of use. False if the heap is in use. `None` if
    /// another thread uses the list of chunks: the worker tries again later.
    pub(crate) fn retire(&self) -> Option<bool> {
        if !self.change_user(IDLE, RETIRED) {
            return Some(false);
        }
        let unused = self.chunks.try_lock().map(|chunks| chunks.is_empty());
        if unused != Some(true) {
            self.user.store(IDLE, Ordering::Release);
        }
        unused
    }

    pub(super) fn is_retired(&self) -> bool {
        self.user.load(Ordering::Relaxed) == RETIRED
    }

    fn change_user(&self, from: u8, to: u8) -> bool {
        self.user.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The number of chunks in the pending queue.
    pub(super) fn queue_len(&self) -> usize {
        self.pending.len()
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
        let earliest = self.earliest.load(Ordering::Acquire);
        if earliest == NEVER || self.pending.len() < LEAD_FROM {
            return earliest;
        }
        earliest.saturating_sub(LEAD)
    }

    /// Takes the `most` oldest New slots, and up to 61 more, because it reads whole chunks. In addition it
    /// takes those of these chunks that were pulled forward, or that went on after a run. If
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
        let (scanned, bound) = self.read_oldest(next, most, to_scan);
        let capped = (!to_scan.is_empty() || bound != next) && !ends();
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
            others.iter().for_each(|chunk| chunk.mark.clear());
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

    /// Takes out chunks with about `most` New slots that are older than all that are left. Returns the
    /// chunks, and the sequence number before which these slots were armed. Newer ones must wait, to keep
    /// the order.
    ///
    /// If slots were reused in random order, most chunks have an old slot and new ones. Few slots are then
    /// older than all that are left, so it takes out more chunks.
    fn read_oldest(
        &self,
        next: u64,
        most: usize,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
    ) -> (Vec<Arc<Chunk<P>>>, u64) {
        let (mut scanned, mut found, mut enough) = (Vec::new(), 0, most);
        loop {
            self.read_chunks(enough, &mut found, to_scan, &mut scanned);
            let bound = to_scan.peek().map_or(next, |marked| marked.from.min(next));
            if found <= most && to_scan.is_empty() || self.context.is_closed() {
                return (scanned, bound);
            }
            let mut ages = Vec::new();
            let undated: usize =
                scanned.iter().map(|chunk| ages_before(chunk, bound, &mut ages)).sum();
            if ages.len() >= most + SLOTS {
                let (_, &mut oldest_left, _) = ages.select_nth_unstable_by(most, |a, b| b.cmp(a));
                return (scanned, bound - u64::from(oldest_left));
            }
            if ages.len() + undated >= most / 2 || found < enough {
                return (scanned, bound);
            }
            enough = enough.saturating_mul(2);
        }
    }

    /// Takes out chunks, those with the oldest slots first, until they have `enough` New slots.
    fn read_chunks(
        &self,
        enough: usize,
        found: &mut usize,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
        scanned: &mut Vec<Arc<Chunk<P>>>,
    ) {
        let most_chunks = MOST_CHUNKS.max(enough);
        while *found < enough && scanned.len() < most_chunks && !self.context.is_closed() {
            let first = scanned.len();
            let chunks = CHUNKS_PER_FENCE.min((enough - *found).div_ceil(SLOTS));
            let next_ones = (0..chunks).map_while(|_| to_scan.pop());
            scanned
                .extend(next_ones.map(|marked| marked.chunk).filter(|chunk| !chunk.is_released()));
            scanned[first..].iter().for_each(|chunk| chunk.mark.clear());
            fence(Ordering::SeqCst);
            *found += scanned[first..].iter().map(|chunk| chunk.count_new()).sum::<usize>();
            if to_scan.is_empty() {
                break;
            }
        }
    }

    /// Keeps a chunk for the next scan if New slots are left in it.
    fn scan_again(
        &self,
        chunk: Arc<Chunk<P>>,
        left: Option<Left>,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
    ) {
        let Some(Left { from, earliest }) = left else { return };
        let mark = chunk.mark.load();
        to_scan.push(MarkedChunk { from, chunk: chunk.clone() });
        chunk.mark.set(mark);
        self.lower_earliest(earliest);
    }

    fn drain_queue(&self, to_scan: &mut BinaryHeap<MarkedChunk<P>>) {
        for _ in 0..self.pending.len() {
            to_scan.extend(self.pending.pop());
        }
    }

    /// Takes the empty chunks out of the queue, because they have nothing to scan. The worker calls it
    /// before it releases them. If a chunk is no longer empty after the fence, it may have a New slot that
    /// relies on the mark, so it stays.
    fn unqueue_empty(&self, to_scan: &mut BinaryHeap<MarkedChunk<P>>) {
        self.drain_queue(to_scan);
        to_scan.retain(|MarkedChunk { chunk, .. }| {
            if !chunk.is_empty() {
                return true;
            }
            chunk.mark.clear();
            fence(Ordering::SeqCst);
            !chunk.is_empty()
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
        self.has_more_empty_than(self.kept())
    }

    /// Whether a release is worth its cost. A large pool may have more empty chunks.
    fn wants_release(&self) -> bool {
        let kept = self.kept();
        self.has_more_empty_than(if kept > 0 { kept + self.pool.len() / 4 } else { 0 })
    }

    /// The number of empty chunks that stay for the next burst of the heap's thread.
    fn kept(&self) -> usize {
        if self.user.load(Ordering::Relaxed) == OWNED { EMPTY_KEPT } else { 0 }
    }

    /// Drops the empty chunks of the pool, except for the few that stay, and passes their
    /// numbers to `released`. Only the worker calls it. Returns false if another thread uses the list
    /// of chunks: the worker tries again later.
    pub(crate) fn release(
        &self,
        to_scan: &mut BinaryHeap<MarkedChunk<P>>,
        mut released: impl FnMut(u32),
    ) -> bool {
        self.unqueue_empty(to_scan);
        let Some(mut chunks) = self.chunks.try_lock() else { return false };
        for _ in 0..self.pool.len() {
            let Some(chunk) = self.pool.pop() else { break };
            if chunk.is_empty() && !chunk.mark.load().is_set() && self.has_chunks_to_release() {
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

    /// Takes all chunks out of the list, because the timer ends. The caller orphans them.
    pub(super) fn take_chunks(&self) -> HashMap<u32, Arc<Chunk<P>>> {
        std::mem::take(&mut *self.chunks.lock())
    }

    /// Empties the queues after the timer has ended.
    pub(super) fn clear(&self) {
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
        fence(Ordering::SeqCst); // pairs with the fences of `vacate` and `rest`
        if self.wants_release() {
            self.list();
            self.context.want_release();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
