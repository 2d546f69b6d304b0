//! How late timeouts run at 10,000 a second, with and without other work on the machine.

use super::{Figures, PATIENCE, probe};
use crate::delays;
use crate::plan::Job;
use crate::rivals::{Rival, Timer};
use std::hint;
use std::thread;
use std::time::{Duration, Instant};

const PER_MILLI: u64 = 10;
/// Between two looks at the clock by the producer.
const PACE: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(500);

pub fn lateness<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let timeouts = job.sizes.lateness_ms * PER_MILLI;
    probe::expect(timeouts);
    if job.value("load") == "busy" {
        // Keeps a core busy for as long as the process lives.
        thread::spawn(|| {
            loop {
                hint::spin_loop()
            }
        });
    }
    // Kept: some timeouts need their handle to live.
    let _kept = schedule_evenly(&mut timer(), timeouts);
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
        let task = probe::late(Instant::now() + delay);
        kept.push(timer.schedule(task, delay));
    }
    kept
}
