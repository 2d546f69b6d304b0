//! A timeout: its task, its handle, its run, and what comes back of it.
//!
//! - `task`: what runs, and how it is held
//! - `next`: what a run answers as it ends
//! - `handle`: the handle to a timeout, and the run of its task
//! - `guard`: a handle that cancels when it is dropped
//! - `periodic`: tasks that run again and again
//! - `unprocessed`: what `stop` gives back
//! - `error`: why a timeout keeps its deadline

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
