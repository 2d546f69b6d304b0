//! On Unix.

use nix::errno::Errno;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use std::io;
use std::time::Duration;

/// Raises the soft open-file limit to the hard one, and returns what then holds.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    // Some systems report a hard limit that they do not grant. Then the soft one is the limit.
    let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    #[allow(clippy::unnecessary_cast)] // another type in 32 bits, and on FreeBSD
    Ok(if raised.is_ok() { hard } else { soft } as u64)
}

/// Whether the system has, for now, run out of files, memory or ports.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    use Errno::{EADDRNOTAVAIL, EMFILE, ENFILE, ENOBUFS, ENOMEM};
    let errno = error.raw_os_error().map(Errno::from_raw);
    errno.is_some_and(|e| [EADDRNOTAVAIL, EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(&e))
}

/// The processor time of this process so far, in user code and in the kernel.
pub(crate) fn cpu_time() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64);
    Ok(Duration::from_micros(micros.iter().sum()))
}

/// The most memory that this process has had in use, in bytes.
pub(crate) fn peak_memory() -> io::Result<u64> {
    // Where there is one, the process's own page is better than getrusage, whose maximum is
    // inherited from the program that started this one.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    if let Some(kib) = own.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok()) {
        return Ok(kib * 1024);
    }
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Ok(getrusage(UsageWho::RUSAGE_SELF)?.max_rss() as u64 * unit)
}
