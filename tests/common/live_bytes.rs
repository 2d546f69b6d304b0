//! The bytes that this process has allocated and not freed, for the tests of memory. It sets the global
//! allocator, so only the files that measure include it.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::Mutex;

#[global_allocator]
pub static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Each test that measures holds it, because it measures the whole process. It stops its timers before
/// it ends, or what their workers free would count in the next test.
pub static ALONE: Mutex<()> = Mutex::new(());

/// The live bytes.
pub fn bytes() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

/// The fewest bytes of a pending timeout.
pub const LEAST: isize = if cfg!(target_pointer_width = "64") { 39 } else { 33 };
