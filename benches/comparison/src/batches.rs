//! The median cost of a batch, by one thread or by several that begin together.

use crate::rivals::Rival;
use crate::sizes::Sizes;
use crate::task::Task;
use crate::worker::{Kind, Worker};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Samples that warm up and are dropped, and those that count.
const WARM_UPS: usize = 2;
const SAMPLES: usize = 10;

/// Takes the times of batches. A sample is the mean of so many that what happens only now and then,
/// like a tick, is in it.
struct Median {
    sample: Duration,
    span: Duration,
    batches: u32,
    nanos: Vec<u128>,
}

impl Median {
    fn new(sizes: &Sizes) -> Self {
        let sample = Duration::from_millis(sizes.batches_ms) / SAMPLES as u32;
        Self { sample, span: Duration::ZERO, batches: 0, nanos: Vec::new() }
    }

    /// Takes one time; whether that is enough.
    fn take(&mut self, batch: Duration) -> bool {
        self.span += batch;
        self.batches += 1;
        if self.span >= self.sample {
            self.nanos.push((self.span / self.batches).as_nanos());
            (self.span, self.batches) = (Duration::ZERO, 0);
        }
        self.nanos.len() == WARM_UPS + SAMPLES
    }

    /// In nanoseconds; once there is enough.
    fn of(mut self) -> f64 {
        let nanos = &mut self.nanos[WARM_UPS..];
        nanos.sort_unstable();
        (nanos[(SAMPLES - 1) / 2] + nanos[SAMPLES / 2]) as f64 / 2.0
    }
}

/// The median of the times that `batch` returns, in nanoseconds.
pub fn median<E>(sizes: &Sizes, mut batch: impl FnMut() -> Result<Duration, E>) -> Result<f64, E> {
    let mut median = Median::new(sizes);
    while !median.take(batch()?) {}
    Ok(median.of())
}

/// Nanoseconds for one operation of one producer, while `producers` of them are at work, each with
/// `operations` in a batch: from the first start to the last end.
pub fn measure<R: Rival>(
    timer: &'static R::Timer,
    kind: Kind,
    task: impl Task,
    (producers, operations): (u64, u64),
    sizes: &Sizes,
) -> f64 {
    let barrier = Barrier::new(producers as usize);
    let spans = Mutex::new(Vec::new());
    let median = Mutex::new(Median::new(sizes));
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..producers {
            let (task, barrier, spans, median, enough) =
                (task.clone(), &barrier, &spans, &median, &enough);
            scope.spawn(move || {
                let mut worker =
                    Worker::new(R::of(timer), kind, task, (number * sizes.window, sizes.window));
                while !enough.load(Ordering::Relaxed) {
                    barrier.wait();
                    let begin = Instant::now();
                    worker.batch(operations);
                    let end = Instant::now();
                    worker.tidy();
                    lock(spans).push((begin, end));
                    if barrier.wait().is_leader() {
                        let mut spans = lock(spans);
                        enough.store(lock(median).take(whole(&spans)), Ordering::Relaxed);
                        spans.clear();
                    }
                    barrier.wait();
                }
            });
        }
    });
    median.into_inner().unwrap_or_else(PoisonError::into_inner).of() / operations as f64
}

fn whole(spans: &[(Instant, Instant)]) -> Duration {
    let begin = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    end.zip(begin).map_or(Duration::ZERO, |(end, begin)| end - begin)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
