//! How late the beats of a heart are: a timeout of 5 ms, and the next when that has run.

use crate::rivals::Producer;
use crate::task::Task;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

pub const PERIOD: Duration = Duration::from_millis(5);

/// The record of a heart.
pub struct Heartbeat {
    /// In nanoseconds, sorted. A beat that is overdue at the end enters with its lateness by then.
    pub late: Vec<i64>,
    pub beats: u64,
}

/// Beats from the calling thread, for `length`.
pub fn listen(producer: &mut impl Producer, length: Duration) -> Heartbeat {
    let heart = Arc::new(Heart { thread: thread::current(), start: Instant::now(), ran: 0.into() });
    let end = heart.start + length;
    let mut heard = Heartbeat { late: Vec::new(), beats: 0 };
    while Instant::now() < end {
        heart.ran.store(NOT_YET, Ordering::Relaxed);
        let due = Instant::now() + PERIOD;
        // Kept until then: some timeouts need their handle to live.
        let _kept = producer.schedule(Beat(heart.clone()), PERIOD);
        let ran = heart.wait(end);
        heard.beats += u64::from(ran.is_some());
        heard.late.extend(lateness(due, ran, end));
    }
    heard.late.sort_unstable();
    heard
}

/// `None` for a beat that is not due yet.
fn lateness(due: Instant, ran: Option<Instant>, end: Instant) -> Option<i64> {
    match ran {
        Some(ran) if ran < due => Some(-((due - ran).as_nanos() as i64)),
        Some(ran) => Some((ran - due).as_nanos() as i64),
        None if end > due => Some((end - due).as_nanos() as i64),
        None => None,
    }
}

/// A beat that has not run.
const NOT_YET: u64 = 0;

struct Heart {
    thread: Thread,
    start: Instant,
    /// When the beat ran, in nanoseconds since the start.
    ran: AtomicU64,
}

impl Heart {
    /// `None` if it has not run by the end.
    fn wait(&self, end: Instant) -> Option<Instant> {
        loop {
            match self.ran.load(Ordering::Acquire) {
                NOT_YET if Instant::now() >= end => return None,
                NOT_YET => thread::park_timeout(end - Instant::now()),
                ran => return Some(self.start + Duration::from_nanos(ran)),
            }
        }
    }
}

#[derive(Clone)]
struct Beat(Arc<Heart>);

impl Task for Beat {
    fn run(self) {
        let ran = self.0.start.elapsed().as_nanos() as u64;
        self.0.ran.store(ran, Ordering::Release);
        self.0.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overdue_beat_counts_and_one_to_come_does_not() {
        let due = Instant::now();
        let step = Duration::from_nanos(1500);
        assert_eq!(lateness(due, Some(due + step), due), Some(1500));
        assert_eq!(lateness(due + step, Some(due), due), Some(-1500));
        assert_eq!(lateness(due, None, due + step), Some(1500));
        assert_eq!(lateness(due + step, None, due), None);
    }

    /// A timer that runs what it is given at once, or never.
    struct Stub {
        runs: bool,
    }

    impl Producer for Stub {
        type Handle = ();

        fn schedule<T: Task>(&mut self, task: T, _delay: Duration) {
            if self.runs {
                task.run();
            }
        }

        fn cancel(&mut self, _handle: ()) {}
    }

    #[test]
    fn beats_that_ran_are_counted() {
        let heard = listen(&mut Stub { runs: true }, Duration::from_millis(1));
        assert!(heard.beats > 0 && heard.late[0] < 0);
        assert_eq!(heard.beats, heard.late.len() as u64);
    }

    #[test]
    fn a_heart_that_stands_still_is_late() {
        let length = PERIOD * 4;
        let heard = listen(&mut Stub { runs: false }, length);
        assert_eq!((heard.beats, heard.late.len()), (0, 1));
        assert!(heard.late[0] > 0 && heard.late[0] <= length.as_nanos() as i64);
    }
}
