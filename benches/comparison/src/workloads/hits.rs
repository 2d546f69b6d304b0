//! Counts runs, and notes when the first and the last of them were.
//!
//! All in statics, so that the task captures nothing.

use super::Error;
use crate::task::{RunOnWake, Task};
use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

static EXPECTED: AtomicU64 = AtomicU64::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);
static SPAN: Mutex<Option<(Instant, Instant)>> = Mutex::new(None);

/// Counts its run.
#[derive(Clone, Copy)]
pub struct Hit;

impl Task for Hit {
    #[inline]
    fn run(self) {
        let before = RUNS.fetch_add(1, Ordering::AcqRel);
        let expected = EXPECTED.load(Ordering::Relaxed);
        if before == 0 || before + 1 == expected {
            note(Instant::now());
        }
    }

    /// All share one: they capture nothing that tells them apart.
    fn waker(self) -> Waker {
        thread_local! {
            static SHARED: OnceCell<Waker> = const { OnceCell::new() };
        }
        SHARED.with(|shared| shared.get_or_init(|| Waker::from(Arc::new(RunOnWake(Hit)))).clone())
    }
}

/// Shared by the tasks of one connection. As a waker it counts a run.
pub struct Connection;

impl Wake for Connection {
    fn wake(self: Arc<Self>) {
        Hit.run();
    }
}

/// Counts its run, and captures an `Arc`.
#[derive(Clone)]
pub struct HitWithArc(pub Arc<Connection>);

impl Task for HitWithArc {
    #[inline]
    fn run(self) {
        Hit.run();
    }

    /// Without an allocation: a waker is an `Arc` itself.
    fn waker(self) -> Waker {
        Waker::from(self.0)
    }
}

fn note(now: Instant) {
    let mut span = SPAN.lock().unwrap_or_else(PoisonError::into_inner);
    let first = span.map_or(now, |(first, _last)| first);
    *span = Some((first, now));
}

/// To be called before anything is scheduled.
pub fn expect(runs: u64) {
    RUNS.store(0, Ordering::Relaxed);
    EXPECTED.store(runs, Ordering::Relaxed);
    *SPAN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

pub fn so_far() -> u64 {
    RUNS.load(Ordering::Acquire)
}

/// From the first run to the last; waits for that until the limit.
pub fn wait(due: Instant, limit: Duration) -> Result<Duration, Error> {
    let all = EXPECTED.load(Ordering::Relaxed);
    thread::sleep(due.saturating_duration_since(Instant::now()));
    while so_far() < all {
        if due.elapsed() > limit {
            return Err(Error::NotRun {
                missing: all - so_far(),
                all,
                after_seconds: limit.as_secs(),
            });
        }
        thread::sleep(Duration::from_millis(1));
    }
    // The last one counts itself before it notes the time.
    loop {
        let span = *SPAN.lock().unwrap_or_else(PoisonError::into_inner);
        match span {
            Some((first, last)) if all == 1 || last > first => return Ok(last - first),
            _ => thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_first_to_the_last_of_those_expected() {
        expect(3);
        let before = Instant::now();
        Hit.run();
        thread::sleep(Duration::from_millis(2));
        HitWithArc(Arc::new(Connection)).waker().wake();
        assert_eq!(so_far(), 2);
        let missing = wait(Instant::now(), Duration::ZERO);
        assert!(matches!(missing, Err(Error::NotRun { missing: 1, all: 3, .. })));
        Hit.run();
        let span = wait(Instant::now(), Duration::from_secs(5)).unwrap();
        assert!(span >= Duration::from_millis(2) && span <= before.elapsed());
    }
}
