use super::*;
use crate::heap::chunk::locate;
use crate::heap::producer::{DUE, Place, Producer, end_elsewhere};
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
        to_scan.into_iter().for_each(|marked| self.heap().pending.push(marked));
        (due, rest)
    }

    fn release(&self, released: impl FnMut(u32)) -> bool {
        let mut to_scan = BinaryHeap::new();
        let done = self.heap().release(&mut to_scan, released);
        to_scan.into_iter().for_each(|marked| self.heap().pending.push(marked));
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
fn rule_07_wrapped_sequence_numbers_keep_the_order() {
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
fn rule_07_a_scan_is_requested_before_sequence_numbers_become_ambiguous() {
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

/// A stop does not wait for a scan of millions of timeouts. The stop empties their slots
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

/// A slot that is armed during a scan waits for the next, so that it does not overtake older ones.
#[test]
fn rule_07_timeouts_newer_than_the_scan_wait_for_the_next_one() {
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
fn rule_01_a_slot_pulled_forward_is_always_scanned() {
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
fn rule_01_a_slot_that_went_on_is_always_scanned() {
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
fn rule_02_the_earliest_deadline_is_never_too_late() {
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

/// The worker begins early enough to file them all by the deadline.
#[test]
fn a_queue_of_many_chunks_is_scanned_before_its_deadline() {
    let mut producer = Producer::new();
    producer.arm((LEAD_FROM - 1) * SLOTS);
    assert_eq!(producer.heap().scan_by(), DUE);
    producer.arm(1);
    assert_eq!(producer.heap().scan_by(), DUE - LEAD);
    assert_eq!(producer.take().len(), (LEAD_FROM - 1) * SLOTS + 1);
    assert_eq!(producer.heap().scan_by(), NEVER);
}

/// The worker sleeps until the deadline, and must get up earlier once the queue has grown.
#[test]
fn a_growing_queue_wakes_the_worker_in_time() {
    let mut producer = Producer::new();
    let context = producer.registry.context.clone();
    producer.arm(1);
    context.alarm.arm(DUE - LEAD);
    producer.arm((LEAD_FROM - 1) * SLOTS - 1);
    assert!(!context.was_woken());
    producer.arm(1);
    assert!(context.was_woken());
    context.alarm.arm(DUE - LEAD - 1);
    producer.arm(9 * SLOTS);
    assert!(!context.was_woken(), "it sleeps until the right time already");
}

/// A queue that grows long wakes the worker once. The next long queue wakes it again.
#[test]
fn a_long_queue_requests_one_scan() {
    let mut producer = Producer::new();
    for _ in 0..2 {
        producer.arm((LONG_QUEUE - 1) * SLOTS);
        assert!(producer.heap().scan_by() > 0);
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
fn rule_01_chunks_with_a_timeout_are_not_dropped() {
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
fn rule_01_reused_chunks_are_not_dropped() {
    let (mut producer, places) = after_a_burst();
    drop(places);
    producer.arm(40 * SLOTS);
    assert!(!producer.heap().has_chunks_to_release());
    assert!(producer.release(|id| panic!("chunk {id} is not empty")));
    assert_eq!(producer.take().len(), 40 * SLOTS);
}

/// A token of a dropped chunk must not match a slot of the next chunk with the same number.
#[test]
fn rule_02_a_reused_chunk_number_has_another_version() {
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
    producer.heap().take_chunks().values().for_each(Chunk::orphan);
    producer.heap().clear();
    let owned = chunks.last().map(std::sync::Weak::as_ptr);
    let kept = chunks.iter().filter(|chunk| chunk.strong_count() > 0);
    assert!(kept.into_iter().all(|chunk| Some(chunk.as_ptr()) == owned));
}
