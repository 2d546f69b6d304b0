//! Records which jobs have run, and how late.

use crate::Failed;
use hdrhistogram::Histogram;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shared by all handlers of a measurement.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Mutex<Late>>);

#[derive(Debug)]
struct Late {
    /// In microseconds.
    by: Histogram<u64>,
    early: u64,
}

impl Recorder {
    pub fn new() -> Result<Self, Failed> {
        let by = Histogram::new_with_bounds(1, 3_600_000_000, 3)
            .map_err(|error| format!("{error:?}"))?;
        Ok(Self(Arc::new(Mutex::new(Late { by, early: 0 }))))
    }

    /// A job that was due at `due` runs now.
    pub fn ran(&self, due: u64) {
        let now = micros(SystemTime::now());
        let mut late = self.lock();
        late.early += u64::from(now < due);
        late.by.saturating_record(now.saturating_sub(due));
    }

    pub fn count(&self) -> u64 {
        self.lock().by.len()
    }

    pub fn early(&self) -> u64 {
        self.lock().early
    }

    pub fn late_by(&self) -> Histogram<u64> {
        self.lock().by.clone()
    }

    /// Waits until `jobs` jobs have run, at most for `limit`. Returns how many are missing.
    pub async fn wait_for(&self, jobs: u64, limit: Duration) -> u64 {
        let begun = Instant::now();
        while self.count() < jobs && begun.elapsed() < limit {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        jobs.saturating_sub(self.count())
    }

    fn lock(&self) -> MutexGuard<'_, Late> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Microseconds since 1970.
pub fn micros(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}
