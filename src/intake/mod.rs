//! Intake: where other threads schedule, cancel and move timeouts, and the worker picks them up.
//!
//! Each thread that schedules owns an arena: its slots, which lie in chunks. No thread waits for another
//! here: one atomic word in a slot decides how its timeout ends.
//!
//! - `slot`: one timeout, its phases, the word that decides between them, and the cell of its task
//! - `chunk`: 62 slots, their owner, and the free ones
//! - `pin`: what keeps a slot and its chunk: the pins of handles, runs and futures, and free slots
//! - `owner`: the part of an arena that only its thread uses
//! - `arena`: the part that outlives the thread
//! - `registry`: all arenas and chunks of one timer
//! - `table`: the numbers of chunks, and the chunks that the worker does not know yet
//! - `pending`: the pending queue, by which the worker learns of new timeouts
//! - `announce`: the producers' half of it
//! - `known_chunks`: the worker's half of it: by when it looks at which chunk
//! - `alarm`: when a producer wakes the worker
//! - `catch_up`: timeouts that must run at once
//! - `clock_wait`: timeouts whose delay begins when the clock can be read again
//! - `sweep_request`: when the worker sweeps dead entries out of the wheel
//! - `release`: how the worker drops empty chunks, and when
//! - `limit`: the limit of pending timeouts
//! - `context`: what all parts of one timer share: the gate, which each handle keeps, with the clock; and the context,
//!   which goes with the timer, with the queues, the requests and the counts
//! - `test_producer`: a thread that schedules, for the tests

pub(crate) mod alarm;
mod announce;
mod arena;
mod catch_up;
mod chunk;
mod clock_wait;
pub(crate) mod context;
mod known_chunks;
mod limit;
#[cfg(all(test, loom))]
mod model;
mod owner;
mod pending;
#[allow(unsafe_code)] // the file explains why
mod pin;
mod registry;
mod release;
#[allow(unsafe_code)] // the file explains why
mod slot;
mod sweep_request;
mod table;
#[cfg(all(test, not(any(loom, shuttle))))]
mod test_producer;

pub(crate) use catch_up::CatchUp;
pub(crate) use chunk::{Chunk, MAX_CHUNKS, SLOTS, locate};
pub(crate) use known_chunks::{FileChunk, KnownChunks, is_look};
pub(crate) use owner::Owner;
pub(crate) use pin::{Armed, Collected, Emptied, EmptiedSlots, FreeSlots, Payload, Pin, Runner};
pub(crate) use registry::Registry;
pub(crate) use release::{Release, Step};
pub(crate) use slot::{
    Cancel, Claim, Claimed, Moved, Phase, Runs, SEQUENCE_SHIFT, Slot, TakenBack, UNKNOWN,
    version_of,
};
pub(crate) use sweep_request::{DEAD_ALLOWED, DEAD_PER_CHECK};
