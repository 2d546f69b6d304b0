use super::*;
use crate::intake::SLOTS;
use crate::intake::pool::VACANT_KEPT;
use crate::intake::slot::Phase;
use crate::intake::test_producer::{DUE, Place, Producer, end_and_collect, end_elsewhere};
use std::collections::HashSet;

fn indices(places: &[Place]) -> Vec<u32> {
    places.iter().map(|(chunk, offset)| chunk.token(*offset, 0).index).collect()
}

/// Whether the timer can have no more chunks. The payload is not made then.
fn no_room(owner: &mut Owner<u32>) -> bool {
    let payload = || panic!("there is room");
    owner.arm(payload, DUE, Runs::MayGoOn).is_none()
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
/// have freed few, the owner leaves it.
#[test]
fn rule_04_slots_freed_by_other_threads_are_reused() {
    for many in [true, false] {
        let mut producer = Producer::new();
        let places = producer.arm(SLOTS);
        let freed = REUSABLE as usize - usize::from(!many);
        places[..freed].iter().for_each(end_elsewhere);
        let next = producer.arm(1);
        assert_eq!(next[0].0.id == places[0].0.id, many);
        // An unowned chunk with that many free slots is in the pool.
        assert_eq!(producer.pool().len(), 0);
        places[freed..freed + 1].iter().for_each(end_elsewhere);
        assert_eq!(producer.pool().len(), usize::from(!many));
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

/// Otherwise each burst that reuses chunks would request a release.
#[test]
fn rule_04_a_vacant_chunk_that_is_reused_is_not_vacant_any_more() {
    let mut producer = Producer::new();
    let burst = producer.arm((VACANT_KEPT + 2) * SLOTS);
    let owned = producer.arm(1);
    burst.iter().for_each(end_elsewhere);
    assert!(producer.pool().has_too_many());
    let again = producer.arm(2 * SLOTS);
    let reused = again.iter().filter(|place| place.0.id != owned[0].0.id);
    assert_eq!(reused.count(), SLOTS + 1, "in two of the chunks");
    assert!(!producer.pool().has_too_many());
}

/// Three chunks. The slots of the first are collected.
fn collected() -> (Producer, Vec<Place>) {
    let mut producer = Producer::new();
    let places = producer.arm(2 * SLOTS + 1);
    for place in &places[..SLOTS] {
        assert!(end_and_collect(&mut producer.owner, place));
    }
    assert!(!places[0].0.is_vacant(), "they are not given back yet");
    (producer, places)
}

#[test]
fn rule_04_collected_slots_are_given_back_before_those_of_another_chunk_are_collected() {
    let (mut producer, places) = collected();
    assert!(end_and_collect(&mut producer.owner, &places[SLOTS]));
    assert!(places[0].0.is_vacant() && !places[SLOTS].0.is_vacant());
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
    assert!(places[0].0.is_vacant());
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
    producer.owner = Owner::enter(&producer.shared).expect("there is room");
    assert_ne!(producer.owner.chunk.id, places[0].0.id, "the first owner still existed");
    producer.owner = Owner::enter(&producer.shared).expect("there is room");
    let more = producer.arm(SLOTS - 3);
    assert_eq!(distinct(&indices(&[places.clone(), more].concat())), SLOTS);
    assert!(places.iter().all(|(chunk, offset)| chunk.slot(*offset).phase() == Phase::New));
    places.iter().for_each(|place| producer.end(place));
    assert_eq!(distinct(&indices(&producer.arm(3))), 3);
}

/// The next owner of a chunk may be a thread that has begun before the chunk's timeouts were scheduled.
#[test]
fn rule_07_the_bound_of_a_chunk_holds_for_each_of_its_owners() {
    let mut early = Producer::new();
    early.arm(2);
    let mut late = Owner::enter(&early.shared).expect("there is room");
    let arm = |owner: &mut Owner<u32>, count: usize| {
        for _ in 0..count {
            let armed = owner.arm(|| 0, DUE, Runs::MayGoOn).expect("there is room");
            let sequence = armed.chunk().slot(armed.offset()).sequence();
            assert!(armed.chunk().lowest() <= sequence, "{sequence} is before its chunk's bound");
            drop(armed);
        }
    };
    arm(&mut late, SLOTS - 20);
    drop(late); // leaves 20 slots to the first owner
    arm(&mut early.owner, 40 * SLOTS);
}

/// A lower bound would hold too, but then the worker would look at all chunks of a burst before the first run.
#[test]
fn the_bound_of_a_new_chunk_is_its_first_number() {
    let places = Producer::new().arm(5 * SLOTS);
    for (chunk, offset) in places.iter().step_by(SLOTS) {
        assert_eq!(chunk.lowest(), chunk.slot(*offset).sequence());
    }
}

#[test]
fn rule_07_sequence_numbers_of_one_thread_increase_and_no_two_are_equal() {
    let mut first = Producer::new();
    let mut second = Owner::enter(&first.shared).expect("there is room");
    let next = |owner: &mut Owner<u32>| {
        let armed = owner.arm(|| 0, DUE, Runs::MayGoOn).expect("there is room");
        let sequence = armed.chunk().slot(armed.offset()).sequence();
        drop(armed);
        sequence
    };
    let mut numbers = [vec![], vec![]];
    for n in 0..3 * RANGE {
        numbers[0].push(next(&mut first.owner));
        numbers[1].extend((n % 3 == 0).then(|| next(&mut second)));
    }
    assert!(numbers.iter().all(|numbers| numbers.is_sorted()));
    let all: HashSet<u64> = numbers.iter().flatten().copied().collect();
    assert_eq!(all.len() as u64, 4 * RANGE);
}

/// A timer without room for more chunks still uses the slots that it has.
#[test]
fn there_is_no_room_once_all_slots_are_used() {
    let mut producer = Producer::new();
    producer.shared.table.use_up();
    let places = producer.arm(SLOTS);
    assert!(no_room(&mut producer.owner));
    end_elsewhere(&places[9]);
    assert_eq!(indices(&producer.arm(1)), indices(&places[9..10]));
    assert!(no_room(&mut producer.owner));
    assert!(Owner::enter(&producer.shared).is_none(), "no other thread gets a chunk");
}

/// What is shared is dropped with its timer.
#[test]
fn an_owner_outlives_its_timer() {
    let mut producer = Producer::new();
    let places = producer.arm(1);
    let Producer { shared, table, mut owner, .. } = producer;
    drop((shared, table));
    for n in 1..SLOTS as u32 {
        let armed = owner.arm(|| n, DUE, Runs::MayGoOn);
        armed.expect("the owned chunk still has free slots");
    }
    assert!(no_room(&mut owner), "it gets no other chunk");
    drop(owner);
    end_elsewhere(&places[0]);
}
