//! How late a heartbeat is beside threads that use the timer as fast as they can.

use super::heartbeat;
use super::micro::{Reschedule, Rolling, ScheduleCancel};
use super::{Error, Figure};
use crate::crew::Routine;
use crate::floods::{Flood, Kind};
use crate::rivals::{Producer, Rival};
use crate::sizes::Sizes;
use crate::statistics::quantile;
use crate::task::{Captures, Task};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// Operations between two looks whether the flood is over.
const BATCH: u64 = 100;

/// The heart beats on `timer`; the flood goes to `flooded`, which may be the same.
pub fn flood<R: Rival>(
    timer: &R,
    flooded: &R,
    flood: Flood,
    sizes: &Sizes,
) -> Result<Vec<Figure>, Error> {
    let (task, window) = (Captures([1, 2]), sizes.flood_window);
    let beside = Beside { timer, flooded, threads: flood.threads, length: sizes.flood };
    Ok(match flood.kind {
        Kind::ScheduleCancel => beside.figures(&ScheduleCancel { task }),
        Kind::Rolling => beside.figures(&Rolling { task, window }),
        Kind::Reschedule => beside.figures(&Reschedule { task, window }),
        Kind::CancelEnded => beside.figures(&CancelEnded),
    })
}

struct Beside<'a, R> {
    timer: &'a R,
    flooded: &'a R,
    threads: u64,
    length: Duration,
}

impl<R: Rival> Beside<'_, R> {
    fn figures(&self, routine: &impl Routine) -> Vec<Figure> {
        let ready = Barrier::new(self.threads as usize + 1);
        let over = AtomicBool::new(false);
        let heard = thread::scope(|scope| {
            for number in 0..self.threads {
                let (ready, over) = (&ready, &over);
                scope.spawn(move || self.pour(routine, number, ready, over));
            }
            ready.wait();
            let heard = heartbeat::listen(&mut self.timer.producer(), self.length);
            over.store(true, Ordering::Relaxed);
            heard
        });
        let ms = |share| quantile(&heard.late, share).map_or(f64::NAN, |nanos| nanos as f64 / 1e6);
        vec![
            ("p50_ms", ms(0.5)),
            ("p99_ms", ms(0.99)),
            ("max_ms", ms(1.0)),
            ("beats", heard.beats as f64),
        ]
    }

    fn pour(&self, routine: &impl Routine, number: u64, ready: &Barrier, over: &AtomicBool) {
        let mut producer = self.flooded.producer();
        let mut state = routine.prepare(number, &mut producer);
        ready.wait();
        while !over.load(Ordering::Relaxed) {
            routine.batch(&mut producer, &mut state, BATCH);
        }
    }
}

/// Cancels timeouts that have run, again and again, like a server whose answers come too late.
struct CancelEnded;

impl CancelEnded {
    const TIMEOUTS: u64 = BATCH;
    const DELAY: Duration = Duration::from_millis(2);
}

impl Routine for CancelEnded {
    type State<H: 'static> = Vec<H>;

    /// Returns when all have run.
    fn prepare<P: Producer>(&self, _producer: u64, timer: &mut P) -> Vec<P::Handle> {
        let runs = Arc::new(AtomicU64::new(0));
        let schedule = |_| timer.schedule(Ended(runs.clone()), Self::DELAY);
        let ended = (0..Self::TIMEOUTS).map(schedule).collect();
        while runs.load(Ordering::Acquire) < Self::TIMEOUTS {
            thread::sleep(Duration::from_millis(1));
        }
        ended
    }

    fn batch<P: Producer>(&self, timer: &mut P, ended: &mut Vec<P::Handle>, operations: u64) {
        ended
            .iter()
            .cycle()
            .take(operations as usize)
            .for_each(|handle| timer.cancel_ended(handle));
    }
}

/// Counts its run.
#[derive(Clone)]
struct Ended(Arc<AtomicU64>);

impl Task for Ended {
    fn run(self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
