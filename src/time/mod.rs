//! Clocks: where a timer gets the time from.
//!
//! The default is [`SystemClock`]. Tests use [`ManualClock`], which moves only when it is told to. For
//! another source of time, implement [`Clock`].

// - `clock`: the public trait `Clock`, the system's clock, and the `Follower` that a clock calls.
// - `counter`: the processor's time-stamp counter, whose read needs `unsafe`.
// - `jobs`: the jobs of an executor, for which a move of a manual clock waits.
// - `manual`: `ManualClock`, which moves only when it is told to.
// - `quick`: the time for scheduling threads, faster than `Instant::now` and never behind it.
// - `run`: runs futures on a manual clock, which moves when all of them wait.
// - `tick`: arithmetic between durations, nanoseconds and ticks.
// - `timebase`: a timer's clock together with the instant that it counts from.
// - `timer_slack`: how precisely the kernel ends the worker's sleeps.

pub(crate) mod clock;
#[allow(unsafe_code)] // the file explains why
mod counter;
mod jobs;
mod manual;
mod quick;
mod run;
pub(crate) mod tick;
mod timebase;
pub(crate) mod timer_slack;

pub(crate) use clock::FollowingTimer;
pub use clock::{Clock, Follower, Pace, SystemClock};
pub(crate) use jobs::Jobs;
pub use manual::ManualClock;
pub use run::{Spawned, Tasks};
pub(crate) use timebase::Timebase;
