//! A hashed wheel timer for a million connection timeouts.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod agenda;
mod alarm;
pub mod clock;
mod error;
pub mod executor;
mod inbox;
mod isolate;
mod lifecycle;
mod logging;
mod metrics;
mod parker;
mod periodic;
mod shared;
mod slab;
mod sync;
mod tick;
mod timeout;
mod timer;
mod timer_slack;
mod unprocessed;
pub mod wheel;
mod worker;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{BuildError, RearmError, RescheduleError, ScheduleError, StopError};
pub use executor::Executor;
pub use metrics::{Lateness, Metrics};
pub use periodic::{MissedTickBehavior, Period};
pub use timeout::{CancelOnDrop, Timeout, TimerTask};
pub use timer::{Builder, HashedWheelTimer};
pub use unprocessed::Unprocessed;
