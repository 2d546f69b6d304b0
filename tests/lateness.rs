//! How late a timeout is. No test asserts it: `.ci/faults` prints it.

use crate::common::{Random, Record, eventually, ms};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

const COUNT: usize = 5_000;

/// Timeouts at random instants, one each millisecond, so the worker sleeps from tick to tick.
#[test]
#[ignore = "takes ten seconds, and prints what it measures"]
fn how_late_timeouts_are() {
    for tick in [ms(1), Duration::from_micros(100)] {
        let timer = HashedWheelTimer::builder().tick_duration(tick).build().unwrap();
        let (late, mut random) = (Record::new(), Random(1));
        let begin = Instant::now() + ms(50);
        for n in 0..COUNT {
            let due = begin + Duration::from_nanos(1_000_000 * n as u64 + random.below(1_000_000));
            let record = late.clone();
            let task = move || record.push(Instant::now().checked_duration_since(due));
            timer.new_timeout_at(task, due).unwrap();
        }
        eventually("all have run", || late.len() == COUNT);
        let mut late: Vec<_> =
            late.take().into_iter().map(|late| late.expect("not early")).collect();
        late.sort();
        let [p50, p99, p999] = [500, 990, 999].map(|part| late[COUNT * part / 1000]);
        println!("tick {tick:?}: p50 {p50:?}, p99 {p99:?}, p99.9 {p999:?}");
    }
}
