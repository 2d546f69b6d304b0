use super::*;
use crate::heap::chunk::SLOTS;
use crate::heap::producer::{Place, Producer, end_elsewhere};

impl Producer {
    fn heap(&self) -> &Heap<u32> {
        &self.owner.heap
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
    (producer, places)
}

#[test]
fn rule_04_all_but_a_few_empty_chunks_are_dropped() {
    let (producer, mut places) = after_a_burst();
    let heap = producer.heap();
    let mut released = Vec::new();
    {
        let _others = heap.chunks.lock();
        assert!(!heap.release(|id| released.push(id)), "it does not wait for the lock");
    }
    assert!(released.is_empty() && heap.has_chunks_to_release());
    assert!(heap.release(|id| released.push(id)));
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
    assert!(producer.heap().release(|id| panic!("chunk {id} is not empty")));
    assert_eq!((producer.heap().pool.len(), used.len()), (39, 40));
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
    assert!(producer.heap().release(|id| released.push(id)));
    assert!(!released.is_empty() && released.iter().all(|&id| id >= 10), "{released:?}");
    assert_eq!(used.len(), 10);
}

/// An empty chunk that is reused is not empty.
#[test]
fn rule_01_reused_chunks_are_not_dropped() {
    let (mut producer, places) = after_a_burst();
    drop(places);
    producer.arm(40 * SLOTS);
    assert!(!producer.heap().has_chunks_to_release());
    assert!(producer.heap().release(|id| panic!("chunk {id} is not empty")));
}

/// Whatever number of chunks a thread has left, its heap is retired once they are empty.
#[test]
fn rule_04_the_heap_of_an_ended_thread_is_retired() {
    for chunks in 1..50 {
        let Producer { registry, owner, .. } = {
            let mut producer = Producer::new();
            let places = producer.arm(chunks * SLOTS - 1);
            assert_eq!(producer.heap().retire(), Some(false), "a thread has it");
            places.iter().for_each(end_elsewhere);
            producer
        };
        let heap = owner.heap.clone();
        drop(owner);
        assert!(registry.context.is_release_wanted());
        assert!(registry.release(|_| ()));
        assert!(heap.is_retired() && registry.heap_metrics().is_empty(), "{chunks} chunks");
    }
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
