//! Threads that schedule: they end before their timeouts, they cancel each other's, and each sees its own
//! in the order in which it scheduled them.
//!
//! `thread_memory.rs` measures their memory.

mod ended;
mod slots;
mod thread_locals;

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
