//! Timer slack: how precisely the kernel ends the worker's sleeps.
//!
//! By default, Linux lets a sleep end up to 50 µs late, so that it can group wake-ups. That is half of a tick of 100
//! µs. So for a tick below 5 ms, the worker asks for 1 % of a tick, at least 1 µs. With sleeps of 100 µs, a slack of 1
//! µs reduced the median lateness from 102 to 58 µs. The slack is a property of the calling thread. Threads that a
//! task starts on the worker inherit it; no others are affected.
//!
//! On Apple's systems the delay is a fraction of the sleep, up to 5 ms; for such ticks, `latency_class` shortens it to
//! 1 ms. Other systems have no setting for a thread. On Windows, the parker sleeps in a timer that is precise by itself.

/// The kernel's default on Linux, in nanoseconds.
const DEFAULT: u64 = 50_000;

/// The least slack that the worker asks for.
const LEAST: u64 = 1_000;

/// Sets the calling thread's slack to one percent of a tick, but to at least 1 µs. If that is not
/// less than Linux's default, the system's default stays.
pub(crate) fn fit_to(tick_nanos: u64) {
    let slack = (tick_nanos / 100).max(LEAST);
    if slack < DEFAULT {
        set(slack);
    }
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
fn set(nanos: u64) {
    // Without such a file, the timer is less precise, but correct.
    let _ = file_of_this_thread().and_then(|file| std::fs::write(file, nanos.to_string()));
}

/// The file of the kernel that has the slack. `prctl` would need `unsafe`, or a crate that has it.
#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
fn file_of_this_thread() -> std::io::Result<std::path::PathBuf> {
    let thread = std::fs::read_link("/proc/thread-self")?; // PROCESS/task/THREAD
    let number = thread.file_name().ok_or(std::io::ErrorKind::NotFound)?;
    Ok(std::path::Path::new("/proc").join(number).join("timerslack_ns"))
}

#[cfg(all(target_vendor = "apple", not(any(loom, shuttle))))]
fn set(_nanos: u64) {
    super::latency_class::shorten();
}

#[cfg(any(not(any(target_os = "linux", target_vendor = "apple")), loom, shuttle))]
fn set(_nanos: u64) {}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests;
