//! Timeouts: the task, the handle, the run, and the return of unprocessed timeouts.
//!
//! - `task`: the trait of tasks, what their runs return, closures, and the type-erased task that `stop` returns
//! - `payload`: a task of any type, in three words of its slot
//! - `this_thread`: the owners of the calling thread
//! - `schedule`: scheduling a task on the calling thread, and the crate's own timeouts
//! - `handle`: the handle to a timeout: cancel, reschedule, state; and the guard that cancels when it is dropped
//! - `run`: the run of a task, and how its timeout goes on
//! - `periodic`: periods, what becomes of missed runs, and tasks that run again and again
//! - `unprocessed`: a timeout that `stop` returns
//! - `error`: why a timeout was not accepted, or cannot be rescheduled

mod error;
mod handle;
#[allow(unsafe_code)] // the file explains why
mod payload;
mod periodic;
mod run;
mod schedule;
mod task;
mod this_thread;
mod unprocessed;

pub use error::{RefusalReason, RescheduleError, ScheduleError};
pub(crate) use handle::Internal;
pub use handle::{CancelOnDrop, Timeout};
pub(crate) use payload::{Calls, Erased, Link, Shared, SharedRef};
pub(crate) use periodic::Periodic;
pub use periodic::{MissedTickBehavior, Period, Repeat};
pub use run::Run;
pub(crate) use run::{run_elsewhere, run_on_worker};
pub(crate) use schedule::{Admit, Internals, schedule};
pub(crate) use task::Kind;
pub use task::{Next, Task, TaskFn, TimerTask, task_fn};
pub(crate) use this_thread::{forget, home};
pub use unprocessed::Unprocessed;
