//! Timeouts: the task, the handle, the run, and the return of unprocessed timeouts.
//!
//! - `next`: the result of a run: whether and when the timeout goes on
//! - `erased`: a task of any type, in two words of its slot
//! - `this_thread`: the owners of the calling thread
//! - `handle`: the handle to a timeout: cancel, reschedule, state
//! - `run`: the run of a task, and how its timeout goes on
//! - `task`: the trait of tasks, and the type-erased task that `stop` returns
//! - `task_fn`: a closure that sees its run, as a task
//! - `take`: a cancel that gives the task back
//! - `content`: the contents of a slot: a small task itself, or a box with a large one
//! - `schedule`: scheduling a task on the calling thread
//! - `internal`: the crate's own timeouts, which no public count, limit or stop includes
//! - `guard`: a guard that cancels its timeout when it is dropped
//! - `periodic`: tasks that run again and again
//! - `unprocessed`: a timeout that `stop` returns
//! - `error`: why a timeout was not accepted, or cannot be rescheduled

// First, so that the docs show its methods before those of `guard`.
mod handle;

mod content;
#[allow(unsafe_code)] // the file explains why
mod erased;
mod error;
mod guard;
mod internal;
mod next;
mod periodic;
mod run;
mod schedule;
mod take;
mod task;
mod task_fn;
mod this_thread;
mod unprocessed;

pub(crate) use erased::{Calls, Erased, Link, Shared, SharedRef};
pub use error::{RefusalReason, RescheduleError, ScheduleError};
pub use guard::CancelOnDrop;
pub use handle::Timeout;
pub(crate) use internal::{Internal, Internals};
pub use next::Next;
pub(crate) use periodic::Periodic;
pub use periodic::{MissedTickBehavior, Period, Repeat};
pub use run::Run;
pub(crate) use run::{run_elsewhere, run_on_worker};
pub(crate) use schedule::{Admit, schedule, schedule_waker};
pub(crate) use task::Kind;
pub use task::{Task, TimerTask};
pub use task_fn::{TaskFn, task_fn};
pub(crate) use this_thread::{forget, home};
pub use unprocessed::Unprocessed;
