//! What the kernel knows of this process.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// CPU time of all threads so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory in bytes.
pub fn resident_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| unexpected("/proc/self/statm", &text))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Voluntary context switches so far, of all threads but the main one, which only waits.
pub fn wakeups() -> io::Result<u64> {
    let main = std::process::id().to_string();
    let mut total = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        if thread.file_name() != *main {
            let text = fs::read_to_string(thread.path().join("status"))?;
            total += voluntary_switches(&text)
                .ok_or_else(|| unexpected("/proc/self/task/*/status", &text))?;
        }
    }
    Ok(total)
}

fn voluntary_switches(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

fn unexpected(file: &str, text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("unexpected content of {file}: {text:?}"))
}

/// Waits until the threads have worked off what they were given: less than 2 % of a core over two
/// windows, or until the limit, for timers that never rest.
pub fn settle(limit: Duration) {
    const WINDOW: Duration = Duration::from_millis(100);
    let until = Instant::now() + limit;
    let mut calm = 0;
    while calm < 2 && Instant::now() < until {
        let before = cpu_time();
        thread::sleep(WINDOW);
        let used = cpu_time() - before;
        calm = if used < WINDOW / 50 { calm + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_file_is_understood() {
        let text = "Name:\tx\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(voluntary_switches(text), Some(17));
        assert_eq!(voluntary_switches("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_is_measurable() {
        assert!(resident_bytes().unwrap() > 0);
        assert!(cpu_time() > Duration::ZERO);
        // The test runs beside the main thread.
        assert!(wakeups().is_ok());
    }
}
