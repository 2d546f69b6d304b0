//! The processor's time-stamp counter, on systems that derive their monotonic clock from it.
//!
//! Reading the counter needs `unsafe`. It is worth it, because reading the time is the largest part
//! of the cost of scheduling a timeout: a read of the counter took 12 ns, and `Instant::now` took
//! 32.

/// Whether the kernel derives the monotonic clock from the counter. It does so only if it has found
/// the counter to run at a constant rate and in step on all processors.
pub(super) fn drives_the_system_clock() -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
    {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(loom))))]
    false
}

/// Reads the counter. Returns 0 on systems without one.
#[inline]
pub(super) fn read() -> u64 {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]
    {
        // SAFETY: every x86-64 processor has the instruction. The kernel can forbid it to a
        // process. But `read` is called only after `drives_the_system_clock` has returned true, and
        // then the system's own clock executes the same instruction in this process.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(loom))))]
    0
}
