use super::*;
use std::cell::Cell;

#[test]
fn each_number_has_its_own_place_which_does_not_move() {
    let table = Growing::<Cell<usize>>::new();
    assert!(table.iter().next().is_none());
    let first = std::ptr::from_ref(table.make(0));
    for n in (0..100).rev().chain([1000]) {
        table.make(n).set(n + 1);
    }
    assert_eq!(std::ptr::from_ref(table.make(0)), first);
    assert!((0..100).chain([1000]).all(|n| table.make(n).get() == n + 1));
    assert!(table.iter().all(|(n, _)| !(127..511).contains(&n)), "other blocks were not made");
    let set = table.iter().filter(|(_, place)| place.get() > 0);
    assert!(set.map(|(n, place)| (n, place.get())).eq((0..100).chain([1000]).map(|n| (n, n + 1))));
}

#[test]
fn the_last_chunk_has_a_place() {
    let (block, offset) = locate((1 << 26) / 64 - 1);
    assert!(block < BLOCKS && offset < 1 << block);
}
