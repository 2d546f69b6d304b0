//! Clocks: where a timer gets the time from.
//!
//! The default is [`SystemClock`]. Tests use [`ManualClock`], which moves only when it is told to. For
//! another source of time, implement [`Clock`].

// - `boottime`: `BoottimeClock`, which also runs while the machine is suspended.
// - `clock`: the public trait `Clock`, the system's clock, and the `Follower` that a clock calls.
// - `counter`: the processor's time-stamp counter, whose read needs `unsafe`.
// - `jobs`: the jobs of an executor, for which a move of a manual clock waits.
// - `latency_class`: how precisely Apple's kernels end the worker's sleeps; needs `unsafe`.
// - `manual`: `ManualClock`, which moves only when it is told to.
// - `quick`: the time for scheduling threads, faster than `Instant::now` and never behind it.
// - `tick`: arithmetic between durations, nanoseconds and ticks.
// - `timebase`: a timer's clock together with the instant that it counts from.
// - `timer_slack`: how precisely the kernel ends the worker's sleeps.

#[cfg(all(target_os = "linux", feature = "boottime", not(any(loom, shuttle))))]
mod boottime;
pub(crate) mod clock;
#[allow(unsafe_code)] // the file explains why
mod counter;
mod jobs;
#[cfg(all(target_vendor = "apple", not(any(loom, shuttle))))]
#[allow(unsafe_code)] // a call of the system; the file explains why it is sound
mod latency_class;
mod manual;
mod quick;
pub(crate) mod tick;
mod timebase;
pub(crate) mod timer_slack;

#[cfg(all(target_os = "linux", feature = "boottime", not(any(loom, shuttle))))]
pub use boottime::BoottimeClock;
pub(crate) use clock::FollowingTimer;
pub use clock::{Clock, Follower, Pace, SystemClock};
pub(crate) use jobs::Jobs;
pub use manual::ManualClock;
pub(crate) use timebase::Timebase;
