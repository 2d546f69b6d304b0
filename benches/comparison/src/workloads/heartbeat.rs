//! How late the beats of a heart are: a timeout of 5 ms, and the next when that has run.

use super::Figure;
use super::probe::{nanos_after, quantile};
use crate::rivals::Rival;
use crate::task::Task;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(5);

/// Beats from the calling thread, for `length`. A beat that is overdue at the end enters with its
/// lateness by then; one that is not due yet does not count.
pub fn listen<R: Rival>(timer: &mut R, length: Duration) -> Vec<Figure> {
    let heart = Arc::new(Heart { thread: thread::current(), start: Instant::now(), ran: 0.into() });
    let end = heart.start + length;
    let (mut late, mut beats) = (Vec::new(), 0.0);
    while Instant::now() < end {
        heart.ran.store(NOT_YET, Ordering::Relaxed);
        let due = Instant::now() + PERIOD;
        // Kept until then: some timeouts need their handle to live.
        let _kept = timer.schedule(Beat(heart.clone()), PERIOD);
        match heart.wait(end) {
            Some(ran) => {
                late.push(nanos_after(due, ran));
                beats += 1.0;
            }
            None if end > due => late.push(nanos_after(due, end)),
            None => {}
        }
    }
    late.sort_unstable();
    let millis = |share| quantile(&late, share, 1e6);
    vec![
        ("p50_ms", millis(0.5)),
        ("p99_ms", millis(0.99)),
        ("max_ms", millis(1.0)),
        ("beats", beats),
    ]
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
