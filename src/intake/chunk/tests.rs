use super::*;
use crate::intake::test_producer::{Place, Producer, end_elsewhere};

/// A chunk that is full and has no owner.
fn unowned(producer: &mut Producer) -> Vec<Place> {
    let places = producer.arm(SLOTS);
    producer.arm(1);
    places
}

#[test]
fn a_token_locates_its_slot() {
    let mut producer = Producer::new();
    for (chunk, offset) in producer.arm(3 * SLOTS) {
        let token = chunk.token(offset, 9);
        assert_eq!((locate(token), token.version), ((chunk.id as usize, offset), 9));
    }
    let last = (MAX_CHUNKS - 1) << OFFSET_BITS | (SLOTS as u32 - 1);
    assert_eq!(locate(Token { index: last, version: 0 }), (MAX_CHUNKS as usize - 1, SLOTS - 1));
}

#[test]
fn rule_04_an_unowned_chunk_is_pooled_once_it_has_enough_free_slots() {
    let mut producer = Producer::new();
    let places = unowned(&mut producer);
    let shared = producer.shared.clone();
    let pool = producer.owner.pool_in(&shared);
    for (freed, place) in places.iter().enumerate() {
        assert_eq!(pool.len(), usize::from(freed >= REUSABLE as usize), "{freed} freed");
        assert!(!places[0].0.is_vacant());
        end_elsewhere(place);
    }
    assert_eq!(pool.len(), 1);
    assert!(places[0].0.is_vacant());
}

/// The worker gives back the slots of a chunk together.
#[test]
fn rule_04_slots_given_back_together_are_all_counted() {
    let mut producer = Producer::new();
    let places = unowned(&mut producer);
    let shared = producer.shared.clone();
    let pool = producer.owner.pool_in(&shared);
    for (chunk, offset) in &places {
        assert!(chunk.slot(*offset).take_back().is_some() && chunk.slot(*offset).unpin(2));
    }
    places[0].0.give_back(ALL & !1);
    assert_eq!((pool.len(), places[0].0.is_vacant()), (1, false));
    places[0].0.give_back(1);
    assert_eq!((pool.len(), places[0].0.is_vacant()), (1, true));
}

/// A handle may keep a chunk longer than its timer lives.
#[test]
fn a_chunk_outlives_its_timer() {
    let places = unowned(&mut Producer::new());
    assert!(places[0].0.timer.shared().is_none());
    places.iter().for_each(end_elsewhere);
    places[0].0.announce_moved(5);
}

/// Only its holders keep a closed chunk whose slots are free.
#[test]
fn rule_04_the_last_change_of_a_closed_chunk_drops_its_reference_to_itself() {
    let mut producer = Producer::new();
    let mut places = unowned(&mut producer);
    drop(producer.table.take());
    places[0].0.close();
    let last = places.pop().expect("it has 62");
    places.drain(..).for_each(|place| end_elsewhere(&place));
    let chunk = Arc::downgrade(&last.0);
    assert_eq!(chunk.strong_count(), 2, "that of the test, and its own");
    end_elsewhere(&last);
    assert_eq!((chunk.strong_count(), producer.pool().len()), (1, 0));
    assert!(last.0.own().is_none() && !last.0.release());
    last.0.close();
}
