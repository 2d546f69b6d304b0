//! The bytes that this process has allocated and not freed. Only a program with this allocator counts them:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: &kit::live_bytes::Counting = &kit::live_bytes::COUNTING;
//! ```

pub use stats_alloc::INSTRUMENTED_SYSTEM as COUNTING;
use stats_alloc::StatsAlloc;
use std::alloc::System;
use std::sync::Mutex;

pub type Counting = StatsAlloc<System>;

/// Each test that measures holds it, because it measures the whole process. It stops its timers before
/// it ends, or what their workers free would count in the next test.
pub static ALONE: Mutex<()> = Mutex::new(());

/// The live bytes. The counter of allocated bytes has the growth of reallocations, too.
pub fn bytes() -> isize {
    let stats = COUNTING.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

/// The allocations and reallocations so far.
pub fn allocations() -> usize {
    let stats = COUNTING.stats();
    stats.allocations + stats.reallocations
}
