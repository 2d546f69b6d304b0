//! How late timeouts run at 10,000 a second, with and without other work on the machine.

use super::probe::{self, Late};
use super::{Figures, PATIENCE};
use crate::delays;
use crate::rivals::Rival;
use crate::sizes::Sizes;
use std::hint;
use std::thread;
use std::time::{Duration, Instant};

const PER_MILLI: u64 = 10;
/// Between two looks at the clock by the producer.
const PACE: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(500);

pub fn lateness<R: Rival>(timer: &'static R::Timer, busy: bool, sizes: &Sizes) -> Figures {
    let timeouts = sizes.lateness_ms * PER_MILLI;
    probe::expect_late(timeouts);
    if busy {
        thread::spawn(keep_a_core_busy);
    }
    // Kept: some timeouts need their handle to live.
    let _kept = schedule_evenly(&mut R::of(timer), timeouts);
    probe::wait(Instant::now() + LONGEST, PATIENCE)?;
    let late = probe::lateness();
    let micros = |quantile| probe::quantile(&late, quantile, 1e3);
    Ok(vec![
        ("p50_us", micros(0.5)),
        ("p99_us", micros(0.99)),
        ("p999_us", micros(0.999)),
        ("max_us", micros(1.0)),
        ("early", probe::early(&late)),
    ])
}

fn schedule_evenly<R: Rival>(timer: &mut R, timeouts: u64) -> Vec<R::Handle> {
    let mut kept = Vec::with_capacity(timeouts as usize);
    let start = Instant::now();
    for i in 0..timeouts {
        while start.elapsed() < Duration::from_millis(i) / PER_MILLI as u32 {
            thread::sleep(PACE);
        }
        let delay = delays::short(i);
        // The timer reads its clock later, so it owes at least this deadline.
        let task = Late { deadline: Instant::now() + delay };
        kept.push(timer.schedule(task, delay));
    }
    kept
}

/// For as long as the process lives.
fn keep_a_core_busy() {
    loop {
        hint::spin_loop();
    }
}
