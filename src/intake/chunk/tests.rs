use super::*;
use crate::intake::test_producer::{Place, Producer, end_elsewhere};

/// A chunk that is full and has no owner.
fn disowned(producer: &mut Producer) -> Vec<Place> {
    let places = producer.arm(SLOTS);
    producer.arm(1);
    places
}

#[test]
fn an_index_locates_its_slot() {
    let mut producer = Producer::new();
    for (chunk, offset) in producer.arm(3 * SLOTS) {
        assert_eq!(locate(chunk.index(offset)), (chunk.id as usize, offset));
        let token = chunk.token(offset, 9);
        assert_eq!((token.index, token.version), (chunk.index(offset), 9));
    }
    let last = (MAX_CHUNKS - 1) << OFFSET_BITS | (SLOTS as u32 - 1);
    assert_eq!(locate(last), (MAX_CHUNKS as usize - 1, SLOTS - 1));
}

#[test]
fn rule_04_a_disowned_chunk_is_pooled_once_it_has_enough_free_slots() {
    let mut producer = Producer::new();
    let places = disowned(&mut producer);
    let arena = producer.owner.arena.clone();
    for (freed, place) in places.iter().enumerate() {
        assert_eq!(arena.pool.len(), usize::from(freed >= REUSABLE as usize), "{freed} freed");
        assert!(!places[0].0.is_empty());
        end_elsewhere(place);
    }
    assert_eq!(arena.pool.len(), 1);
    assert!(places[0].0.is_empty());
}

/// The worker gives back the slots of a chunk together.
#[test]
fn rule_04_slots_given_back_together_are_all_counted() {
    let mut producer = Producer::new();
    let places = disowned(&mut producer);
    let arena = producer.owner.arena.clone();
    for (chunk, offset) in &places {
        assert!(chunk.slot(*offset).take_back().is_some() && chunk.slot(*offset).unpin(2));
    }
    places[0].0.give_back(ALL & !1);
    assert_eq!((arena.pool.len(), places[0].0.is_empty()), (1, false));
    places[0].0.give_back(1);
    assert_eq!((arena.pool.len(), places[0].0.is_empty()), (1, true));
}

/// A handle may keep a chunk longer than its timer lives.
#[test]
fn a_chunk_outlives_its_arena() {
    let places = disowned(&mut Producer::new());
    assert!(places[0].0.home.upgrade().is_none());
    places.iter().for_each(end_elsewhere);
    places[0].0.announce_moved(5);
}
