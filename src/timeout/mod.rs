//! Timeouts: the task, the handle, the run, and the return of unprocessed timeouts.
//!
//! - `task`: tasks, and what `stop` gives back of them
//! - `erased`: a task of any type, as it lies in its slot
//! - `producer`: the heaps of the calling thread
//! - `next`: the result of a run: whether and when the timeout goes on
//! - `handle`: the handle to a timeout, and the run of its task
//! - `guard`: a guard that cancels its timeout when it is dropped
//! - `periodic`: tasks that run again and again
//! - `unprocessed`: a timeout that `stop` returns
//! - `error`: why a timeout cannot be rescheduled

#[allow(unsafe_code)] // the file explains why
mod erased;
mod error;
mod guard;
mod handle;
mod next;
mod periodic;
mod producer;
mod task;
mod unprocessed;

pub(crate) use erased::Erased;
pub use error::RescheduleError;
pub use guard::CancelOnDrop;
pub(crate) use handle::GoesOn;
pub use handle::{Run, Timeout};
pub use next::Next;
pub(crate) use periodic::Periodic;
pub use periodic::{MissedTickBehavior, Period, Repeat};
pub(crate) use producer::{Admit, Refusal, forget, schedule};
pub use task::{Task, TimerTask};
pub use unprocessed::Unprocessed;
