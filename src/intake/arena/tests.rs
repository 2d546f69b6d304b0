use super::*;
use crate::intake::chunk::SLOTS;
use crate::intake::release::EMPTY_KEPT;
use crate::intake::test_producer::{Place, Producer, end_elsewhere};

impl Producer {
    fn arena(&self) -> &Arena<u32> {
        &self.owner.arena
    }

    /// The numbers of the released chunks.
    fn release(&self) -> Option<Vec<u32>> {
        let released = self.arena().release(self.arena().pool.len())?;
        Some(released.iter().map(|chunk| chunk.id).collect())
    }
}

/// A burst of 40 chunks that are all empty again. The last one is owned.
fn after_a_burst() -> (Producer, Vec<Place>) {
    let mut producer = Producer::new();
    let places = producer.arm(40 * SLOTS);
    let wanted = || producer.registry.context.is_release_requested();
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
    let arena = producer.arena();
    {
        let _others = arena.chunks.lock();
        assert_eq!(producer.release(), None, "it does not wait for the lock");
    }
    assert!(arena.has_chunks_to_release());
    let released = producer.release().expect("no thread has the lock");
    assert_eq!((released.len(), arena.pool.len()), (39 - EMPTY_KEPT, EMPTY_KEPT));
    assert_eq!(arena.chunks.lock().len(), 1 + EMPTY_KEPT);
    assert!(!arena.has_chunks_to_release());
    assert!(released.iter().all(|&id| producer.registry.chunk(id).is_none()));
    places.retain(|(chunk, _)| released.contains(&chunk.id));
    let chunks = places.iter().step_by(SLOTS).map(|(chunk, _)| Arc::downgrade(chunk));
    let chunks: Vec<_> = chunks.collect();
    drop(places);
    released.into_iter().for_each(|id| producer.registry.recycle(id)); // the worker does this too
    assert!(chunks.iter().all(|chunk| chunk.strong_count() == 0), "something keeps a chunk");
}

#[test]
fn rule_01_chunks_with_a_timeout_are_not_dropped() {
    let mut producer = Producer::new();
    let places = producer.arm(40 * SLOTS);
    let (used, unused): (Vec<_>, Vec<_>) = places.iter().partition(|(_, offset)| *offset == 7);
    unused.into_iter().for_each(end_elsewhere);
    assert!(!producer.arena().has_chunks_to_release());
    assert_eq!(producer.release(), Some(vec![]));
    assert_eq!((producer.arena().pool.len(), used.len()), (39, 40));
}

/// Chunks with a timeout stay although most of the others are dropped.
#[test]
fn rule_04_only_empty_chunks_are_dropped() {
    let mut producer = Producer::new();
    let places = producer.arm(40 * SLOTS);
    let (used, unused): (Vec<_>, Vec<_>) =
        places.iter().partition(|(chunk, offset)| chunk.id < 10 && *offset == 7);
    unused.into_iter().for_each(end_elsewhere);
    let released = producer.release().expect("no thread has the lock");
    assert!(!released.is_empty() && released.iter().all(|&id| id >= 10), "{released:?}");
    assert_eq!(used.len(), 10);
}

/// An empty chunk that is reused is not empty.
#[test]
fn rule_01_reused_chunks_are_not_dropped() {
    let (mut producer, places) = after_a_burst();
    drop(places);
    producer.arm(40 * SLOTS);
    assert!(!producer.arena().has_chunks_to_release());
    assert_eq!(producer.release(), Some(vec![]));
}

/// Whatever number of chunks a thread has left, its arena is retired once they are empty.
#[test]
fn rule_04_the_arena_of_an_ended_thread_is_retired() {
    for chunks in 1..50 {
        let Producer { registry, owner, .. } = {
            let mut producer = Producer::new();
            let places = producer.arm(chunks * SLOTS - 1);
            assert_eq!(producer.arena().retire(), Some(false), "a thread has it");
            places.iter().for_each(end_elsewhere);
            producer
        };
        let arena = owner.arena.clone();
        drop(owner);
        assert!(registry.context.is_release_requested());
        registry.release_all(|_| ());
        assert!(arena.is_retired() && registry.thread_metrics().is_empty(), "{chunks} chunks");
    }
}

/// A thread that begins meanwhile would drop an arena that is retired only for a moment.
#[test]
fn rule_04_an_arena_whose_list_another_thread_uses_stays_idle() {
    let Producer { registry, owner, .. } = Producer::new();
    let arena = owner.arena.clone();
    drop(owner);
    {
        let _others = arena.chunks.lock();
        assert_eq!(arena.retire(), None);
    }
    assert!(Arc::ptr_eq(&registry.take_arena(), &arena));
}

#[test]
fn rule_04_a_cleared_arena_keeps_no_chunk() {
    let mut producer = Producer::new();
    let places = producer.arm(3 * SLOTS);
    let chunks: Vec<_> = places.iter().map(|(chunk, _)| Arc::downgrade(chunk)).collect();
    places.iter().for_each(end_elsewhere);
    drop(places);
    let listed = producer.arena().take_chunks();
    listed.keys().for_each(|&id| drop(producer.registry.take_new_chunk(id)));
    drop(listed);
    producer.arena().clear();
    let owned = chunks.last().map(std::sync::Weak::as_ptr);
    let kept = chunks.iter().filter(|chunk| chunk.strong_count() > 0);
    assert!(kept.into_iter().all(|chunk| Some(chunk.as_ptr()) == owned));
}
