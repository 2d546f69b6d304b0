//! What it costs to have timeouts pending of which none is due.

use super::{Error, Figure};
use crate::process;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::task::Nothing;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

const FAR: Duration = Duration::from_secs(3600);

pub fn resident<R: Rival>(timer: &R, pending: u64, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    let mut producer = timer.producer();
    // Never cancelled: that takes long, and the process ends anyway.
    let kept: Vec<_> = (0..pending).map(|_| producer.schedule(Nothing, FAR)).collect();
    process::settle(Duration::from_secs(1) + Duration::from_micros(pending));
    let wakeups = process::wakeups()?;
    let cpu = process::cpu_time();
    let begin = Instant::now();
    thread::sleep(sizes.resident);
    let window = begin.elapsed().as_secs_f64();
    let cpu = (process::cpu_time() - cpu).as_secs_f64();
    let wakeups = process::wakeups()? - wakeups;
    mem::forget(kept);
    Ok(vec![("cpu_percent", 100.0 * cpu / window), ("wakeups_per_s", wakeups as f64 / window)])
}
