//! On Windows, which limits a process by its memory alone. The example does not measure there.

use std::io;
use std::time::Duration;

/// As many as there are ports.
const CONNECTIONS: u64 = 60_000;

pub(crate) fn raise_open_files() -> io::Result<u64> {
    Ok(CONNECTIONS)
}

/// Whether the system has, for now, run out of sockets, memory or ports.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    const WSAEMFILE: i32 = 10_024;
    const WSAEADDRNOTAVAIL: i32 = 10_049;
    const WSAENOBUFS: i32 = 10_055;
    let code = error.raw_os_error();
    code.is_some_and(|code| [WSAEMFILE, WSAEADDRNOTAVAIL, WSAENOBUFS].contains(&code))
}

/// Zero: not measured.
pub(crate) fn cpu_time() -> io::Result<Duration> {
    Ok(Duration::ZERO)
}

/// Zero: not measured.
pub(crate) fn peak_memory() -> io::Result<u64> {
    Ok(0)
}
