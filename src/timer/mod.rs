//! What belongs to a [`HashedWheelTimer`]: its builder, a handle that does not keep it alive, and details of its
//! errors.

// `HashedWheelTimer` and its errors are exported at the root. The files:
//   builder             checks the settings, and starts the worker's thread
//   hashed_wheel_timer  how a timer schedules and reports
//   stop                how it stops
//   weak                `WeakTimer`, which does not keep its timer alive
//   global              the timer of the whole process
//   error               the errors of building and stopping
//   publish             the timer's metrics in the `metrics` facade
mod builder;
pub(crate) mod error;
#[cfg(not(any(loom, shuttle)))] // a model has no statics
pub(crate) mod global;
pub(crate) mod hashed_wheel_timer;
#[cfg(all(test, loom))]
mod model;
#[cfg(feature = "metrics")]
mod publish;
mod stop;
mod weak;

pub use builder::{Builder, WheelKind};
pub use error::BusyTask;
#[cfg(not(any(loom, shuttle)))]
pub use global::InstallError;
pub(crate) use hashed_wheel_timer::HashedWheelTimer;
pub use weak::WeakTimer;
