//! What the kernel knows of this process, and of the machine.

use procfs::process::Process;
use procfs::{CpuInfo, Current, Meminfo, ProcResult};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// CPU time of all threads so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time so far of all threads but this one.
pub fn cpu_time_of_others() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    cpu_time().saturating_sub(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Resident memory in bytes.
pub fn resident_bytes() -> ProcResult<f64> {
    Ok((Process::myself()?.statm()?.resident * procfs::page_size()) as f64)
}

/// Voluntary context switches so far, of all threads but the main one, which only waits.
pub fn wakeups() -> ProcResult<u64> {
    let me = Process::myself()?;
    let mut total = 0;
    for thread in me.tasks()? {
        let thread = thread?;
        if thread.tid != me.pid {
            total += thread.status()?.voluntary_ctxt_switches.unwrap_or(0);
        }
    }
    Ok(total)
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
pub fn machine(netty: Option<&str>, rounds: u32) -> String {
    let read = |path| fs::read_to_string(path).ok();
    let cpu = CpuInfo::current().ok();
    let printed = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned()).filter(|text| !text.is_empty())
    };
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let lines = [
        ("commit", printed("git", &["describe", "--always", "--dirty"])),
        ("date", printed("date", &["+%F"])),
        ("CPU", cpu.as_ref().and_then(|cpu| cpu.model_name(0).map(str::to_owned))),
        ("cores", thread::available_parallelism().ok().map(|cores| cores.to_string())),
        ("memory", Meminfo::current().ok().map(|it| format!("{} kB", it.mem_total / 1024))),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("clock", read(clock)),
        ("rustc", printed("rustc", &["--version"])),
        ("Netty", netty.map(str::to_owned)),
        ("rounds", Some(rounds.to_string())),
    ];
    let known = lines.iter().filter_map(|(name, value)| Some((name, value.as_ref()?.trim())));
    known.map(|(name, value)| format!("- {name}: {value}\n")).collect()
}
