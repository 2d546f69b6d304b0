//! What no timer can do without: to read a clock, to change a shared word, to queue a record.

use super::{Error, Figures};
use crate::batches;
use crate::sizes::Sizes;
use crossbeam_queue::SegQueue;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BATCH: u64 = 10_000;

/// As large as a deadline and an index.
type Record = (u64, u64);

pub fn floor(sizes: &Sizes) -> Figures {
    let word = AtomicU64::new(0);
    let clock = |_| _ = black_box(Instant::now());
    let atomic = |_| _ = black_box(&word).fetch_add(1, Ordering::Relaxed);
    let each = |batch: &dyn Fn() -> Duration| {
        Ok::<_, Error>(batches::median(sizes, || Ok::<_, Error>(batch()))? / BATCH as f64)
    };
    Ok(vec![
        ("clock_ns", each(&|| timed(clock))?),
        ("atomic_ns", each(&|| timed(atomic))?),
        ("queue_push_ns", each(&push_batch)?),
    ])
}

fn timed(operation: impl Fn(u64)) -> Duration {
    let begin = Instant::now();
    (0..BATCH).for_each(operation);
    begin.elapsed()
}

/// Emptying the queue again is not timed.
fn push_batch() -> Duration {
    let queue = SegQueue::<Record>::new();
    timed(|i| black_box(&queue).push((i, i)))
}
