//! How long wheelwork's `stop`, `metrics` and `pending_timeouts` take under a flood.

use super::Figure;
use super::probe::quantile;
use crate::delays;
use crate::sizes::Sizes;
use crate::task::{TWO_WORDS, Task};
use std::thread;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

/// Far timeouts that `stop` returns.
const PENDING: usize = 1000;
/// The flood runs for this long before the call.
const HEAD_START: Duration = Duration::from_millis(300);

/// The median and the worst of each call.
pub fn calls(threads: u64, sizes: &Sizes) -> Vec<Figure> {
    let times = |call: fn(&HashedWheelTimer), names: [&'static str; 2]| {
        let mut nanos: Vec<_> = (0..sizes.calls).map(|_| under_flood(threads, call)).collect();
        nanos.sort_unstable();
        [(names[0], quantile(&nanos, 0.5, 1e6)), (names[1], quantile(&nanos, 1.0, 1e6))]
    };
    let pending = |timer: &HashedWheelTimer| assert!(timer.pending_timeouts() >= PENDING);
    [
        times(stop, ["stop_ms", "stop_max_ms"]),
        times(|timer| drop(timer.metrics()), ["metrics_ms", "metrics_max_ms"]),
        times(pending, ["pending_ms", "pending_max_ms"]),
    ]
    .concat()
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

/// Schedules and cancels until the timer is stopped.
fn pour(timer: &HashedWheelTimer) {
    let task = TWO_WORDS;
    for i in 0.. {
        match timer.new_timeout(move || task.run(), delays::usual(i)) {
            Ok(timeout) => timeout.cancel(),
            Err(_stopped) => break,
        };
    }
}
