//! Many that do fire: all at one instant, and spread over a second.

use super::hits::{self, Hit};
use super::late::{self, Late};
use super::{Error, Figure};
use crate::delays;
use crate::process;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use std::time::{Duration, Instant};

/// How long after the last deadline a timer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than a step of settling.
const MARGIN: Duration = Duration::from_millis(150);

/// From the first run to the last. What a timer does before it runs the first is not in that, so
/// the CPU time of all of it stands beside.
pub fn same_tick<R: Rival>(timer: &R, timeouts: u64, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    hits::expect(timeouts);
    let mut producer = timer.producer();
    let due = Instant::now() + sizes.lead;
    // Kept: some of them need their handle to live.
    let kept: Vec<_> = (0..timeouts).map(|_| producer.schedule(Hit, until(due))).collect();
    settle_before(due);
    if Instant::now() >= due {
        return Err(Error::TooSlow);
    }
    let before = process::cpu_time();
    let span = hits::wait(due, PATIENCE)?;
    let cpu = process::cpu_time() - before;
    drop(kept);
    Ok(vec![
        ("ns_per_op", span.as_nanos() as f64 / timeouts as f64),
        ("cpu_ns_per_op", cpu.as_nanos() as f64 / timeouts as f64),
    ])
}

/// CPU time from before the first is due until the last has run, and how late they were.
pub fn spread<R: Rival>(timer: &R, timeouts: u64, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    late::expect(timeouts as usize);
    let mut producer = timer.producer();
    // Twice the lead: half of it to schedule, half for the timer to file what it was given.
    let start = Instant::now() + 2 * sizes.lead;
    let schedule = |i| {
        let deadline = start + delays::within_second(i, timeouts);
        producer.schedule(Late { deadline }, until(deadline))
    };
    let kept: Vec<_> = (0..timeouts).map(schedule).collect();
    settle_before(start);
    if Instant::now() >= start {
        return Err(Error::TooSlow);
    }
    let before = process::cpu_time();
    late::wait(start + Duration::from_secs(1), PATIENCE)?;
    let cpu = process::cpu_time() - before;
    let late = late::sorted();
    drop(kept);
    Ok(vec![
        ("cpu_ns_per_op", cpu.as_nanos() as f64 / timeouts as f64),
        ("p99_late_us", late::quantile_us(&late, 0.99)),
    ])
}

/// Not up to the last moment, for timers that never rest.
fn settle_before(due: Instant) {
    process::settle(until(due).saturating_sub(MARGIN));
}

fn until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}
