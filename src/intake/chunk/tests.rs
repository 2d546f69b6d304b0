use super::*;
use crate::intake::slot::Phase;
use crate::intake::test_producer::{DUE, Place, Producer, end_elsewhere};

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

/// Anything else would take a lock for each slot that is given back.
#[test]
fn most_changes_of_a_chunk_have_no_consequence() {
    const FEW: u64 = (1 << (REUSABLE - 1)) - 1;
    const ENOUGH: u64 = (1 << REUSABLE) - 1;
    const NEARLY: u64 = ALL >> 1;
    let cases = [
        ("it has an owner", NEARLY, ALL, false),
        ("few slots are free", UNOWNED, UNOWNED | FEW, false),
        ("it can have an owner", UNOWNED | FEW, UNOWNED | ENOUGH, true),
        ("it is in the pool already", UNOWNED | ENOUGH, UNOWNED | NEARLY, false),
        ("its owner leaves enough slots", FEW, UNOWNED | ENOUGH, true),
        ("it is vacant", UNOWNED | NEARLY, VACANT, true),
        ("it is closed", UNOWNED | CLOSED | FEW, UNOWNED | CLOSED | NEARLY, false),
        ("it ends", UNOWNED | CLOSED | NEARLY, FINAL, true),
    ];
    for (case, before, after, expected) in cases {
        assert_eq!(matters(before, after), expected, "{case}");
    }
}

/// The vacant chunk does not wait for the last handle to its timer.
#[test]
fn rule_04_the_end_of_a_timer_drops_a_pooled_chunk() {
    let mut producer = Producer::new();
    let places = unowned(&mut producer);
    places.iter().for_each(end_elsewhere);
    assert_eq!(producer.pool().len(), 1);
    let chunk = Arc::downgrade(&places[0].0);
    drop(places);
    producer.shared.gate.close();
    producer.shared.empty(Phase::Returned, drop);
    drop(producer.table.take());
    assert_eq!((chunk.strong_count(), producer.pool().len()), (0, 0));
}

/// The sequence numbers wrap.
#[test]
fn rule_07_a_bound_is_before_its_own_number_and_those_after_it() {
    const LAST: u64 = u64::MAX >> SEQUENCE_SHIFT;
    let chunk = Producer::new().owner.chunk.clone();
    for (lowest, sequence, expected) in [
        (70, 69, false),
        (70, 70, true),
        (70, 71, true),
        (LAST, LAST - 1, false),
        (LAST, LAST, true),
        (LAST, 0, true),
        (0, LAST, false),
    ] {
        chunk.set_lowest(lowest);
        assert_eq!(chunk.is_before(sequence), expected, "{lowest} and {sequence}");
    }
}

/// An entry for each would keep the worker busy.
#[test]
fn rule_03_a_look_that_is_promised_in_time_is_not_announced() {
    let mut producer = Producer::new();
    let chunk = producer.owner.chunk.clone();
    let shared = producer.shared.clone();
    let announced = || {
        let mut entries = 0;
        shared.pending.take_all(|_| entries += 1);
        entries > 0
    };
    producer.arm_at(DUE);
    assert!(announced());
    chunk.promise.set(DUE);
    producer.arm_at(DUE);
    assert!(!announced(), "by the owner");
    for (deadline, expected) in [(DUE + 8, false), (DUE, false), (DUE - 8, true)] {
        chunk.announce_moved(deadline);
        assert_eq!(announced(), expected, "by any thread, for {deadline}");
    }
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
