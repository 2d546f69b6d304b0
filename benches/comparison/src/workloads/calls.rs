//! How long wheelwork's `stop`, `metrics` and `pending_timeouts` take under a flood, and a `stop` with
//! many pending timeouts.

use super::Figure;
use super::probe::quantile;
use crate::plan::Job;
use crate::task::{Task, captures};
use crate::{delays, kernel};
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

/// Far timeouts that `stop` returns.
const PENDING: usize = 1000;
/// The flood runs for this long before the call.
const HEAD_START: Duration = Duration::from_millis(300);

/// The median and the worst of each call.
pub fn calls(job: &Job) -> Vec<Figure> {
    let times = |names: [&'static str; 2], call: fn(&HashedWheelTimer)| {
        let threads = job.count("threads");
        let mut nanos: Vec<_> = (0..job.sizes.calls).map(|_| under_flood(threads, call)).collect();
        nanos.sort_unstable();
        [(names[0], quantile(&nanos, 0.5, 1e6)), (names[1], quantile(&nanos, 1.0, 1e6))]
    };
    [
        times(["stop_ms", "stop_max_ms"], |timer| {
            let returned = timer.stop().map_or(0, |unprocessed| unprocessed.len());
            assert!(returned >= PENDING, "stop returned {returned} of {PENDING} timeouts");
        }),
        times(["metrics_ms", "metrics_max_ms"], |timer| drop(timer.metrics())),
        times(["pending_ms", "pending_max_ms"], |timer| {
            assert!(timer.pending_timeouts() >= PENDING);
        }),
    ]
    .concat()
}

/// The time of a `stop` and of the drop of what it returns, for each far timeout.
pub fn stop(job: &Job) -> Vec<Figure> {
    let builder = HashedWheelTimer::builder().tick_duration(job.tick());
    let timer = builder.build().expect("a thread can be started");
    let far = job.count("far");
    for i in 0..far {
        let task = captures::<2>();
        timer.new_timeout(|| task.run(), delays::remote(i)).expect("the timer runs");
    }
    kernel::settle(Duration::from_secs(1) + Duration::from_micros(far));
    let begin = Instant::now();
    let returned = timer.stop().expect("not on the worker");
    assert_eq!(returned.len() as u64, far);
    drop(returned);
    let took = begin.elapsed();
    vec![("ns_per_op", took.as_nanos() as f64 / far as f64)]
}

/// Times one call on a fresh timer, in nanoseconds. On a shared timer a call that had to wait would
/// give the next one a better start.
fn under_flood(threads: u64, call: fn(&HashedWheelTimer)) -> i64 {
    let timer = HashedWheelTimer::new().expect("a thread can be started");
    for _ in 0..PENDING {
        timer.new_timeout(|| (), delays::HOUR).expect("the timer runs, without a limit");
    }
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| pour(&timer));
        }
        thread::sleep(HEAD_START);
        let begin = Instant::now();
        call(&timer);
        let took = begin.elapsed();
        // Ends the flood.
        let _unprocessed = timer.stop();
        took.as_nanos() as i64
    })
}

/// Schedules and cancels, with 16 bytes captured, until the timer is stopped.
fn pour(timer: &HashedWheelTimer) {
    let words = [1u64, 2];
    for i in 0.. {
        match timer.new_timeout(move || _ = black_box(words), delays::usual(i)) {
            Ok(timeout) => timeout.cancel(),
            Err(_stopped) => break,
        };
    }
}
