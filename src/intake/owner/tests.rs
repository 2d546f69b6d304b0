use super::*;
use crate::intake::slot::Phase;
use crate::intake::test_producer::{DUE, Place, Producer, end_and_collect, end_elsewhere};
use std::collections::HashSet;

fn indices(places: &[Place]) -> Vec<u32> {
    places.iter().map(|(chunk, offset)| chunk.index(*offset)).collect()
}

fn distinct(indices: &[u32]) -> usize {
    indices.iter().collect::<HashSet<_>>().len()
}

#[test]
fn rule_01_each_slot_is_handed_out_once() {
    let mut producer = Producer::new();
    let places = producer.arm(10 * SLOTS + 1);
    assert_eq!(distinct(&indices(&places)), places.len());
    let chunks: HashSet<u32> = places.iter().map(|(chunk, _)| chunk.id).collect();
    assert_eq!(chunks.len(), 11, "all slots of a chunk are used");
    assert!(places.iter().all(|(chunk, offset)| chunk.slot(*offset).phase() == Phase::New));
}

#[test]
fn rule_04_a_slot_freed_by_its_thread_is_reused_next() {
    let mut producer = Producer::new();
    let places = producer.arm(40);
    for place in &places[10..12] {
        producer.end(place);
    }
    let again = producer.arm(3);
    assert_eq!(indices(&again)[..2], indices(&places)[10..12]);
    assert_eq!(again[2].1, 40, "a slot that was never used comes next");
}

/// If other threads have freed many slots of the owned chunk, the owner keeps the chunk. If they
/// have freed few, the owner disowns it.
#[test]
fn rule_04_slots_freed_by_other_threads_are_reused() {
    for many in [true, false] {
        let mut producer = Producer::new();
        let places = producer.arm(SLOTS);
        let freed = if many { SLOTS / 4 + 1 } else { SLOTS / 4 };
        places[..freed].iter().for_each(end_elsewhere);
        let next = producer.arm(1);
        assert_eq!(next[0].0.id == places[0].0.id, many);
        // A disowned chunk with that many free slots is in the pool.
        assert_eq!(producer.owner.arena.pool.len(), 0);
        places[freed..freed + 1].iter().for_each(end_elsewhere);
        assert_eq!(producer.owner.arena.pool.len(), usize::from(!many));
        let rest = producer.arm(SLOTS);
        let mut live = indices(&places[freed + 1..]);
        live.extend(indices(&next).into_iter().chain(indices(&rest)));
        assert_eq!(distinct(&live), live.len(), "no slot has two timeouts");
        let chunks: HashSet<u32> = live.iter().map(|index| index >> 6).collect();
        assert_eq!(chunks.len(), 2, "a third chunk was made");
    }
}

#[test]
fn rule_04_pooled_chunks_are_reused() {
    let mut producer = Producer::new();
    let burst = producer.arm(5 * SLOTS);
    burst.iter().for_each(end_elsewhere);
    let again = producer.arm(5 * SLOTS);
    let (before, after) = (indices(&burst), indices(&again));
    assert_eq!(distinct(&after), 5 * SLOTS);
    assert_eq!(distinct(&[before, after].concat()), 5 * SLOTS, "the same slots");
}

/// Three chunks. The slots of the first are collected.
fn collected() -> (Producer, Vec<Place>) {
    let mut producer = Producer::new();
    let places = producer.arm(2 * SLOTS + 1);
    for place in &places[..SLOTS] {
        assert!(end_and_collect(&mut producer.owner, place));
    }
    assert!(!places[0].0.is_empty(), "they are not given back yet");
    (producer, places)
}

#[test]
fn rule_04_collected_slots_are_given_back_before_those_of_another_chunk_are_collected() {
    let (mut producer, places) = collected();
    assert!(end_and_collect(&mut producer.owner, &places[SLOTS]));
    assert!(places[0].0.is_empty() && !places[SLOTS].0.is_empty());
}

#[test]
fn rule_04_collected_slots_are_given_back_before_a_new_chunk_is_made() {
    let (mut producer, places) = collected();
    let again = producer.arm(2 * SLOTS - 1);
    let reused = again.iter().filter(|place| place.0.id == places[0].0.id).count();
    assert_eq!(reused, SLOTS);
    assert_eq!(distinct(&indices(&again)), again.len());
}

#[test]
fn rule_04_collected_slots_are_given_back_when_the_thread_ends() {
    let (Producer { owner, .. }, places) = collected();
    drop(owner);
    assert!(places[0].0.is_empty());
}

#[test]
fn slots_of_another_timer_are_not_collected() {
    let (mut here, mut there) = (Producer::new(), Producer::new());
    let place = there.arm(1).remove(0);
    assert!(!end_and_collect(&mut here.owner, &place));
}

/// Its timeouts outlive it, and its unused slots are not lost.
#[test]
fn rule_04_a_dropped_owner_leaves_its_slots_to_the_next() {
    let mut producer = Producer::new();
    let places = producer.arm(3);
    let arena = Arc::as_ptr(&producer.owner.arena);
    producer.owner = Owner::enter(&producer.registry).expect("there is room");
    assert_ne!(Arc::as_ptr(&producer.owner.arena), arena, "the first owner still existed");
    producer.owner = Owner::enter(&producer.registry).expect("there is room");
    assert_eq!(Arc::as_ptr(&producer.owner.arena), arena, "the first owner has left its arena");
    let more = producer.arm(SLOTS - 3);
    assert_eq!(distinct(&indices(&[places.clone(), more].concat())), SLOTS);
    assert!(places.iter().all(|(chunk, offset)| chunk.slot(*offset).phase() == Phase::New));
    places.iter().for_each(|place| producer.end(place));
    assert_eq!(distinct(&indices(&producer.arm(3))), 3);
}

/// A timer without room for more chunks still uses the slots that it has.
#[test]
fn there_is_no_room_once_all_slots_are_used() {
    let mut producer = Producer::new();
    producer.registry.use_up_chunks();
    let places = producer.arm(SLOTS);
    assert!(!producer.owner.has_room());
    end_elsewhere(&places[9]);
    assert_eq!(indices(&producer.arm(1)), indices(&places[9..10]));
    assert!(!producer.owner.has_room());
    assert!(Owner::enter(&producer.registry).is_none(), "no other thread gets a chunk");
    assert!(Owner::enter(&producer.registry).is_none());
    assert_eq!(
        producer.registry.thread_metrics().len(),
        2,
        "the arena of the refused thread waits for the next thread"
    );
}

/// The registry is dropped with its timer.
#[test]
fn an_owner_outlives_its_registry() {
    let mut producer = Producer::new();
    let places = producer.arm(1);
    let Producer { registry, mut owner, .. } = producer;
    drop(registry);
    for n in 1..SLOTS as u32 {
        assert!(owner.has_room(), "the owned chunk still has free slots");
        owner.arm(n, DUE, Runs::MayGoOn);
    }
    assert!(!owner.has_room(), "it gets no other chunk");
    drop(owner);
    end_elsewhere(&places[0]);
}
