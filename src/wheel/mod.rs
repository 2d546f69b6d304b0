//! The timing wheel as a pure data structure: no thread, no clock, no lock. It is told the time.
//!
//! [`HashedWheel`] is scheme 6 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels"
//! (1987): one ring of a power-of-two number of buckets, and for each timeout the number of rounds
//! that the pointer still has to make past its bucket. It can be driven by a test, by an event
//! loop of your own, or by the worker of [`HashedWheelTimer`](crate::HashedWheelTimer), which runs
//! on the same ring.

mod bucket;
mod earliest;
mod far;
mod hashed;
mod ring;

pub use hashed::{HashedWheel, Key, WheelSizeError};
pub(crate) use ring::{Due, MAX_TICKS_PER_WHEEL, Ring, Token};
