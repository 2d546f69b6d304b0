//! A heap: what one thread shares with the worker. Its slots are in chunks.
//!
//! The *pending queue* holds the chunks that have something new: a slot that became New, or a New
//! one with a sooner deadline. A chunk is in the queue at most once: the first who has something new
//! *marks* it and puts it there, and the worker takes the mark off before it looks through the slots.
//! *Announcing* is to mark the chunk and to lower `earliest`, the earliest deadline of what is new.
//! The worker takes a queue only when something in it may be due. So a timeout that is cancelled
//! before that costs the worker nothing.
//!
//! | | a producer, after arming a slot | the worker |
//! |---|---|---|
//! | 1 | fence | `earliest` := never, fence; takes a chunk out of the queue, and its mark off |
//! | 2 | if the chunk has no mark: marks and queues it, fence | fence |
//! | 3 | if `earliest` is later: lowers it, fence | looks through the slots |
//!
//! **Nothing new is overlooked.** The fences are sequentially consistent, so one of the two comes
//! first. If the producer's does, the worker finds the slot armed. If the worker's does, the producer
//! finds the chunk without its mark and `earliest` at never, or the worker's later values, and
//! announces it anew. A producer that has queued a chunk fences again before it reads `earliest`: if
//! it reads a value from before the worker's step 1, the worker finds the chunk in the queue.
//!
//! **A mark can be relied on.** Two threads can announce in one chunk: the owner, and one that moves a
//! timeout there. If one finds the other's mark, the chunk may not be in the queue yet, and a look in
//! between forgets the deadline of the one. So the other announces the earliest deadline of all New
//! slots of the chunk, once it is in the queue: of the fences of the two, one comes first, and either
//! the slot is found there or the deadline is announced after the chunk was queued.
//!
//! **The order of one thread is kept.** The worker reads `next_sequence` before it takes a queue,
//! and takes only slots with smaller sequence numbers, sorted by them. All of these were armed when it
//! looked. The others wait for the next look, so a slot that was armed while the worker looked through
//! the chunks does not overtake an earlier one. Nor does one that was armed after the look, in a slot
//! that the look has found: `Slot::file_as` compares the sequence number again.
//!
//! **A look is bounded.** The worker *holds* the marked chunks, and looks first through those that were
//! marked with the lowest sequence numbers, until it has found enough. Of these it takes only what no
//! chunk that is left can have something older than. So the order holds from look to look.
//!
//! The fence in `announce` serves the closing and the alarm too (see `context` and `alarm`).

use super::chunk::{Chunk, Home, SLOTS};
use super::context::Context;
use super::tally::Tally;
use crate::base::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, SegQueue, fence,
};
use crate::time::tick::NEVER;
use std::collections::{BinaryHeap, HashMap};

/// A queue of this many chunks is taken whatever the next deadline. Fewer would be worse: a timeout
/// that is cancelled before its chunk is taken costs the worker nothing.
const LONG_QUEUE: usize = 1 << 12;

/// A queue is also taken once in so many timeouts, so that the sequence numbers of what is new can be
/// compared.
pub(super) const SEQUENCES_PER_LOOK: u64 = 1 << 30;

/// The chunks of one look, at most: it takes some 2 ms to go through them if little is new.
const MOST_CHUNKS: usize = 1 << 14;

/// The chunks that a look goes through between two fences, at most.
const CHUNKS_PER_FENCE: usize = 64;

/// Empty chunks that are kept for the next burst.
const EMPTY_KEPT: usize = if cfg!(loom) { 0 } else { 16 };

/// What one thread shares with the worker.
#[repr(align(128))] // no two threads write to one pair of cache lines
pub(crate) struct Heap<P> {
    /// The sequence number of the next slot that the owner arms. Only the owner writes it.
    pub(super) next_sequence: AtomicU64,
    /// The earliest deadline of what is new; `NEVER` if there is nothing.
    earliest: AtomicU64,
    /// The queue must be taken, whatever is due.
    look_wanted: AtomicBool,
    /// The counts of the heap's thread.
    pub(crate) tally: Arc<Tally>,
    /// The heap of the crate's own timeouts. Its tally is `Context::internals`.
    pub(crate) internal: bool,
    pub(crate) context: Arc<Context>,
    pending: SegQueue<Arc<Chunk<P>>>,
    /// Disowned chunks that have slots for a next owner.
    pub(super) pool: SegQueue<Arc<Chunk<P>>>,
    /// The number of chunks in the pool, or on their way there, that have no used slot.
    /// Wraps for a moment if it is uncounted first.
    empty: AtomicUsize,
    /// All chunks, by number. Never locked on the worker's way but to end the timer; see `registry`.
    pub(super) chunks: Mutex<HashMap<u32, Arc<Chunk<P>>>>,
}

/// A marked chunk in the worker's hand.
pub(crate) struct Held<P> {
    /// A sequence number before which no slot is New.
    from: u64,
    chunk: Arc<Chunk<P>>,
}

impl<P> Held<P> {
    fn new(chunk: Arc<Chunk<P>>) -> Self {
        Self { from: chunk.new_from(), chunk }
    }
}

/// The one with the lowest number is the greatest, as `BinaryHeap` wants it.
impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.from.cmp(&self.from)
    }
}

impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for Held<P> {}

/// New slots that wait for the next look.
struct Left {
    /// The lowest sequence number.
    from: u64,
    /// The earliest deadline.
    earliest: u64,
}

/// Offers the New slots that were armed before sequence number `bound` to `take`. Returns the others,
/// and those that it does not take.
fn look_through<P>(
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

/// A New slot that the worker is to file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The slot's sequence number. One that is out of date counts as the last before this look.
    pub(crate) sequence: u32,
    pub(crate) index: u32,
    /// Its deadline at this look. If it is pulled forward, there is another look; if it is pushed
    /// back, it is filed under its deadline of then.
    pub(crate) deadline: u64,
}

impl Candidate {
    /// Sorts candidates of one look by the order in which the thread scheduled them. Their sequence
    /// numbers are compared by their distance from one of them, since they wrap.
    pub(crate) fn sort(candidates: &mut [Self]) {
        let Some(base) = candidates.first().map(|first| first.sequence) else { return };
        // Stable, and so linear in long runs.
        candidates.sort_by_key(|candidate| candidate.sequence.wrapping_sub(base) as i32);
    }
}

impl<P> Heap<P> {
    pub(super) fn new(context: Arc<Context>, tally: Arc<Tally>) -> Self {
        Self {
            internal: Arc::ptr_eq(&tally, &context.internals),
            next_sequence: AtomicU64::new(0),
            earliest: AtomicU64::new(NEVER),
            look_wanted: AtomicBool::new(false),
            tally,
            context,
            pending: SegQueue::new(),
            pool: SegQueue::new(),
            empty: AtomicUsize::new(0),
            chunks: Mutex::new(HashMap::new()),
        }
    }

    /// Tells the worker that a slot of `chunk`, which is one of this heap's, is New with this
    /// deadline. See the head. Wakes the worker if it would sleep too long.
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
        fence(Ordering::SeqCst); // the one of the alarm
    }

    /// Queues a chunk that the caller has marked. Returns the deadline to announce.
    #[cold]
    fn queue(&self, chunk: &Arc<Chunk<P>>, deadline: u64) -> u64 {
        // What relies on the mark was armed later, or is the one slot that the owner has armed last.
        chunk.lower_new_from(self.next_sequence.load(Ordering::Relaxed).saturating_sub(1));
        self.pending.push(chunk.clone());
        if self.pending.len() >= LONG_QUEUE {
            self.want_look();
        }
        fence(Ordering::SeqCst);
        // Another thread may have found the mark before the chunk was in the queue, and a look between
        // the two has forgotten its deadline. Then its slot is New here.
        deadline.min(chunk.earliest_new())
    }

    /// Has the worker take the queue.
    #[cold]
    pub(super) fn want_look(&self) {
        let wanted = self.look_wanted.load(Ordering::Relaxed);
        if !wanted && !self.look_wanted.swap(true, Ordering::Release) {
            self.context.alarm.call();
        }
    }

    /// The time by which the worker must take the queue.
    #[inline]
    pub(crate) fn take_by(&self) -> u64 {
        if self.look_wanted.load(Ordering::Acquire) {
            return 0;
        }
        self.earliest.load(Ordering::Acquire)
    }

    /// Takes `most` of what is new or a chunk's slots more, the oldest first. If `all_due`, also takes everything else
    /// that is due at time `by`. Appends what is due to `due` and the others to `rest`, both in the
    /// order of scheduling. True if something may be left. `held` is the caller's, from call to call.
    ///
    /// Breaks off once the timer is closed: all pending timeouts are found in their slots then.
    pub(crate) fn take_new(
        &self,
        by: Option<u64>,
        most: usize,
        all_due: bool,
        held: &mut BinaryHeap<Held<P>>,
        due: &mut Vec<Candidate>,
        rest: &mut Vec<Candidate>,
    ) -> bool {
        let next = self.next_sequence.load(Ordering::Acquire);
        self.look_wanted.store(false, Ordering::Relaxed);
        // Acquire: a deadline that is forgotten here was announced after its chunk was queued.
        self.earliest.swap(NEVER, Ordering::Acquire);
        fence(Ordering::SeqCst);
        self.hold_pending(held);
        let ends = || self.context.is_closed();
        let (mut looked, mut found) = (Vec::new(), 0);
        while !ends() && found < most && !held.is_empty() && looked.len() < MOST_CHUNKS.max(most) {
            let first = looked.len();
            let chunks = CHUNKS_PER_FENCE.min((most - found).div_ceil(SLOTS));
            let next_ones = (0..chunks).map_while(|_| held.pop());
            looked.extend(next_ones.map(|held| held.chunk).filter(|chunk| !chunk.is_released()));
            looked[first..].iter().for_each(|chunk| chunk.unmark());
            fence(Ordering::SeqCst);
            found += looked[first..].iter().map(|chunk| chunk.count_new()).sum::<usize>();
        }
        // What another chunk may have something older than waits, so that the order is kept.
        let bound = held.peek().map_or(next, |held| held.from.min(next));
        let capped = !held.is_empty() && !ends();
        let first = (due.len(), rest.len());
        let is_due = |candidate: &Candidate| by.is_some_and(|by| candidate.deadline <= by);
        for chunk in looked {
            let left = look_through(&chunk, bound, |candidate| {
                if is_due(&candidate) {
                    due.push(candidate)
                } else {
                    rest.push(candidate)
                }
                true
            });
            self.hold(chunk, left, held);
        }
        if all_due && by.is_some() {
            let others: Vec<_> = held.drain().map(|held| held.chunk).collect();
            others.iter().for_each(|chunk| chunk.unmark());
            fence(Ordering::SeqCst);
            let others = others.into_iter().take_while(|_| !ends());
            for chunk in others.filter(|chunk| !chunk.is_released()) {
                let left = look_through(&chunk, next, |candidate| {
                    let takes = is_due(&candidate);
                    due.extend(Some(candidate).filter(|_| takes));
                    takes
                });
                self.hold(chunk, left, held);
            }
        }
        Candidate::sort(&mut due[first.0..]);
        Candidate::sort(&mut rest[first.1..]);
        if capped {
            self.look_wanted.store(true, Ordering::Relaxed);
        }
        capped
    }

    /// Holds a chunk that was looked through, if New slots are left in it.
    fn hold(&self, chunk: Arc<Chunk<P>>, left: Option<Left>, held: &mut BinaryHeap<Held<P>>) {
        let Some(Left { from, earliest }) = left else { return };
        chunk.lower_new_from(from);
        self.lower_earliest(earliest);
        if chunk.mark() {
            held.push(Held { from, chunk });
        }
    }

    fn hold_pending(&self, held: &mut BinaryHeap<Held<P>>) {
        for _ in 0..self.pending.len() {
            held.extend(self.pending.pop().map(Held::new));
        }
    }

    /// Takes the marks off the empty chunks, which wait for a look in vain. For the worker, before it
    /// releases them. A chunk that is not empty any more after the fence may have something new that
    /// relies on its mark.
    fn forget_empty(&self, held: &mut BinaryHeap<Held<P>>) {
        self.hold_pending(held);
        held.retain(|held| {
            let chunk = &held.chunk;
            if !chunk.is_empty() {
                return true;
            }
            chunk.unmark();
            fence(Ordering::SeqCst);
            if chunk.is_empty() {
                return false;
            }
            chunk.lower_new_from(held.from);
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

    /// Drops the empty chunks of the pool, but for those that are kept, and passes their numbers to
    /// `released`. For the worker. False if another thread uses the list of chunks: try again.
    pub(crate) fn release(
        &self,
        held: &mut BinaryHeap<Held<P>>,
        mut released: impl FnMut(u32),
    ) -> bool {
        self.forget_empty(held);
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

    /// Gives up the chunks after the end of the timer.
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

        /// Takes what is new and files it. Returns the numbers of the timeouts, in that order.
        fn take(&self) -> Vec<u32> {
            let (due, rest) = self.look(Some(NEVER));
            assert!(rest.is_empty());
            due.iter().map(|candidate| self.claim(candidate.index)).collect()
        }

        fn look(&self, by: Option<u64>) -> (Vec<Candidate>, Vec<Candidate>) {
            let (mut due, mut rest) = (Vec::new(), Vec::new());
            let mut held = BinaryHeap::new();
            self.heap().take_new(by, usize::MAX, false, &mut held, &mut due, &mut rest);
            held.into_iter().for_each(|held| self.heap().pending.push(held.chunk));
            (due, rest)
        }

        fn release(&self, released: impl FnMut(u32)) -> bool {
            let mut held = BinaryHeap::new();
            let done = self.heap().release(&mut held, released);
            held.into_iter().for_each(|held| self.heap().pending.push(held.chunk));
            done
        }

        /// Files a timeout and runs it. Returns its number.
        fn claim(&self, index: u32) -> u32 {
            let (id, offset) = locate(index);
            let chunk = self.registry.chunk(id as u32).expect("it is there");
            let slot = chunk.slot(offset);
            let (_, version) = slot.file().expect("it is new");
            let Claim::Due(claimed) = slot.claim(version, NEVER) else { panic!("it is due") };
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
    fn what_is_new_is_taken_in_the_order_of_scheduling() {
        let mut producer = Producer::new();
        let places = producer.arm(5 * SLOTS);
        places.iter().step_by(3).for_each(end_elsewhere);
        let left: Vec<u32> = (0..5 * SLOTS as u32).filter(|n| n % 3 != 0).collect();
        assert_eq!(producer.take(), left);
        assert!(producer.take().is_empty(), "once");
    }

    /// The slots of one chunk, one after the other in an order of their own.
    fn in_slots_used_again(producer: &mut Producer) {
        let mut places = producer.arm(SLOTS);
        let rounds = 3 * SLOTS as u32;
        for n in 0..rounds as usize {
            let at = n * 29 % SLOTS;
            producer.end(&places[at]);
            let place = producer.arm(1).remove(0);
            assert!(place.1 == places[at].1, "the freed slot is used first");
            places[at] = place;
        }
        let all = SLOTS as u32 + rounds;
        assert_eq!(producer.take(), numbers(all - SLOTS as u32..all));
    }

    #[test]
    fn slots_that_are_used_again_keep_the_order() {
        in_slots_used_again(&mut Producer::new());
    }

    /// Also across several chunks, of which one comes from the pool.
    #[test]
    fn chunks_that_are_used_again_keep_the_order() {
        let mut producer = Producer::new();
        let first = producer.arm(4 * SLOTS);
        first[..3 * SLOTS].iter().rev().for_each(end_elsewhere);
        producer.arm(3 * SLOTS + 5);
        let from = 3 * SLOTS as u32;
        assert_eq!(producer.take(), numbers(from..7 * SLOTS as u32 + 5));
    }

    #[test]
    fn sequence_numbers_may_wrap() {
        for begin in [u64::from(u32::MAX) - 100, (1 << 31) - 100, u64::from(u32::MAX)] {
            let mut producer = Producer::new();
            producer.heap().next_sequence.store(begin, Ordering::Relaxed);
            producer.arm(5 * SLOTS);
            assert_eq!(producer.take(), numbers(0..5 * SLOTS as u32), "from {begin}");
            in_slots_used_again(&mut Producer::new());
        }
    }

    /// Otherwise numbers that are too far apart could not be compared.
    #[test]
    fn a_look_is_wanted_before_sequence_numbers_are_half_a_turn_apart() {
        let mut producer = Producer::new();
        producer.heap().next_sequence.store(SEQUENCES_PER_LOOK - 2, Ordering::Relaxed);
        producer.arm(1);
        assert_eq!(producer.heap().take_by(), DUE);
        producer.arm(1);
        assert_eq!(producer.heap().take_by(), 0);
        assert!(producer.registry.context.was_woken());
        const { assert!(SEQUENCES_PER_LOOK < 1 << 31) };
    }

    #[test]
    fn what_is_due_is_taken_apart_from_the_rest() {
        let mut producer = Producer::new();
        let deadlines = |n: u64| 800 + 8 * (n * 37 % 100);
        let places: Vec<Place> = (0..100).map(|n| producer.arm_at(deadlines(n))).collect();
        let (due, rest) = producer.look(Some(1000));
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
        // Nothing that was taken is found again.
        assert_eq!(producer.heap().take_by(), NEVER);
        let (due, none) = producer.look(None);
        assert!(due.is_empty() && none.is_empty());
    }

    /// Slots of the first chunk are used again after a second chunk. A look that ends between the two
    /// does not take them before the second chunk's.
    #[test]
    fn a_look_that_reaches_its_cap_keeps_the_order() {
        let mut producer = Producer::new();
        let places = producer.arm(64 * SLOTS);
        for place in &places[..SLOTS] {
            producer.end(place);
        }
        producer.arm(3 * SLOTS);
        let (mut held, mut filed, mut looks) = (BinaryHeap::new(), Vec::new(), 0);
        let (mut due, mut rest) = (Vec::new(), Vec::new());
        while producer.heap().take_new(None, 1, false, &mut held, &mut due, &mut rest) {
            looks += 1;
            filed.extend(rest.drain(..).map(|candidate| producer.claim(candidate.index)));
        }
        filed.extend(rest.drain(..).map(|candidate| producer.claim(candidate.index)));
        assert!(looks > 0 && due.is_empty(), "in one look");
        filed.extend(producer.take());
        assert_eq!(filed.len(), 66 * SLOTS);
        assert!(filed.is_sorted(), "{filed:?}");
    }

    /// Rule 9: a stop does not wait for a look at millions of timeouts, whose slots it empties anyway.
    #[test]
    fn a_look_breaks_off_when_the_timer_is_closed() {
        for all_due in [false, true] {
            let mut producer = Producer::new();
            producer.arm(9 * SLOTS);
            let (mut held, mut due, mut rest) = Default::default();
            producer.registry.context.close();
            let most = if all_due { 1 } else { usize::MAX };
            let heap = producer.heap();
            assert!(!heap.take_new(Some(NEVER), most, all_due, &mut held, &mut due, &mut rest));
            assert!(due.is_empty() && rest.is_empty());
        }
    }

    /// Another thread has found the mark, but not in the queue, and a look has forgotten its deadline.
    #[test]
    fn a_chunk_is_queued_with_the_earliest_of_its_deadlines() {
        let mut producer = Producer::new();
        let (chunk, _) = producer.arm_at(80);
        producer.arm_at(DUE);
        producer.look(None);
        producer.heap().announce(&chunk, DUE);
        assert_eq!(producer.heap().take_by(), 80);
    }

    /// What is armed while the worker looks waits, so that it does not overtake what came before.
    #[test]
    fn what_is_newer_than_the_look_waits_for_the_next() {
        for begin in [0, u64::from(u32::MAX) - 49] {
            let mut producer = Producer::new();
            producer.heap().next_sequence.store(begin, Ordering::Relaxed);
            producer.arm(50);
            producer.arm_at(40);
            producer.arm_at(48);
            producer.arm(SLOTS);
            let armed = producer.heap().next_sequence.swap(begin + 50, Ordering::Relaxed);
            assert_eq!(producer.take(), numbers(0..50));
            assert_eq!(producer.heap().take_by(), 40, "they are announced again");
            producer.heap().next_sequence.store(armed, Ordering::Relaxed);
            assert_eq!(producer.take(), numbers(50..52 + SLOTS as u32));
        }
    }

    /// Its sequence number may be older or newer than any bound: it says nothing.
    #[test]
    fn a_slot_that_was_pulled_forward_is_always_taken() {
        for begin in [1000, 1 << 31, u64::from(u32::MAX)] {
            let mut producer = Producer::new();
            producer.heap().next_sequence.store(begin, Ordering::Relaxed);
            let (chunk, offset) = producer.arm(1).remove(0);
            assert_eq!(producer.look(Some(NEVER)).0.len(), 1);
            let slot = chunk.slot(offset);
            assert!(slot.file().is_some());
            assert_eq!(slot.reschedule(DUE / 2), Ok(Moved::LeftEntry));
            producer.heap().announce(&chunk, DUE / 2);
            assert_eq!(producer.heap().take_by(), DUE / 2);
            for bound in [0, 1 << 31, begin, begin + 1] {
                producer.heap().next_sequence.store(bound, Ordering::Relaxed);
                let due = producer.look(Some(NEVER)).0;
                assert_eq!(due.len(), 1, "armed at {begin}, bound {bound}");
                producer.heap().announce(&chunk, DUE / 2);
            }
            assert_eq!(producer.take(), [0]);
        }
    }

    /// Likewise one that goes on after a run.
    #[test]
    fn a_slot_that_has_gone_on_is_always_taken() {
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
    fn a_chunk_is_queued_once_until_it_is_taken() {
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
    fn the_earliest_is_never_too_late() {
        let mut producer = Producer::new();
        assert_eq!(producer.heap().take_by(), NEVER);
        let places = [48, 40, 64].map(|deadline| producer.arm_at(deadline));
        assert_eq!(producer.heap().take_by(), 40);
        let (chunk, offset) = &places[2];
        assert_eq!(chunk.slot(*offset).reschedule(32), Ok(Moved::Sooner));
        chunk.announce(32);
        assert_eq!(producer.heap().take_by(), 32);
        assert_eq!(producer.take(), [0, 1, 2]);
        assert_eq!(producer.heap().take_by(), NEVER);
    }

    /// Each queue that grows long wakes the worker once; a later one does so again.
    #[test]
    fn every_long_queue_asks_for_attention_once() {
        let mut producer = Producer::new();
        for _ in 0..2 {
            producer.arm((LONG_QUEUE - 1) * SLOTS);
            assert_eq!(producer.heap().take_by(), DUE);
            assert!(!producer.registry.context.was_woken());
            producer.arm(1);
            assert_eq!(producer.heap().take_by(), 0);
            assert!(producer.registry.context.was_woken());
            producer.arm(3 * SLOTS - 1);
            assert!(!producer.registry.context.was_woken(), "it has been asked");
            assert_eq!(producer.take().len(), (LONG_QUEUE + 2) * SLOTS);
            producer.registry.context.was_woken(); // many chunks are empty
        }
    }

    /// A burst of 40 chunks, all of them empty again. The last one is owned.
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
    fn empty_chunks_are_dropped_but_for_a_few() {
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
        while producer.registry.next_new_chunk().is_some() {} // as the worker does
        assert!(chunks.iter().all(|chunk| chunk.strong_count() == 0), "nothing keeps them");
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

    /// Nor if most of the others are.
    #[test]
    fn of_many_chunks_only_the_empty_ones_are_dropped() {
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

    /// An empty chunk that is used again is not empty.
    #[test]
    fn chunks_that_are_used_again_are_not_dropped() {
        let (mut producer, places) = after_a_burst();
        drop(places);
        producer.arm(40 * SLOTS);
        assert!(!producer.heap().has_chunks_to_release());
        assert!(producer.release(|id| panic!("chunk {id} is not empty")));
        assert_eq!(producer.take().len(), 40 * SLOTS);
    }

    /// What named a dropped chunk must not name the next one of its number.
    #[test]
    fn the_number_of_a_dropped_chunk_is_used_again_with_another_version() {
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

    /// A mark that comes late may name a chunk that the worker has dropped.
    #[test]
    fn a_dropped_chunk_in_the_queue_names_nothing() {
        let mut producer = Producer::new();
        let (chunk, _) = producer.arm(1).remove(0);
        chunk.set_released();
        assert!(producer.take().is_empty());
    }

    #[test]
    fn a_heap_that_was_cleared_keeps_no_chunk() {
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
