//! The median cost of a batch.

use crate::sizes::Sizes;
use std::time::Duration;

/// Samples that warm up and are dropped, and those that count.
const WARM_UPS: usize = 2;
const SAMPLES: usize = 10;

/// Takes the times of batches. A sample is the mean of enough of them to include what
/// happens only now and then, like a tick.
pub struct Median {
    sample: Duration,
    span: Duration,
    batches: u32,
    nanos: Vec<u128>,
}

impl Median {
    pub fn new(sizes: &Sizes) -> Self {
        let sample = Duration::from_millis(sizes.batches_ms) / SAMPLES as u32;
        Self { sample, span: Duration::ZERO, batches: 0, nanos: Vec::new() }
    }

    /// Takes one time; whether that is enough.
    pub fn take(&mut self, batch: Duration) -> bool {
        self.span += batch;
        self.batches += 1;
        if self.span >= self.sample {
            self.nanos.push((self.span / self.batches).as_nanos());
            (self.span, self.batches) = (Duration::ZERO, 0);
        }
        self.nanos.len() == WARM_UPS + SAMPLES
    }

    /// In nanoseconds; once there is enough.
    pub fn of(mut self) -> f64 {
        let nanos = &mut self.nanos[WARM_UPS..];
        nanos.sort_unstable();
        (nanos[(SAMPLES - 1) / 2] + nanos[SAMPLES / 2]) as f64 / 2.0
    }
}

/// The median of the times that `batch` returns, in nanoseconds.
pub fn median(sizes: &Sizes, mut batch: impl FnMut() -> Duration) -> f64 {
    let mut median = Median::new(sizes);
    while !median.take(batch()) {}
    median.of()
}
