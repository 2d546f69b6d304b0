//! Timing wheels as pure data structures: no thread, no clock, no lock. They are told the time.
//!
//! They can be driven by a test, by an event loop of your own, or by the worker of
//! [`HashedWheelTimer`](crate::HashedWheelTimer), which runs on the same structures. All are one
//! [`Wheel`] with the same methods; the structure behind it is one of these. The schemes are those
//! of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987).
//!
//! | | structure | scheme | takes | exact |
//! |---|---|---|---|---|
//! | [`HashedWheel`] | one ring, with rounds | 6, Netty | any delay | yes |
//! | [`HierarchicalWheel`] | levels on demand, cascading | 7, Kafka | any delay | yes |
//! | [`LinuxClassicWheel`] | five levels, cascading | 7, Linux before 4.8 | any delay | yes |
//! | [`LinuxWheel`] | nine levels, nothing is moved | 7, Linux since 4.8 | any delay | late by up to 12.7 % |
//! | [`SimpleWheel`] | one ring | 4 | less than a turn | yes |

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
