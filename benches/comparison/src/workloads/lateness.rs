//! How late timeouts run at 10,000 a second, with and without other work on the machine.

use super::late::{self, Late};
use super::{Error, Figure};
use crate::delays;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// Between two timeouts.
const INTERVAL: Duration = Duration::from_micros(100);
/// Between two looks at the clock by the producer.
const PACE: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(10);

pub fn lateness<R: Rival>(timer: &R, busy: bool, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    let timeouts = (sizes.lateness.as_nanos() / INTERVAL.as_nanos()) as u64;
    late::expect(timeouts as usize);
    if busy {
        thread::spawn(keep_a_core_busy);
    }
    let kept = schedule_evenly(&mut timer.producer(), timeouts);
    late::wait(Instant::now() + LONGEST, PATIENCE)?;
    drop(kept);
    let late = late::sorted();
    let early = late.partition_point(|late| *late < 0);
    Ok(vec![
        ("p50_us", late::quantile_us(&late, 0.5)),
        ("p99_us", late::quantile_us(&late, 0.99)),
        ("p999_us", late::quantile_us(&late, 0.999)),
        ("max_us", late::quantile_us(&late, 1.0)),
        ("early", early as f64),
    ])
}

/// The handles, which some timeouts need to live.
fn schedule_evenly<P: Producer>(producer: &mut P, timeouts: u64) -> Vec<P::Handle> {
    let mut kept = Vec::with_capacity(timeouts as usize);
    let start = Instant::now();
    for i in 0..timeouts {
        while start.elapsed() < INTERVAL * i as u32 {
            thread::sleep(PACE);
        }
        let delay = delays::short(i);
        // The timer reads its clock later, so it owes at least this deadline.
        let task = Late { deadline: Instant::now() + delay };
        kept.push(producer.schedule(task, delay));
    }
    kept
}

/// For as long as the process lives.
fn keep_a_core_busy() {
    loop {
        hint::spin_loop();
    }
}
