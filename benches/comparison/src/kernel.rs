//! What the kernel knows of this process, and of the machine.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// CPU time of all threads so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory in bytes.
pub fn resident_bytes() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| unexpected("/proc/self/statm", &text))?;
    Ok((pages * rustix::param::page_size() as u64) as f64)
}

/// Voluntary context switches so far, of all threads but the main one, which only waits.
pub fn wakeups() -> io::Result<u64> {
    let main = std::process::id().to_string();
    let mut total = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        if thread.file_name() != *main {
            let text = fs::read_to_string(thread.path().join("status"))?;
            let switches = field(&text, "voluntary_ctxt_switches").parse::<u64>();
            total += switches.map_err(|_| unexpected("/proc/self/task/*/status", &text))?;
        }
    }
    Ok(total)
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

/// What the figures were taken on, as a Markdown list.
pub fn machine(netty: Option<&str>) -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let rustc = Command::new("rustc").arg("--version").output();
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let lines = [
        ("CPU", field(&read("/proc/cpuinfo"), "model name").to_owned()),
        ("cores", thread::available_parallelism().map_or(String::new(), |n| n.to_string())),
        ("memory", field(&read("/proc/meminfo"), "MemTotal").to_owned()),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("clock", read(clock)),
        ("rustc", rustc.map_or(String::new(), |out| String::from_utf8_lossy(&out.stdout).into())),
        ("Netty", netty.unwrap_or_default().to_owned()),
    ];
    let known = lines.iter().filter(|(_name, value)| !value.is_empty());
    known.map(|(name, value)| format!("- {name}: {}\n", value.trim())).collect()
}

/// The value behind `name:` in a file of /proc; empty if there is none.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(key, _)| key.trim() == name).map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "nonvoluntary_ctxt_switches:\t3\nvoluntary_ctxt_switches:\t17\n";
        assert_eq!(field(text, "voluntary_ctxt_switches"), "17");
        assert_eq!(field(text, "switches"), "");
    }
}
