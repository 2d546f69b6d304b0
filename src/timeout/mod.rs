//! A timeout: its task, its handle, and what comes back of it.

mod error;
mod handle;
mod periodic;
mod unprocessed;

pub use error::{RearmError, RescheduleError};
pub use handle::{CancelOnDrop, Timeout, TimerTask};
pub(crate) use handle::{Task, TimerShard};
pub(crate) use periodic::Periodic;
pub use periodic::{MissedTickBehavior, Period};
pub use unprocessed::Unprocessed;
