//! Timeouts: the task, the handle, the run, and the return of unprocessed timeouts.
//!
//! - `task`: the trait of tasks, closures, and the type-erased task that `stop` returns
//! - `next`: the result of a run: whether and when the timeout goes on
//! - `payload`: a task of any type, in two words of its slot
//! - `this_thread`: the owners of the calling thread
//! - `schedule`: scheduling a task on the calling thread
//! - `handle`: the handle to a timeout: cancel, reschedule, state
//! - `run`: the run of a task, and how its timeout goes on
//! - `periodic`: tasks that run again and again
//! - `internal`: the crate's own timeouts, which no public count, limit or stop includes
//! - `unprocessed`: a timeout that `stop` returns
//! - `guard`: a guard that cancels its timeout when it is dropped
//! - `error`: why a timeout was not accepted, or cannot be rescheduled

// First, so that the docs show its methods before those of `guard`.
mod handle;

mod error;
mod guard;
mod internal;
mod next;
#[allow(unsafe_code)] // the file explains why
mod payload;
mod periodic;
mod run;
mod schedule;
mod task;
mod this_thread;
mod unprocessed;

pub use error::{RefusalReason, RescheduleError, ScheduleError};
pub use guard::CancelOnDrop;
pub use handle::Timeout;
pub(crate) use internal::{Internal, Internals};
pub use next::Next;
pub(crate) use payload::{Calls, Erased, Link, Shared, SharedRef};
pub(crate) use periodic::Periodic;
pub use periodic::{MissedTickBehavior, Period, Repeat};
pub use run::Run;
pub(crate) use run::{run_elsewhere, run_on_worker};
pub(crate) use schedule::{Admit, schedule, schedule_waker};
pub(crate) use task::Kind;
pub use task::{Task, TaskFn, TimerTask, task_fn};
pub(crate) use this_thread::{forget, home};
pub use unprocessed::Unprocessed;
