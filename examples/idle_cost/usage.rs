//! What the system says of this process (Linux).

use std::fs;
use std::io;
use std::time::Duration;

/// Thread names are cut to 15 bytes.
const TIMER_THREAD: &str = "wheelwork-timer";

pub(crate) fn resident_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("no VmRSS in /proc/self/status"))
}

/// The processor time of the timer's thread.
pub(crate) fn timer_thread() -> io::Result<Duration> {
    for task in fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == TIMER_THREAD {
            let times = fs::read_to_string(path.join("schedstat"))?;
            let nanos = times.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
            return nanos
                .map(Duration::from_nanos)
                .ok_or_else(|| io::Error::other(format!("a schedstat of {times:?}")));
        }
    }
    Err(io::Error::other("the timer's thread is not there"))
}
