//! The public timer: `HashedWheelTimer`, its builder and its errors.
//!
//! - `builder`: checks the settings, and starts the worker's thread
//! - `handle`: `HashedWheelTimer` and its methods
//! - `weak`: `WeakTimer`, which does not keep its timer alive
//! - `error`: the errors of building, scheduling and stopping
//! - `publish`: the timer's metrics in the `metrics` facade

mod builder;
mod error;
mod handle;
#[cfg(all(test, loom))]
mod model;
#[cfg(feature = "metrics")]
mod publish;
mod weak;

pub use builder::{Builder, WheelKind};
pub use error::{BuildError, RefusalReason, ScheduleError, StopError};
pub use handle::HashedWheelTimer;
pub use weak::WeakTimer;
