use super::*;

fn filled(n: usize) -> (Slab<()>, Vec<Key>) {
    let mut slab = Slab::with_limit(MOST_CHUNKS);
    let taken = (0..n).map(|_| slab.insert(()).unwrap().0).collect();
    (slab, taken)
}

fn chunks_with_memory(slab: &Slab<()>) -> usize {
    slab.chunks.iter().filter(|c| c.slots.is_some()).count()
}

#[test]
fn indices_are_distinct_while_in_use() {
    let (mut slab, mut taken) = filled(3 * CHUNK + 7);
    for round in 0..1000u32 {
        let victim = taken.swap_remove((round as usize * 7919) % taken.len());
        slab.remove(victim).unwrap();
        taken.push(slab.insert(()).unwrap().0);
    }
    assert_eq!(slab.used(), taken.len());
    taken.sort_unstable_by_key(|key| key.index);
    taken.dedup_by_key(|key| key.index);
    assert_eq!(slab.used(), taken.len());
}

#[test]
fn a_freed_slot_is_reused_first() {
    let (mut slab, taken) = filled(10);
    slab.remove(taken[3]).unwrap();
    assert_eq!(slab.insert(()).unwrap().0.index, taken[3].index);
}

#[test]
fn the_limit_is_exact() {
    let mut slab = Slab::<()>::with_limit(2);
    let taken: Vec<_> = std::iter::from_fn(|| Some(slab.insert(())?.0)).collect();
    assert_eq!(taken.len(), 2 * CHUNK);
    slab.remove(taken[0]).unwrap();
    assert!(slab.insert(()).is_some());
    assert!(slab.insert(()).is_none());
}

#[test]
fn rule_04_memory_is_freed_and_allocated_again() {
    let (mut slab, taken) = filled(100 * CHUNK);
    assert_eq!(chunks_with_memory(&slab), 100);
    for key in taken {
        slab.remove(key).unwrap();
    }
    assert_eq!(chunks_with_memory(&slab), EMPTY_KEPT);
    let again: Vec<_> = (0..100 * CHUNK).map(|_| slab.insert(()).unwrap().0).collect();
    assert_eq!(chunks_with_memory(&slab), 100, "old chunks are used again");
    assert_eq!(slab.empty, 0);
    assert!(again.iter().all(|&key| slab.get(key).is_some()));
}

#[test]
fn allocated_chunks_are_used_before_new_ones() {
    let (mut slab, taken) = filled((EMPTY_KEPT + 6) * CHUNK);
    let (half, rest) = taken.split_at(5 * CHUNK + 1);
    half.iter().for_each(|&key| slab.remove(key).unwrap()); // one slot free in the sixth chunk
    rest.iter().skip(CHUNK - 1).for_each(|&key| slab.remove(key).unwrap());
    let before = chunks_with_memory(&slab);
    assert_eq!(before, 1 + EMPTY_KEPT);
    (0..=EMPTY_KEPT * CHUNK).for_each(|_| assert!(slab.insert(()).is_some()));
    assert_eq!(chunks_with_memory(&slab), before);
}

#[test]
fn reserved_memory_is_kept() {
    const MANY: usize = 3 * EMPTY_KEPT;
    let (mut slab, taken) = filled(5);
    slab.reserve(MANY * CHUNK);
    assert_eq!((chunks_with_memory(&slab), slab.used()), (MANY, 5));
    let more: Vec<_> = (5..MANY * CHUNK).map(|_| slab.insert(()).unwrap().0).collect();
    assert_eq!(chunks_with_memory(&slab), MANY, "nothing was allocated");
    more.into_iter().chain(taken).for_each(|key| slab.remove(key).unwrap());
    assert_eq!((chunks_with_memory(&slab), slab.used()), (MANY, 0));
    slab.reserve(CHUNK);
    assert_eq!(chunks_with_memory(&slab), MANY);
}

/// A chunk without memory may be anywhere in the list of open chunks.
#[test]
fn a_reservation_keeps_all_open_chunks() {
    let (mut slab, taken) = filled((EMPTY_KEPT + 6) * CHUNK);
    taken.iter().step_by(2).for_each(|&key| slab.remove(key).unwrap());
    taken.iter().skip(1).step_by(2).skip(40).for_each(|&key| slab.remove(key).unwrap());
    let used = slab.used();
    slab.reserve(2 * (EMPTY_KEPT + 6) * CHUNK);
    let before = chunks_with_memory(&slab);
    (used..before * CHUNK).for_each(|_| assert!(slab.insert(()).is_some()));
    assert_eq!(chunks_with_memory(&slab), before);
}

#[test]
fn a_reallocated_chunk_has_new_versions() {
    let (mut slab, mut taken) = filled((EMPTY_KEPT + 3) * CHUNK);
    for &Key { index, .. } in &taken {
        let Some(Slot::Used { generation, .. }) = slab.slot_mut(index) else {
            panic!("it is used")
        };
        *generation += 5;
    }
    for Key { index, generation } in &mut taken {
        *generation += 5;
        slab.remove(Key { index: *index, generation: *generation }).unwrap();
    }
    let given_back: Vec<u32> =
        taken.iter().map(|key| key.index).filter(|&index| slab.slot(index).is_none()).collect();
    assert!(!given_back.is_empty());
    while slab.used() < taken.len() {
        slab.insert(()).unwrap();
    }
    assert!(given_back.iter().all(|&index| slab.at(index).unwrap().0.generation == 7));
}
