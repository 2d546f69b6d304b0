//! Claim: a wheel takes a few bytes more than the value for each timeout, and its buckets.
//!
//! A bench of its own, because the counting allocator would slow down the others. Bytes live for
//! each timeout once all are inserted.

mod compared;
mod workload;

use compared::{BTree, Fitting, Heap, OrderedList, SkipList, Timers};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use wheelwork::wheel::{
    HashedWheel, HierarchicalWheel, LinuxClassicWheel, LinuxWheel, SimpleWheel,
};
use workload::{Delays, TURN};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn live_bytes() -> f64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}

fn bytes_each<T: Timers>(deadlines: &[u64], new: impl Fn() -> T) -> f64 {
    let before = live_bytes();
    let mut timers = new();
    for (value, &deadline) in (0u64..).zip(deadlines) {
        timers.insert(deadline, value);
    }
    (live_bytes() - before) / deadlines.len() as f64
}

fn main() {
    let turn = TURN as usize;
    println!(
        "| delays | timeouts | simple | hashed | hierarchical | Linux classic | Linux | binary heap | B-tree | skip list | ordered list |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for delays in Delays::ALL {
        for n in [1_000, 100_000, 1_000_000] {
            let d = delays.draw(n);
            let simple = match delays {
                Delays::Short => {
                    format!(
                        "{:.0}",
                        bytes_each(&d, || Fitting(SimpleWheel::new(turn).expect("a size")))
                    )
                }
                _ => String::new(),
            };
            let others = [
                bytes_each(&d, || HashedWheel::new(turn).expect("a size")),
                bytes_each(&d, || HierarchicalWheel::new(turn).expect("a size")),
                bytes_each(&d, LinuxClassicWheel::new),
                bytes_each(&d, LinuxWheel::new),
                bytes_each(&d, Heap::default),
                bytes_each(&d, BTree::default),
                bytes_each(&d, SkipList::default),
            ];
            let others = others.map(|bytes| format!("{bytes:.0}")).join(" | ");
            // A list takes the same for each, and an insert too long.
            let list = bytes_each(&d[..1_000], OrderedList::default);
            println!("| {} | {n} | {simple} | {others} | {list:.0} |", delays.name());
        }
    }
}
