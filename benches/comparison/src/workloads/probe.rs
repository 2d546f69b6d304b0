//! Counts runs, with the time of the first and the last, or with the lateness of each.
//!
//! All in statics, so that a task captures nothing for it.

use super::Error;
use crate::task::{RunOnWake, Task};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
static EXPECTED: AtomicU64 = AtomicU64::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);
/// In nanoseconds since the start.
static FIRST: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(NOT_YET);
const NOT_YET: u64 = 0;

/// In nanoseconds. Has room for all, so that noting one allocates nothing.
static LATE: Mutex<Vec<i64>> = Mutex::new(Vec::new());

/// Counts its run.
#[derive(Clone)]
pub struct Hit;

impl Task for Hit {
    fn run(self) {
        let before = RUNS.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            FIRST.store(now(), Ordering::Relaxed);
        }
        if before + 1 == EXPECTED.load(Ordering::Relaxed) {
            LAST.store(now(), Ordering::Release);
        }
    }

    /// All share one: they capture nothing that tells them apart.
    fn waker(self) -> Waker {
        static SHARED: LazyLock<Waker> = LazyLock::new(|| Waker::from(Arc::new(RunOnWake(Hit))));
        SHARED.clone()
    }
}

fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// Shared by the tasks of one connection. As a waker it counts a run.
pub struct Connection;

impl Wake for Connection {
    fn wake(self: Arc<Self>) {
        Hit.run();
    }
}

/// Counts its run, and captures an `Arc`. A waker is an `Arc` itself, so it needs no allocation.
impl Task for Arc<Connection> {
    fn run(self) {
        Hit.run();
    }

    fn waker(self) -> Waker {
        Waker::from(self)
    }
}

/// Counts its run, and notes how long after the deadline it ran.
pub fn late(deadline: Instant) -> impl Task {
    move || {
        let late = nanos_after(deadline, Instant::now());
        LATE.lock().unwrap().push(late);
        Hit.run();
    }
}

/// Negative if `now` is before the deadline.
pub fn nanos_after(deadline: Instant, now: Instant) -> i64 {
    let late = now.saturating_duration_since(deadline).as_nanos() as i64;
    late - deadline.saturating_duration_since(now).as_nanos() as i64
}

/// To be called before anything is scheduled.
pub fn expect(runs: u64) {
    LazyLock::force(&START);
    RUNS.store(0, Ordering::Relaxed);
    LAST.store(NOT_YET, Ordering::Relaxed);
    EXPECTED.store(runs, Ordering::Relaxed);
    // Its pages are there before the first note.
    let mut late = LATE.lock().unwrap();
    late.resize(runs as usize, 1);
    late.clear();
}

/// From the first run to the last. Waits for that, not beyond the limit after the last is due.
pub fn wait(due: Instant, limit: Duration) -> Result<Duration, Error> {
    thread::sleep(due.saturating_duration_since(Instant::now()));
    loop {
        match LAST.load(Ordering::Acquire) {
            NOT_YET if due.elapsed() > limit => {
                let all = EXPECTED.load(Ordering::Relaxed);
                let missing = all - RUNS.load(Ordering::Relaxed);
                return Err(Error::NotRun { missing, all, after_seconds: limit.as_secs() });
            }
            NOT_YET => thread::sleep(Duration::from_millis(1)),
            last => return Ok(Duration::from_nanos(last - FIRST.load(Ordering::Relaxed))),
        }
    }
}

/// Waits until `all` have run.
pub fn await_runs(all: u64, limit: Duration) -> Result<(), Error> {
    let begin = Instant::now();
    while RUNS.load(Ordering::Acquire) < all {
        if begin.elapsed() > limit {
            let missing = all - RUNS.load(Ordering::Relaxed);
            return Err(Error::NotRun { missing, all, after_seconds: limit.as_secs() });
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// How late each was, in nanoseconds, sorted. All must have run.
pub fn lateness() -> Vec<i64> {
    let mut late = LATE.lock().unwrap().clone();
    late.sort_unstable();
    late
}

/// How many ran before their deadline.
pub fn early(sorted: &[i64]) -> f64 {
    sorted.partition_point(|late| *late < 0) as f64
}

/// The smallest value that at least the share `quantile` of the sample does not exceed (nearest
/// rank), in units of `unit` nanoseconds.
pub fn quantile(sorted: &[i64], quantile: f64, unit: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).map_or(f64::NAN, |nanos| *nanos as f64 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_and_timed() {
        expect(3);
        let deadline = Instant::now();
        Hit.waker().wake();
        Arc::new(Connection).waker().wake();
        let missing = wait(deadline, Duration::ZERO);
        assert!(matches!(missing, Err(Error::NotRun { missing: 1, all: 3, .. })));
        Hit.run();
        assert!(wait(deadline, Duration::ZERO).is_ok());
        expect(2);
        let minute = Duration::from_secs(60);
        late(deadline - minute).run();
        late(deadline + minute).run();
        let late = lateness();
        assert!(late[0] < -59_000_000_000 && late[1] > 60_000_000_000, "{late:?}");
        assert_eq!([early(&late), quantile(&[-3, 9], 0.51, 1.0)], [1.0, 9.0]);
        assert!(wait(deadline, Duration::ZERO).is_ok());
    }
}
