//! How long wheelwork's `stop`, `metrics` and `pending_timeouts` take under a flood.

use super::Figure;
use crate::delays;
use crate::sizes::Sizes;
use crate::statistics::quantile;
use crate::task::{Captures, Task};
use std::thread;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

/// Far timeouts that `stop` returns.
const PENDING: usize = 1000;
const FAR: Duration = Duration::from_secs(3600);
/// The flood runs for this long before the call.
const HEAD_START: Duration = Duration::from_millis(300);

/// The median and the worst of each call.
pub fn calls(threads: u64, sizes: &Sizes) -> Vec<Figure> {
    let times = |call: fn(&HashedWheelTimer)| {
        let mut nanos: Vec<_> = (0..sizes.calls).map(|_| under_flood(threads, call)).collect();
        nanos.sort_unstable();
        [0.5, 1.0].map(|share| quantile(&nanos, share).map_or(f64::NAN, |n| n as f64 / 1e6))
    };
    let [stop, stop_max] = times(stop);
    let [metrics, metrics_max] = times(|timer| drop(timer.metrics()));
    let [pending, pending_max] = times(|timer| assert!(timer.pending_timeouts() >= PENDING));
    vec![
        ("stop_ms", stop),
        ("stop_max_ms", stop_max),
        ("metrics_ms", metrics),
        ("metrics_max_ms", metrics_max),
        ("pending_ms", pending),
        ("pending_max_ms", pending_max),
    ]
}

fn stop(timer: &HashedWheelTimer) {
    let returned = timer.stop().map_or(0, |unprocessed| unprocessed.len());
    assert!(returned >= PENDING, "stop returned {returned} of {PENDING} timeouts");
}

/// Times one call on a fresh timer, in nanoseconds. On a shared timer a call that had to wait would
/// give the next one a better start.
fn under_flood(threads: u64, call: fn(&HashedWheelTimer)) -> i64 {
    let timer = HashedWheelTimer::new().expect("a thread can be started");
    for _ in 0..PENDING {
        timer.new_timeout(|| (), FAR).expect("the timer runs, without a limit");
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

/// Schedules and cancels until the timer is stopped.
fn pour(timer: &HashedWheelTimer) {
    let task = Captures([1, 2]);
    for i in 0.. {
        match timer.new_timeout(move || task.run(), delays::usual(i)) {
            Ok(timeout) => timeout.cancel(),
            Err(_stopped) => break,
        };
    }
}
