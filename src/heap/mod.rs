//! Heaps: where other threads schedule, cancel and move timeouts, and the worker picks them up.
//!
//! Each thread that schedules owns a heap: its slots, which lie in chunks. No thread waits for another
//! here: one atomic word in a slot decides how its timeout ends.
//!
//! - `slot`: one timeout, its phases, the word that decides between them, and the cell of its task
//! - `overflow`: the pins that a slot's own word cannot count
//! - `chunk`: 62 slots, their owner, and the free ones
//! - `pinned`: a pointer to the chunk of a pinned slot
//! - `owner`: the part of a heap that only its thread uses
//! - `heap`: the part that outlives the thread
//! - `pending`: the pending queue, and how a timeout is announced to the worker
//! - `looks`: the worker's half of the pending queue: by when it looks at which chunk
//! - `registry`: all heaps and chunks of one timer
//! - `context`: the state that all handles of one timer share with its worker
//! - `closing`: the word by which a timer is closed
//! - `alarm`: when a producer wakes the worker
//! - `tally`: the counts of each thread
//! - `limit`: the limit of pending timeouts
//! - `metrics`: the public snapshot, the worker's counters, the lateness histogram
//! - `heap_metrics`: the public snapshot of one heap
//! - `producer`: a thread that schedules, for the tests

pub(crate) mod alarm;
mod chunk;
mod closing;
pub(crate) mod context;
#[allow(clippy::module_inception)] // the folder's main file
mod heap;
pub(crate) mod heap_metrics;
mod limit;
mod looks;
pub(crate) mod metrics;
#[cfg(all(test, loom))]
mod model;
mod overflow;
mod owner;
mod pending;
#[allow(unsafe_code)] // the file explains why
mod pinned;
#[cfg(all(test, not(any(loom, shuttle))))]
mod producer;
mod registry;
#[allow(unsafe_code)] // the file explains why
mod slot;
mod tally;

pub(crate) use chunk::{Chunk, MAX_CHUNKS, SLOTS, locate};
pub(crate) use context::CatchUp;
pub(crate) use looks::{FileChunk, Looks};
pub(crate) use owner::Owner;
pub(crate) use pinned::PinnedChunk;
pub(crate) use registry::Registry;
pub(crate) use slot::{Cancel, Claim, Claimed, Moved, Phase, Runs, Slot, TakenBack, version_of};
pub(crate) use tally::{Count, Tally};
