//! Timing wheels as pure data structures: no thread, no clock, no lock. The caller tells them the
//! time.
//!
//! A test can drive them, or your own event loop. The worker of
//! [`HashedWheelTimer`](crate::HashedWheelTimer) runs on the same structures.
//!
//! Every wheel is a [`Wheel<T, S>`](Wheel) with the same methods, on top of one of these structures `S`:
//!
//! | structure | what it is | exact | price |
//! |---|---|---|---|
//! | [`Hashed`] | one ring, rounds | yes | long timeouts are checked again |
//! | [`Hierarchical`] | levels on demand | yes | larger entries, moved down |
//! | [`LinuxClassic`] | five levels | yes | the same, and always 32 KiB |
//! | [`Linux`] | nine levels | no | late by a tick, or up to 12.7 % of the delay |
//! | [`Simple`] | one ring | yes | refuses delays of a turn or more |
//!
//! Beside them: a [`DelayLine`] for timeouts of one fixed delay, a [`TimedWheel`] that is told the time in
//! instants and whose time can be paused and scaled, and the [`Ticks`] on which it counts. A [`LocalTimer`] has
//! sleeps for async tasks of one thread, driven by the loop of that thread.
//!
//! The timer runs on the first three; see [`WheelKind`](crate::timer::WheelKind).
//! [Choosing a wheel](crate::guide::choosing_a_wheel) has pictures of them, and
//! [your own loop](crate::guide::own_loop) has programs.
//! docs/wheels.md compares all of them by measurement.

// The structures, with the scheme of Varghese and Lauck (1987) and the model:
//   hashed         scheme 6, Netty: one ring, rounds; 8 bytes an entry, a whole bucket is read
//   hierarchical   scheme 7, Kafka: levels on demand; 16 bytes an entry, entries are moved down
//   linux_classic  scheme 7, Linux before 4.8: five levels; the same, and 32 KiB of buckets
//   linux          scheme 7, Linux since 4.8: nine levels; 8 bytes an entry, never moved but late
//   simple         scheme 4: one ring; 16 bytes an entry, delays of less than a turn
// What `hierarchical`, `linux_classic` and `simple` share:
//   cascade        levels between which timeouts are moved down
//   level          one level of a cascade
// On top of the structures:
//   values         the public `Wheel`: values and their keys, in a slab; in the order of insertion; in passes that stop
//                  half-way
//   key            the key of a value, and a value that has expired
//   local          sleeps on it, for the tasks of one thread
//   timed          a wheel that is told the time in instants
//   ticks          instants into ticks; time that pauses and scales
//   delay_line     a list for one fixed delay, instead of a wheel
//   filing         a structure with its agenda and the number of its entries
//   agenda         the due timeouts, in the order of ticks
// Below them:
//   structure      the traits that every structure implements
//   sweep          when dead entries are dropped, and how
//   confirm        the search for the earliest live entry
//   bucket         the entries of one slot of a wheel
//   sorted         tokens in the order of their ticks
//   earliest       the earliest tick of each bucket, and of all
//   token          a timeout's name in a structure
mod agenda;
mod bucket;
mod cascade;
mod confirm;
mod delay_line;
mod earliest;
mod filing;
mod hashed;
mod hierarchical;
mod key;
mod level;
mod linux;
mod linux_classic;
mod local;
mod simple;
mod sorted;
mod structure;
mod sweep;
#[cfg(test)]
mod tests;
mod ticks;
mod timed;
mod token;
mod values;

pub use delay_line::DelayLine;
pub use hashed::{Hashed, WheelSizeError};
pub use hierarchical::{Hierarchical, LevelSizeError};
pub use key::{Expired, Key};
pub use linux::Linux;
pub use linux_classic::LinuxClassic;
pub use local::{Elapsed, LocalInterval, LocalSleep, LocalTimeout, LocalTimer};
pub use simple::{DelayError, Simple};
pub use structure::{Placement, Structure, Unlimited};
pub use ticks::{SpeedError, Ticks, ZeroDurationError};
pub use timed::TimedWheel;
pub use values::Wheel;
pub(crate) use values::slab;

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use confirm::Confirm;
pub(crate) use confirm::{NextLive, Standing};
pub(crate) use filing::Filing;
pub(crate) use hashed::MAX_TICKS_PER_WHEEL;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use structure::TokenWheel;
pub(crate) use structure::{Batch, Exact};
pub(crate) use sweep::is_sweep_worth_it;
pub(crate) use token::{Due, Token, Version};
