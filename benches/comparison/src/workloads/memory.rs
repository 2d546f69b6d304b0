//! Memory by what is resident: of pending timeouts, and after a storm of cancels.

use super::{Error, Figure};
use crate::delays;
use crate::process;
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::task::{Nothing, Task};
use std::time::Duration;

const FAR: Duration = Duration::from_secs(3600);
const STORM_DELAY: Duration = Duration::from_secs(60);
const SETTLE: Duration = Duration::from_secs(2);
const MIB: f64 = 1024.0 * 1024.0;
/// Growth at which a storm is broken off, for the sake of the machine.
const TOO_MUCH: u64 = 4 << 30;

/// Growth for each pending timeout. Handles are dropped where the timeout goes on without.
pub fn pending<R: Rival>(timer: &R, task: impl Task, sizes: &Sizes) -> Result<Vec<Figure>, Error> {
    let mut producer = timer.producer();
    warm_up(&mut producer);
    let before = process::resident_bytes()?;
    let mut kept = Vec::new();
    for _ in 0..sizes.memory {
        let handle = producer.schedule(task.clone(), FAR);
        if !R::DETACHES {
            kept.push(handle);
        }
    }
    process::settle(SETTLE);
    let growth = process::resident_bytes()? as f64 - before as f64;
    drop(kept);
    Ok(vec![("bytes_per_timeout", growth / sizes.memory as f64)])
}

/// Growth after so many that were cancelled at once.
pub fn storm<R: Rival>(timer: &R, cancelled: u64) -> Result<Vec<Figure>, Error> {
    const STEP: u64 = 100_000;
    let mut producer = timer.producer();
    warm_up(&mut producer);
    let before = process::resident_bytes()?;
    let mut done = 0;
    let mut figures = Vec::new();
    while done < cancelled {
        for _ in 0..STEP.min(cancelled - done) {
            producer.schedule_and_cancel(Nothing, STORM_DELAY);
        }
        done += STEP.min(cancelled - done);
        if process::resident_bytes()? > before + TOO_MUCH {
            figures.push(("capped_at", done as f64));
            break;
        }
    }
    process::settle(SETTLE);
    let growth = process::resident_bytes()? as f64 - before as f64;
    figures.push(("rss_mib_after", growth / MIB));
    Ok(figures)
}

/// What a timer allocates once is not what a timeout costs.
fn warm_up(producer: &mut impl Producer) {
    for i in 0..1000 {
        producer.schedule_and_cancel(Nothing, delays::usual(i));
    }
    process::settle(SETTLE);
}
