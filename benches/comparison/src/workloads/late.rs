//! Notes how late a task ran, by `Instant`.

use super::Error;
use crate::statistics::quantile;
use crate::task::Task;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Room for every run, so that noting one allocates nothing.
static NOTES: OnceLock<Box<[AtomicI64]>> = OnceLock::new();
static NOTED: AtomicUsize = AtomicUsize::new(0);

/// Of a run that has claimed its place and has not written yet.
const BLANK: i64 = i64::MIN;

/// Notes how long after the deadline it ran.
#[derive(Clone, Copy)]
pub struct Late {
    pub deadline: Instant,
}

impl Task for Late {
    fn run(self) {
        let late = nanos_after(self.deadline, Instant::now());
        let place = NOTED.fetch_add(1, Ordering::Relaxed);
        let note = NOTES.get().and_then(|notes| notes.get(place));
        note.expect("no more runs than timeouts").store(late, Ordering::Release);
    }
}

/// Negative if `now` is before the deadline.
fn nanos_after(deadline: Instant, now: Instant) -> i64 {
    match now.checked_duration_since(deadline) {
        Some(late) => late.as_nanos() as i64,
        None => -((deadline - now).as_nanos() as i64),
    }
}

/// To be called once, before anything is scheduled.
pub fn expect(runs: usize) {
    let notes = (0..runs).map(|_| AtomicI64::new(BLANK)).collect();
    assert!(NOTES.set(notes).is_ok(), "a process measures once");
}

/// Waits until all have run; not beyond the limit after the last is due.
pub fn wait(due: Instant, limit: Duration) -> Result<(), Error> {
    let all = NOTES.get().map_or(0, |notes| notes.len());
    thread::sleep(due.saturating_duration_since(Instant::now()));
    loop {
        let missing = all - NOTED.load(Ordering::Relaxed);
        if missing == 0 {
            return Ok(());
        }
        if due.elapsed() > limit {
            let after_seconds = limit.as_secs();
            return Err(Error::NotRun { missing: missing as u64, all: all as u64, after_seconds });
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// How late each was, in nanoseconds, sorted. All must have run.
pub fn sorted() -> Vec<i64> {
    let notes = NOTES.get().map_or(&[][..], |notes| notes);
    let mut late: Vec<_> = notes.iter().map(written).collect();
    late.sort_unstable();
    late
}

/// A run claims its place a moment before it writes.
fn written(note: &AtomicI64) -> i64 {
    loop {
        match note.load(Ordering::Acquire) {
            BLANK => thread::yield_now(),
            late => return late,
        }
    }
}

/// In microseconds.
pub fn quantile_us(sorted: &[i64], share: f64) -> f64 {
    quantile(sorted, share).map_or(f64::NAN, |nanos| nanos as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_is_negative() {
        let deadline = Instant::now();
        let step = Duration::from_nanos(1500);
        assert_eq!(nanos_after(deadline, deadline + step), 1500);
        assert_eq!(nanos_after(deadline + step, deadline), -1500);
        assert_eq!(nanos_after(deadline, deadline), 0);
    }

    #[test]
    fn every_run_is_noted() {
        expect(3);
        let deadline = Instant::now();
        for _ in 0..2 {
            Late { deadline }.run();
        }
        let missing = wait(deadline, Duration::ZERO);
        assert!(matches!(missing, Err(Error::NotRun { missing: 1, all: 3, .. })));
        Late { deadline: deadline + Duration::from_secs(60) }.run();
        wait(deadline, Duration::ZERO).unwrap();
        let late = sorted();
        assert!(late[0] < 0 && late[1] >= 0 && late[2] >= late[1]);
    }
}
