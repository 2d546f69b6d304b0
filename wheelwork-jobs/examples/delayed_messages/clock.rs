//! The store's clock, as this process sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wheelwork_jobs::{Store, StoreError, Timestamp};

/// How often the clock is read: the reading that took the shortest time counts.
const READINGS: usize = 5;

/// Two clocks drift apart by less than a millisecond in this time.
const LONG: Duration = Duration::from_secs(10);

/// The store's clock showed `shown` at `read`, or up to `slack` microseconds before or after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    shown: u64,
    read: Instant,
    slack: u64,
}

impl Clock {
    pub(crate) async fn measure(store: &impl Store) -> Result<Self, StoreError> {
        let mut best = store.clock().await?;
        for _ in 1..READINGS {
            let next = store.clock().await?;
            if next.answered - next.asked < best.answered - best.asked {
                best = next;
            }
        }
        let half = (best.answered - best.asked) / 2;
        let slack = half.as_micros() as u64 + 1;
        Ok(Self { shown: best.shown.as_micros(), read: best.asked + half, slack })
    }

    /// What the clock shows now, in microseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.shown + self.read.elapsed().as_micros() as u64
    }

    /// By how many microseconds [`now`](Self::now) can be wrong.
    pub(crate) fn slack(&self) -> u64 {
        self.slack
    }
}

/// A clock that is measured again from time to time, because no two clocks run at the same rate.
pub(crate) struct Shared<S> {
    store: Arc<S>,
    clock: Arc<Mutex<Clock>>,
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), clock: self.clock.clone() }
    }
}

impl<S: Store> Shared<S> {
    pub(crate) async fn measure(store: S) -> Result<Self, StoreError> {
        let clock = Clock::measure(&store).await?;
        Ok(Self { store: Arc::new(store), clock: Arc::new(Mutex::new(clock)) })
    }

    /// Measures again if the last time is long ago. A store that is away for a moment is no harm.
    pub(crate) async fn keep_up(&self) {
        if self.get().read.elapsed() < LONG {
            return;
        }
        if let Ok(clock) = Clock::measure(&*self.store).await {
            *self.lock() = clock;
        }
    }

    pub(crate) fn get(&self) -> Clock {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Microseconds since 1970.
pub(crate) fn micros(time: SystemTime) -> u64 {
    Timestamp::from(time).as_micros()
}
