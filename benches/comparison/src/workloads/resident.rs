//! What it costs to have timeouts pending of which none is due.

use super::Figures;
use crate::delays::HOUR;
use crate::kernel;
use crate::rivals::Rival;
use crate::sizes::Sizes;
use crate::task::Nothing;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

pub fn resident<R: Rival>(timer: &'static R::Timer, pending: u64, sizes: &Sizes) -> Figures {
    let mut timer = R::of(timer);
    let kept: Vec<_> = (0..pending).map(|_| timer.schedule(Nothing, HOUR)).collect();
    kernel::settle(Duration::from_secs(1) + Duration::from_micros(pending));
    let wakeups = kernel::wakeups()?;
    let cpu = kernel::cpu_time();
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(sizes.resident_ms));
    let window = begin.elapsed().as_secs_f64();
    let cpu = (kernel::cpu_time() - cpu).as_secs_f64();
    let wakeups = kernel::wakeups()? - wakeups;
    // Never cancelled: that takes long, and the process ends anyway.
    mem::forget(kept);
    Ok(vec![("cpu_percent", 100.0 * cpu / window), ("wakeups_per_s", wakeups as f64 / window)])
}
