use super::*;
use crate::wheel::slab::Slot;
use std::mem::{align_of, size_of};

#[test]
fn rule_04_an_entry_takes_24_bytes_besides_its_value() {
    assert_eq!(size_of::<Slot<Entry<()>>>(), 24);
    assert_eq!(size_of::<Slot<Entry<u64>>>(), 24 + 8);
    // Padded to whole deadlines, in 32 bits.
    let padded = size_of::<String>().next_multiple_of(align_of::<u64>());
    assert_eq!(size_of::<Slot<Entry<String>>>(), 24 + padded);
}
