//! The public timer: `HashedWheelTimer`, its builder and its errors.
//!
//! - `builder`: checks the settings, and starts the worker's thread
//! - `handle`: `HashedWheelTimer` and its methods
//! - `error`: the errors of building, scheduling and stopping

mod builder;
mod error;
mod handle;
#[cfg(all(test, loom))]
mod model;

pub use builder::{Builder, WheelKind};
pub use error::{BuildError, RefusalReason, ScheduleError, StopError};
pub use handle::HashedWheelTimer;
