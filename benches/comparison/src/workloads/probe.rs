//! Counts runs, with the time of the first and the last, or with the lateness of each.
//!
//! All in statics, so that a task captures nothing for it.

use super::Error;
use crate::task::{RunOnWake, Task};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
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

/// Room for every lateness, so that noting one allocates nothing.
static NOTES: OnceLock<Box<[AtomicI64]>> = OnceLock::new();

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

/// Counts its run, and captures an `Arc`.
#[derive(Clone)]
pub struct HitWithArc(pub Arc<Connection>);

impl Task for HitWithArc {
    fn run(self) {
        Hit.run();
    }

    /// Without an allocation: a waker is an `Arc` itself.
    fn waker(self) -> Waker {
        Waker::from(self.0)
    }
}

/// Counts its run, and notes how long after the deadline it ran.
#[derive(Clone)]
pub struct Late {
    pub deadline: Instant,
}

impl Task for Late {
    fn run(self) {
        let late = nanos_after(self.deadline, Instant::now());
        // Its number among the runs is its place.
        let place = RUNS.fetch_add(1, Ordering::AcqRel);
        let note = NOTES.get().and_then(|notes| notes.get(place as usize));
        note.expect("no more runs than timeouts").store(late, Ordering::Release);
        if place + 1 == EXPECTED.load(Ordering::Relaxed) {
            LAST.store(now(), Ordering::Release);
        }
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
}

/// To be called once, before anything is scheduled that is [`Late`].
pub fn expect_late(runs: u64) {
    expect(runs);
    NOTES.get_or_init(|| (0..runs).map(|_| AtomicI64::new(BLANK)).collect());
}

/// Of a run that has its place and has not written yet.
const BLANK: i64 = i64::MIN;

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

/// How late each was, in nanoseconds, sorted. All must have run.
pub fn lateness() -> Vec<i64> {
    let written = |note: &AtomicI64| {
        while note.load(Ordering::Acquire) == BLANK {
            thread::yield_now();
        }
        note.load(Ordering::Relaxed)
    };
    let mut late: Vec<_> = NOTES.get().into_iter().flatten().map(written).collect();
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
        expect_late(3);
        let deadline = Instant::now();
        Hit.waker().wake();
        HitWithArc(Arc::new(Connection)).waker().wake();
        let missing = wait(deadline, Duration::ZERO);
        assert!(matches!(missing, Err(Error::NotRun { missing: 1, all: 3, .. })));
        Hit.run();
        assert!(wait(deadline, Duration::ZERO).is_ok());
        expect(3);
        let minute = Duration::from_secs(60);
        for deadline in [deadline, deadline - minute, deadline + minute] {
            Late { deadline }.run();
        }
        let late = lateness();
        assert!(late[0] < -59_000_000_000 && late[1] > 0 && late[2] > 60_000_000_000, "{late:?}");
        assert_eq!(early(&late), 1.0);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        assert_eq!([0.0, 0.51, 1.0].map(|q| quantile(&[-3, 9], q, 1.0)), [-3.0, 9.0, 9.0]);
        assert!(quantile(&[], 0.5, 1.0).is_nan());
    }
}
