//! What the system allows a process, and what the process has used.

#[cfg_attr(unix, path = "limits/unix.rs")]
#[cfg_attr(not(unix), path = "limits/other.rs")]
mod system;

#[allow(unused_imports)] // the live view has no use for it
pub(crate) use system::peak_memory;
pub(crate) use system::{cpu_time, is_exhaustion, raise_open_files};

/// Files that are not connections: standard streams, pipes, the poll, the listener, with room.
pub(crate) const RESERVE: u64 = 64;

/// How many connections a process can hold under this limit.
pub(crate) fn connections_within(open_files: u64) -> u64 {
    open_files.saturating_sub(RESERVE)
}
