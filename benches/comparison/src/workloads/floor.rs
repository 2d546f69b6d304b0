//! What no timer can do without: to read a clock, to change a shared word, to queue a record.

use super::{Figure, batches};
use crate::sizes::Sizes;
use crossbeam_queue::SegQueue;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BATCH: u64 = 10_000;

pub fn floor(sizes: &Sizes) -> Vec<Figure> {
    let word = AtomicU64::new(0);
    let each = |batch: &dyn Fn() -> Duration| batches::median(sizes, batch) / BATCH as f64;
    vec![
        ("clock_ns", each(&|| timed(|_| _ = black_box(Instant::now())))),
        ("atomic_ns", each(&|| timed(|_| _ = black_box(&word).fetch_add(1, Ordering::Relaxed)))),
        ("queue_push_ns", each(&push_batch)),
    ]
}

fn timed(operation: impl Fn(u64)) -> Duration {
    let begin = Instant::now();
    (0..BATCH).for_each(operation);
    begin.elapsed()
}

/// Records as large as a deadline and an index. Emptying the queue again is not timed.
fn push_batch() -> Duration {
    let queue = SegQueue::<(u64, u64)>::new();
    timed(|i| black_box(&queue).push((i, i)))
}
