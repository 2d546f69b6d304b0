//! Intake: where other threads schedule, cancel and move timeouts, and the worker picks them up.
//!
//! Each thread that schedules owns a chunk of slots, and hardly ever waits for another while one of these is free: one
//! atomic word in a slot decides how its timeout ends.
//!
//! - `slot`: one timeout, its phases, the word that decides between them, and the cell of its task
//! - `chunk`: 62 slots, their owner, the free ones, how long they live, and which new and moved timeouts are announced
//! - `pin`: what keeps a slot and its chunk: the pins of handles and runs, and free slots
//! - `owner`: what a thread has in a timer: its chunk, its range of numbers, its counts
//! - `pool`: chunks without an owner
//! - `table`: all chunks, by number
//! - `pending`: the pending queue, by which the worker learns of new timeouts
//! - `alarm`: when a producer that has announced a timeout wakes the worker
//! - `limit`: the limit of pending timeouts
//! - `shared`: what all parts of one timer share: the gate, which each handle keeps, with the clock; and the rest,
//!   which goes with the timer: the chunks, the queues, the requests to the worker, and the counts
//! - `test_producer`: a thread that schedules, for the tests

pub(crate) mod alarm;
mod chunk;
mod limit;
#[cfg(all(test, loom))]
mod model;
mod owner;
mod pending;
#[allow(unsafe_code)] // the file explains why
mod pin;
mod pool;
pub(crate) mod shared;
#[allow(unsafe_code)] // the file explains why
mod slot;
#[allow(unsafe_code)] // the file explains why
mod table;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod test_producer;

pub(crate) use chunk::{Chunk, SLOTS, is_look, locate};
pub(crate) use owner::{Home, Owner};
pub(crate) use pin::{Collected, Emptied, FreeSlots, Payload, Pin, Runner};
pub(crate) use pool::Pool;
pub(crate) use shared::{DEAD_PER_CHECK, Shared};
pub(crate) use slot::{Cancel, Claim, Claimed, Moved, Phase, Runs, Slot, version_of};
pub(crate) use table::{MAX_CHUNKS, WorkerTable};
