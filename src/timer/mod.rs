//! The public timer: `HashedWheelTimer`, its builder and its errors.
//!
//! - `builder`: checks the settings, and starts the worker's thread
//! - `handle`: `HashedWheelTimer`, how it schedules and reports
//! - `stop`: how it stops
//! - `weak`: `WeakTimer`, which does not keep its timer alive
//! - `global`: the timer of the whole process
//! - `error`: the errors of building and stopping
//! - `publish`: the timer's metrics in the `metrics` facade

mod builder;
mod error;
#[cfg(not(any(loom, shuttle)))] // a model has no statics
mod global;
mod handle;
#[cfg(all(test, loom))]
mod model;
#[cfg(feature = "metrics")]
mod publish;
mod stop;
mod weak;

pub use builder::{Builder, WheelKind};
pub use error::{BuildError, BusyTask, StopError};
#[cfg(not(any(loom, shuttle)))]
pub use global::{InstallError, global, install_global, try_global};
pub use handle::HashedWheelTimer;
pub use weak::WeakTimer;
