//! What no timer can do without: to read a clock, to change a shared word, to queue a record.

use super::{Error, Figure};
use crate::criterion_run;
use crate::sizes::Sizes;
use criterion::Bencher;
use crossbeam_queue::SegQueue;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BATCH: u64 = 10_000;

/// As large as a deadline and an index.
type Record = (u64, u64);

pub fn floor(sizes: &Sizes, folder: &Path) -> Result<Vec<Figure>, Error> {
    let per_operation = |name, routine: &dyn Fn()| {
        let mut batches = |bencher: &mut Bencher<'_>| bencher.iter_custom(|n| timed(n, routine));
        criterion_run::median(name, sizes, folder, &mut batches).map(|batch| batch / BATCH as f64)
    };
    let word = AtomicU64::new(0);
    let clock = per_operation("clock", &|| {
        for _ in 0..BATCH {
            black_box(Instant::now());
        }
    })?;
    let atomic = per_operation("atomic", &|| {
        for _ in 0..BATCH {
            black_box(&word).fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let push = criterion_run::median("queue_push", sizes, folder, &mut |bencher| {
        bencher.iter_custom(|batches| (0..batches).map(|_| push_batch()).sum());
    })?;
    Ok(vec![("clock_ns", clock), ("atomic_ns", atomic), ("queue_push_ns", push / BATCH as f64)])
}

fn timed(batches: u64, batch: &dyn Fn()) -> Duration {
    let begin = Instant::now();
    (0..batches).for_each(|_| batch());
    begin.elapsed()
}

/// Emptying the queue again is not timed.
fn push_batch() -> Duration {
    let queue = SegQueue::<Record>::new();
    let begin = Instant::now();
    for i in 0..BATCH {
        black_box(&queue).push((i, i));
    }
    begin.elapsed()
}
