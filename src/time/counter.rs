//! The processor's time-stamp counter, where the system's monotonic clock is made of it.
//!
//! The only `unsafe` of the crate. Measured: 12 ns a read, against 32 for `Instant::now`, which is
//! the largest part of scheduling a timeout.

/// Whether the counter ticks as the monotonic clock does: the kernel has found it constant,
/// synchronous between processors, and derives the clock from it.
pub(super) fn drives_the_system_clock() -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
    {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(loom))))]
    false
}

/// Reads the counter; 0 where there is none.
#[inline]
pub(super) fn read() -> u64 {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
    {
        // SAFETY: every x86-64 processor has the instruction. The kernel can forbid it to a
        // process, but `read` is called only after `drives_the_system_clock` was true, and then
        // the system's own clock executes it in the same process.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(loom))))]
    0
}
