use super::*;
use std::mem::size_of;

#[test]
fn rule_04_an_entry_takes_24_bytes_besides_its_value() {
    assert_eq!(size_of::<Entry<()>>(), 24);
    assert_eq!(size_of::<Entry<u64>>(), 24 + 8);
    // In 32 bits, four of them are padding, which three words fill.
    let padding = if cfg!(target_pointer_width = "64") { 0 } else { 4 };
    assert_eq!(size_of::<Entry<String>>(), 24 - padding + size_of::<String>());
}
