//! What an operation costs beside many that are present.

use super::probe::{self, Hit};
use super::{Error, Figures, PATIENCE, batches};
use crate::delays;
use crate::kernel;
use crate::plan::Job;
use crate::rivals::{Rival, Timer, Trait};
use crate::task::Nothing;
use std::mem;
use std::time::{Duration, Instant};

/// In a batch of schedules or cancels.
const BATCH: u64 = 10_000;
const LINEAR_BATCH: u64 = 200;
/// Each takes a tick at least, so there are few of them.
const BURSTS: usize = 9;
/// From the first schedule of those that expire together to their deadline.
const LEAD: Duration = Duration::from_millis(20);

pub fn growth<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let mut timer = timer();
    let present = job.count("present");
    let far = |i| timer.schedule(Nothing, delays::far(i, present));
    let kept: Vec<_> = (0..present).map(far).collect();
    kernel::settle(Duration::from_secs(1) + Duration::from_micros(present));
    let batch = if job.rival.has(Trait::IsLinear) { LINEAR_BATCH } else { BATCH };
    let [schedule, cancel] = [0, 1].map(|part| {
        batches::median(job.sizes, || round_trip(&mut timer, batch)[part]) / batch as f64
    });
    let bursts = (0..BURSTS).map(|_| expire(&mut timer, job.sizes.expire));
    let mut bursts = bursts.collect::<Result<Vec<_>, _>>()?;
    bursts.sort_unstable();
    let expire = bursts[BURSTS / 2].as_nanos() as f64 / job.sizes.expire as f64;
    // Never cancelled: that takes long, and the process ends anyway.
    mem::forget(kept);
    Ok(vec![("schedule_ns", schedule), ("cancel_ns", cancel), ("expire_ns", expire)])
}

/// The time to schedule a batch, and the time to cancel it.
fn round_trip<R: Rival>(timer: &mut R, batch: u64) -> [Duration; 2] {
    let mut handles = Vec::with_capacity(batch as usize);
    let begin = Instant::now();
    handles.extend((0..batch).map(|i| timer.schedule(Nothing, delays::among_far(i))));
    let scheduled = begin.elapsed();
    let begin = Instant::now();
    handles.into_iter().for_each(|handle| timer.cancel(handle));
    [scheduled, begin.elapsed()]
}

/// From the first run to the last of those that are due at one instant.
fn expire<R: Rival>(timer: &mut R, timeouts: u64) -> Result<Duration, Error> {
    probe::expect(timeouts);
    let due = Instant::now() + LEAD;
    let delay = || due.saturating_duration_since(Instant::now());
    let _kept: Vec<_> = (0..timeouts).map(|_| timer.schedule(Hit, delay())).collect();
    probe::wait(due, PATIENCE)
}
