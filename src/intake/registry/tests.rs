use super::*;
use crate::intake::test_producer::{DUE, Producer, end_elsewhere};
use crate::intake::{Cancel, Claim, Owner};

/// The timeouts are New, Filed, running and ended. Only the pending ones are emptied.
#[test]
fn rule_01_emptied_timeouts_are_counted_by_their_end() {
    for end in [Phase::Cancelled, Phase::Returned] {
        let mut producer = Producer::new();
        let places = producer.arm(7);
        let slots: Vec<_> = places.iter().map(|(chunk, offset)| chunk.slot(*offset)).collect();
        let versions = [0, 1, 2].map(|n| slots[n].file().expect("the slot is New").1);
        assert!(matches!(slots[0].claim(versions[0], DUE), Claim::Due(_)));
        assert!(matches!(slots[6].cancel(), Cancel::Won { .. }));
        let mut ended = Vec::new();
        producer.registry.gate.close();
        producer.registry.empty(end, |mut emptied| {
            for offset in emptied.offsets() {
                assert!(emptied.is(offset, |n| *n == offset as u32));
                assert_eq!(emptied.chunk().slot(offset).deadline(), DUE);
                let (n, pin) = emptied.take(offset).expect("it is taken once").take();
                assert!(emptied.take(offset).is_none());
                ended.push(n);
                std::mem::forget(pin); // removed below
            }
        });
        assert_eq!(ended, [1, 2, 3, 4, 5]);
        assert!((1..6).all(|n| slots[n].phase() == end));
        let counts = &producer.registry.context.counts.by_others;
        let counted = [&counts.returned, &counts.cancelled, &counts.unqueued].map(|n| n.get());
        assert_eq!(counted, if end == Phase::Returned { [5, 0, 3] } else { [0, 5, 3] });
        slots[0].finish();
        for (chunk, offset) in &places {
            assert!(chunk.slot(*offset).unpin(2));
            chunk.give_back(1 << offset);
        }
    }
}

#[test]
fn rule_04_an_emptied_registry_keeps_no_chunk() {
    let mut producer = Producer::new();
    let places = producer.arm(200);
    producer.owner = Owner::enter(&producer.registry).expect("there is room"); // drops the former owner
    let chunks: Vec<_> = places.iter().map(|(chunk, _)| Arc::downgrade(chunk)).collect();
    let offsets: Vec<_> = places.iter().map(|&(_, offset)| offset).collect();
    drop(places);
    producer.registry.empty(Phase::Cancelled, |_| ());
    // Each timeout still has a handle, whose pin keeps the chunk.
    for (at, (chunk, offset)) in chunks.iter().zip(offsets).enumerate() {
        let kept = chunk.upgrade().expect("it is pinned");
        assert!(kept.slot(offset).unpin(2));
        kept.give_back(1 << offset);
        drop(kept);
        let last = chunks.get(at + 1).is_none_or(|next| !next.ptr_eq(chunk));
        assert_eq!(chunk.strong_count() == 0, last, "timeout {at}");
    }
}

#[test]
fn the_worker_learns_of_each_chunk_once() {
    let mut producer = Producer::new();
    producer.arm(130);
    let chunks = || (0..10).filter_map(|id| producer.registry.take_new_chunk(id)).count();
    assert_eq!(chunks(), 3);
    drop(Owner::enter(&producer.registry));
    drop(Owner::enter(&producer.registry));
    assert_eq!(chunks(), 1, "the second owner gets the arena and chunk of the first");
}

#[test]
fn a_chunk_is_found_by_its_number() {
    let mut producer = Producer::new();
    let places = producer.arm(200);
    for (chunk, _) in &places {
        assert!(producer.registry.chunk(chunk.id).is_some_and(|found| Arc::ptr_eq(&found, chunk)));
    }
    assert!(producer.registry.chunk(1000).is_none());
    places.iter().for_each(end_elsewhere);
}
