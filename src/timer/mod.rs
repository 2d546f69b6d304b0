//! The timer's face: `HashedWheelTimer`, its builder, and why its calls fail.

mod builder;
mod error;
mod handle;
#[cfg(all(test, loom))]
mod model;

pub use builder::{Builder, WheelKind};
pub use error::{BuildError, ScheduleError, StopError};
pub use handle::HashedWheelTimer;
