//! The lowest layer: helpers that every other layer may use. They import nothing from the crate.
//!
//! - `boottime`: Linux and its feature alone, puts a thread to sleep by a clock that counts suspends.
//! - `catch_panic`: runs user code and catches its panics.
//! - `growing`: a table that any thread can grow.
//! - `high_resolution`: Windows alone, puts a thread to sleep until a precise timer fires or others wake it.
//! - `logging`: the `warning!` macro, for the `log` facade and `tracing`, if these features are on.
//! - `parker`: puts one thread to sleep; other threads wake it.
//! - `prefetch`: asks the processor to load memory that will be used soon.
//! - `publish`: values in the `metrics` facade, if that feature is on.
//! - `refused`: a refused value inside its error.
//! - `spread`: which shard the calling thread uses, and the number of processors.
//! - `sync`: the switch between the standard library's primitives and those of the model checkers.
//! - `waker`: the identity of a waker.

#[cfg(all(target_os = "linux", feature = "boottime", not(any(loom, shuttle))))]
mod boottime;
pub(crate) mod catch_panic;
pub(crate) mod growing;
#[cfg(all(windows, not(any(loom, shuttle))))]
#[allow(unsafe_code)] // calls of the system; the file explains why they are sound
mod high_resolution;
pub(crate) mod logging;
pub(crate) mod parker;
#[allow(unsafe_code)] // a prefetch is unsafe to call; the file explains why it is sound
pub(crate) mod prefetch;
#[cfg(feature = "metrics")]
pub(crate) mod publish;
pub(crate) mod refused;
pub(crate) mod spread;
pub(crate) mod sync;
pub(crate) mod waker;
