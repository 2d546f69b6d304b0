//! Timeouts: the task, the handle, the run, and the return of unprocessed timeouts.
//!
//! - `task`: tasks, and how they are held until they run
//! - `next`: the result of a run: whether and when the timeout goes on
//! - `handle`: the handle to a timeout, and the run of its task
//! - `guard`: a guard that cancels its timeout when it is dropped
//! - `periodic`: tasks that run again and again
//! - `unprocessed`: a timeout that `stop` returns
//! - `error`: why a timeout cannot be rescheduled

mod error;
mod guard;
mod handle;
mod next;
mod periodic;
mod task;
mod unprocessed;

pub use error::RescheduleError;
pub use guard::CancelOnDrop;
pub(crate) use handle::{BoxedTask, TimerShard};
pub use handle::{Run, Timeout};
pub use next::Next;
pub(crate) use periodic::Periodic;
pub use periodic::{MissedTickBehavior, Period, Repeat};
pub(crate) use task::{Held, Hold, Moved};
pub use task::{Task, TimerTask};
pub use unprocessed::Unprocessed;
