//! Processor time in seconds. Other work on the machine does not count. NaN on a system without such a clock.

#[cfg(unix)]
pub use unix::{of_process, of_thread};

#[cfg(unix)]
mod unix {
    use nix::time::{ClockId, clock_gettime};

    /// The time of all threads so far.
    pub fn of_process() -> f64 {
        read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
    }

    /// The time of this thread so far.
    pub fn of_thread() -> f64 {
        read(ClockId::CLOCK_THREAD_CPUTIME_ID)
    }

    fn read(clock: ClockId) -> f64 {
        let time = clock_gettime(clock).expect("a clock that is always there");
        time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
    }
}

#[cfg(not(unix))]
pub fn of_process() -> f64 {
    f64::NAN
}

#[cfg(not(unix))]
pub fn of_thread() -> f64 {
    f64::NAN
}
