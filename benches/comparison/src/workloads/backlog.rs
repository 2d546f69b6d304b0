//! Whether one producer's flood of cancelled timeouts holds up another's.

use super::late::{self, Late};
use super::{Error, Figure};
use crate::delays;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::task::Nothing;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
/// Operations between two looks at the flag that ends the flood.
const BATCH: u64 = 1000;

/// How late a fresh timeout of one tick is, in ticks.
pub fn backlog<R: Rival>(timer: &R, tick: Duration, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    late::expect(1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| flood(&mut timer.producer(), &done));
        thread::sleep(sizes.backlog);
        let deadline = Instant::now() + tick;
        let kept = timer.producer().schedule(Late { deadline }, tick);
        let ran = late::wait(deadline, PATIENCE);
        done.store(true, Ordering::Relaxed);
        drop(kept);
        ran
    })?;
    let ticks = late::quantile_us(&late::sorted(), 1.0) / tick.as_micros() as f64;
    Ok(vec![("ticks_late", ticks)])
}

fn flood(producer: &mut impl Producer, done: &AtomicBool) {
    let mut i = 0;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..BATCH {
            i += 1;
            producer.schedule_and_cancel(Nothing, delays::usual(i));
        }
    }
}
