//! Many that do fire: all at one instant, and spread over a second.

use super::hits;
use super::late::{self, Late};
use super::{Error, Figure};
use crate::delays;
use crate::process;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::task::{Nothing, Task};
use std::time::{Duration, Instant};

/// How long after the last deadline a timer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many times what the trial took: it gets dearer with what is present.
const RESERVE: u32 = 6;
const FAR: Duration = Duration::from_secs(3600);
/// Longer than a step of settling.
const MARGIN: Duration = Duration::from_millis(150);

/// From the first run to the last of tasks that count themselves. What a timer does before it runs
/// the first is not in that, so the CPU time of all of it stands beside.
pub fn same_tick<R: Rival>(
    timer: &R,
    timeouts: u64,
    hit: impl Task,
    sizes: &Sizes,
) -> Result<Vec<Figure>, Error> {
    let mut producer = timer.producer();
    let lead = lead(&mut producer, timeouts, sizes, |_| FAR);
    hits::expect(timeouts);
    let due = Instant::now() + lead;
    // Kept: some of them need their handle to live.
    let kept: Vec<_> = (0..timeouts).map(|_| producer.schedule(hit.clone(), until(due))).collect();
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
    let start = Instant::now() + lead(&mut producer, timeouts, sizes, delays::among_far);
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

/// Time to schedule so many before the first is due, and to file them: by a trial with a tenth of
/// them in the same order, which also warms the timer up.
fn lead(
    producer: &mut impl Producer,
    timeouts: u64,
    sizes: &Sizes,
    delay: impl Fn(u64) -> Duration,
) -> Duration {
    let trial = timeouts / 10;
    let begin = Instant::now();
    let kept: Vec<_> = (0..trial).map(|i| producer.schedule(Nothing, delay(i))).collect();
    let took = begin.elapsed();
    kept.into_iter().for_each(|handle| producer.cancel(handle));
    process::settle(Duration::from_secs(2));
    sizes.lead.max(took * 10 * RESERVE)
}

/// Not up to the last moment, for timers that never rest.
fn settle_before(due: Instant) {
    process::settle(until(due).saturating_sub(MARGIN));
}

fn until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}
