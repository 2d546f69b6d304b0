use super::*;
use crate::intake::SLOTS;
use crate::intake::test_producer::{Producer, end_elsewhere};

/// A step visits so many chunks, and all steps visit all chunks, those with a timeout included.
#[test]
fn rule_02_a_long_release_goes_on_step_by_step() {
    let chunks = 3 * CHUNKS_PER_STEP;
    let mut producer = Producer::new();
    let places = producer.arm(chunks * SLOTS);
    let ended = places.iter().filter(|(chunk, _)| chunk.id % 4 != 0);
    ended.for_each(end_elsewhere);
    let registry = &producer.registry;
    let mut release = Release::begin(registry).expect("no thread has the lock");
    let (mut steps, mut released) = (Vec::new(), 0);
    while steps.last().is_none_or(|&(step, _)| step == Step::More) {
        let before = released;
        let step = release.step(registry, |_| released += 1);
        steps.push((step, released - before));
    }
    assert!(steps.iter().all(|&(_, n)| n <= CHUNKS_PER_STEP), "{steps:?}");
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(released > chunks * 3 / 4 - 20, "{steps:?}");
    assert!(!producer.owner.arena.has_chunks_to_release());
}

/// To free a chunk takes about a microsecond, and its thread waits for the list.
#[test]
fn rule_09_chunks_are_freed_while_their_list_is_not_locked() {
    let mut producer = Producer::new();
    producer.arm(40 * SLOTS).iter().for_each(end_elsewhere);
    let arena = &producer.owner.arena;
    let mut released = 0;
    producer.registry.release_all(|_| {
        assert!(arena.chunks.try_lock().is_some(), "the list is locked");
        released += 1;
    });
    assert!(released > 0);
}

#[test]
fn a_release_is_requested_once() {
    let context = Context::of_this_thread(None, 8);
    context.request_release();
    assert!(context.is_release_requested() && context.was_woken());
    context.request_release();
    assert!(!context.was_woken(), "the release is already requested");
    context.begin_release();
    assert!(!context.is_release_requested());
    context.request_release();
    assert!(context.was_woken());
}
