//! What an operation costs beside many that are present.

use super::hits::{self, Hit};
use super::{Error, Figure};
use crate::criterion_run;
use crate::delays;
use crate::process;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::task::Nothing;
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};

/// In a batch of schedules or cancels.
const BATCH: u64 = 10_000;
const LINEAR_BATCH: u64 = 200;
/// From the first schedule of those that expire together to their deadline.
const LEAD: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(30);

pub fn growth<R: Rival>(
    timer: &R,
    present: u64,
    sizes: &Sizes,
    folder: &Path,
) -> Result<Vec<Figure>, Error> {
    let mut producer = timer.producer();
    // Never cancelled: that takes long, and the process ends anyway.
    let kept: Vec<_> =
        (0..present).map(|i| producer.schedule(Nothing, delays::far(i, present))).collect();
    process::settle(Duration::from_secs(1) + Duration::from_micros(present));
    let batch = if R::IS_LINEAR { LINEAR_BATCH } else { BATCH };
    let mut bench = Bench { producer: &mut producer, batch, scheduled: 0 };
    let per_operation = |ns: f64| ns / batch as f64;
    let schedule = criterion_run::median("schedule", sizes, folder, &mut |bencher| {
        bencher.iter_custom(|batches| (0..batches).map(|_| bench.round_trip().0).sum());
    })?;
    let cancel = criterion_run::median("cancel", sizes, folder, &mut |bencher| {
        bencher.iter_custom(|batches| (0..batches).map(|_| bench.round_trip().1).sum());
    })?;
    let expire = expire(&mut producer, sizes, folder)?;
    mem::forget(kept);
    Ok(vec![
        ("schedule_ns", per_operation(schedule)),
        ("cancel_ns", per_operation(cancel)),
        ("expire_ns", expire),
    ])
}

struct Bench<'a, P> {
    producer: &'a mut P,
    batch: u64,
    scheduled: u64,
}

impl<P: Producer> Bench<'_, P> {
    /// The time to schedule a batch, and the time to cancel it.
    fn round_trip(&mut self) -> (Duration, Duration) {
        let mut handles = Vec::with_capacity(self.batch as usize);
        let begin = Instant::now();
        for _ in 0..self.batch {
            self.scheduled += 1;
            handles.push(self.producer.schedule(Nothing, delays::among_far(self.scheduled)));
        }
        let scheduled = begin.elapsed();
        let begin = Instant::now();
        handles.drain(..).for_each(|handle| self.producer.cancel(handle));
        (scheduled, begin.elapsed())
    }
}

/// From the first run to the last of those that are due at one instant, for each.
fn expire<P: Producer>(producer: &mut P, sizes: &Sizes, folder: &Path) -> Result<f64, Error> {
    let mut failure = None;
    let median = criterion_run::median("expire", sizes, folder, &mut |bencher| {
        bencher.iter_custom(|batches| {
            let batch = |_| expire_batch(producer, sizes.expire);
            let total: Result<Duration, Error> = (0..batches).map(batch).sum();
            total.unwrap_or_else(|error| {
                failure = Some(error);
                // Criterion wants a time; the error is what is returned.
                Duration::from_secs(1)
            })
        });
    })?;
    failure.map_or(Ok(median / sizes.expire as f64), Err)
}

fn expire_batch<P: Producer>(producer: &mut P, timeouts: u64) -> Result<Duration, Error> {
    hits::expect(timeouts);
    let due = Instant::now() + LEAD;
    let kept: Vec<_> = (0..timeouts)
        .map(|_| producer.schedule(Hit, due.saturating_duration_since(Instant::now())))
        .collect();
    let span = hits::wait(due, PATIENCE)?;
    drop(kept);
    Ok(span)
}
