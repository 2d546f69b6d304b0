//! Timing wheels as pure data structures: no thread, no clock, no lock. The caller tells them the
//! time.
//!
//! A test can drive them, or an event loop of your own. The worker of
//! [`HashedWheelTimer`](crate::HashedWheelTimer) runs on the same structures.
//!
//! Every wheel is a [`Wheel`] with the same methods, on top of one of the structures below. The
//! scheme numbers are those of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987).
//!
//! | | structure | scheme | takes | exact |
//! |---|---|---|---|---|
//! | [`HashedWheel`] | one ring, with rounds | 6, Netty | any delay | yes |
//! | [`HierarchicalWheel`] | levels on demand, cascading | 7, Kafka | any delay | yes |
//! | [`LinuxClassicWheel`] | five levels, cascading | 7, Linux before 4.8 | any delay | yes |
//! | [`LinuxWheel`] | nine levels, nothing is moved | 7, Linux since 4.8 | any delay | late by up to 12.7 % |
//! | [`SimpleWheel`] | one ring | 4 | less than a turn | yes |

// The structures:
//   hashed         one ring of buckets with rounds; the timer's default
//   cascade        levels that move timeouts down; the common part of the next three
//   hierarchical   its layout after Kafka
//   linux_classic  its layout after Linux before 4.8
//   simple         its layout with a single level
//   linux          levels that move nothing, after Linux since 4.8
// On top of them:
//   values         the public `Wheel`: values and their keys
//   agenda         all timeouts that are due in one pass, in the order of ticks
// Below them:
//   structure      the traits that every structure implements, and the position of a sweep
//   confirm        the search for the earliest live entry
//   level          one level of a cascade
//   bucket         the entries of one slot of a wheel
//   far            timeouts that are too far away for any bucket
//   earliest       the earliest tick of each bucket, and of all
//   token          what a structure holds in place of a timeout
mod agenda;
mod bucket;
mod cascade;
mod confirm;
mod earliest;
mod far;
mod hashed;
mod hierarchical;
mod level;
mod linux;
mod linux_classic;
mod simple;
mod structure;
#[cfg(test)]
mod tests;
mod token;
mod values;

pub use hashed::{HashedWheel, Ring as Hashed, WheelSizeError};
pub use hierarchical::{Hierarchical, HierarchicalWheel, LevelSizeError};
pub use linux::{Linux, LinuxWheel};
pub use linux_classic::{LinuxClassic, LinuxClassicWheel};
pub use simple::{DelayError, Simple, SimpleWheel};
pub use structure::{Placement, Structure, Unlimited};
pub use values::{Key, Wheel};

pub(crate) use agenda::Agenda;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use confirm::Confirm;
pub(crate) use confirm::{Next, Standing};
pub(crate) use hashed::MAX_TICKS_PER_WHEEL;
pub(crate) use structure::Exact;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use structure::{Batch, TokenWheel};
pub(crate) use token::{Due, Token};
