//! What the figures were taken on.

use std::fs;
use std::process::Command;
use std::thread;

/// As a Markdown list.
pub fn description() -> String {
    let cores = thread::available_parallelism().map_or_else(|e| e.to_string(), |n| n.to_string());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let lines = [
        ("CPU", cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())),
        ("cores", cores),
        ("memory", memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default())),
        ("kernel", kernel),
        ("clock", first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("rustc", rustc()),
    ];
    let known = lines.iter().filter(|(_name, value)| !value.trim().is_empty());
    known.map(|(name, value)| format!("- {name}: {}\n", value.trim())).collect()
}

fn cpu_model(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_name, model)| model.into())
}

fn memory(meminfo: &str) -> String {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(String::new(), |kib| format!("{} GiB", kib.div_ceil(1 << 20)))
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_files_are_understood() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t: x\n";
        assert_eq!(cpu_model(cpuinfo).trim(), "Fast CPU @ 3 GHz");
        assert_eq!(memory("MemTotal:       24567890 kB\nMemFree: 1 kB\n"), "24 GiB");
        assert_eq!(cpu_model(""), "");
        assert_eq!(memory("nonsense"), "");
    }
}
