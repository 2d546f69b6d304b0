//! A heartbeat, or a single timeout, beside threads that use a timer as fast as they can.

use super::heartbeat;
use super::probe::{self, Late};
use super::{Figure, Figures};
use crate::param;
use crate::rivals::Rival;
use crate::sizes::Sizes;
use crate::task::{Nothing, TWO_WORDS, Task};
use crate::worker::{Kind, Worker};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Operations between two looks whether the flood is over.
const BATCH: u64 = 100;
/// The fresh timeout of `backlog`, one tick of those timers that have one.
const TICK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(30);

/// The heart beats on `timer`; the flood goes to `flooded`, which may be the same.
pub fn flood<R: Rival>(
    timer: &'static R::Timer,
    flooded: &'static R::Timer,
    param: &str,
    sizes: &Sizes,
) -> Figures {
    let kind = Kind::named(param::value(param, "flood")).expect("the catalogue knows its floods");
    let crew = (param::count(param, "threads"), sizes.flood_window);
    let length = Duration::from_millis(sizes.flood_ms);
    let beat = || heartbeat::listen(&mut R::of(timer), length);
    Ok(beside::<R, Vec<Figure>>(flooded, kind, TWO_WORDS, crew, beat))
}

/// How late a fresh timeout of one tick is, in ticks, beside cancelled ones.
pub fn backlog<R: Rival>(timer: &'static R::Timer, sizes: &Sizes) -> Figures {
    probe::expect_late(1);
    beside::<R, _>(timer, Kind::ScheduleCancel, Nothing, (1, 0), || {
        thread::sleep(Duration::from_millis(sizes.backlog_ms));
        let deadline = Instant::now() + TICK;
        let _kept = R::of(timer).schedule(Late { deadline }, TICK);
        probe::wait(deadline, PATIENCE)
    })?;
    let ticks = probe::quantile(&probe::lateness(), 1.0, TICK.as_nanos() as f64);
    Ok(vec![("ticks_late", ticks)])
}

/// Does something while so many threads, each with such a window, flood the timer.
fn beside<R: Rival, O>(
    timer: &'static R::Timer,
    kind: Kind,
    task: impl Task,
    (threads, window): (u64, u64),
    work: impl FnOnce() -> O,
) -> O {
    let ready = Barrier::new(threads as usize + 1);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..threads {
            let (task, ready, over) = (task.clone(), &ready, &over);
            scope.spawn(move || {
                let mut worker = Worker::new(R::of(timer), kind, task, (number * window, window));
                ready.wait();
                while !over.load(Ordering::Relaxed) {
                    worker.batch(BATCH);
                }
            });
        }
        ready.wait();
        let outcome = work();
        over.store(true, Ordering::Relaxed);
        outcome
    })
}
