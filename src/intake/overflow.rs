//! The pins that a slot's tag cannot count.
//!
//! The tag counts up to 65,535 pins. It is *full* then, and further pins of the slot are counted in a table,
//! which all slots of the process share. Few programs ever have that many handles to one timeout, so the
//! table costs the others nothing.
//!
//! Invariant: the table has an entry for a slot only while the tag is full. A thread that finds the tag full
//! takes the table's lock and looks again. A full tag changes only under this lock. So the number of pins is
//! exact. The lock also orders the accesses of each handle before those of the thread that removes the last
//! pin: the table's entry is gone before the tag is lowered.

use crate::base::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The pins beyond the tag, by the address of their slot.
static TABLE: OnceLock<Mutex<BTreeMap<usize, u64>>> = OnceLock::new();

/// Calls `change` with the number of pins beyond the tag of the slot at this address. The caller has a pin, so
/// the address stays that of its slot.
#[cold]
pub(super) fn with<R>(address: usize, change: impl FnOnce(&mut u64) -> R) -> R {
    let mut table = TABLE.get_or_init(|| Mutex::new(BTreeMap::new())).lock();
    let beyond = table.entry(address).or_default();
    let changed = change(beyond);
    if *beyond == 0 {
        table.remove(&address);
    }
    changed
}
