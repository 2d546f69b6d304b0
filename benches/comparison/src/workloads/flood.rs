//! A heartbeat, or a single timeout, beside threads that use a timer as fast as they can.

use super::probe::{self, nanos_after, quantile};
use super::worker::{Kind, Worker};
use super::{Figure, Figures, PATIENCE};
use crate::param;
use crate::plan::Job;
use crate::rivals::{Rival, Timer};
use crate::sizes::Sizes;
use crate::task::{Nothing, Task, captures};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The figures of the heartbeat.
const PERIOD: Duration = Duration::from_millis(5);
/// Operations between two looks whether the flood is over.
const BATCH: u64 = 100;
/// The fresh timeout of `backlog`, one tick of those timers that have one.
const TICK: Duration = Duration::from_millis(100);

/// The heart beats on `timer`; the flood goes to the same, or for the control to another.
pub fn flood<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let flooded = if param::is_control(&job.param) { R::start(job.tick()) } else { timer };
    let kind = Kind::named(job.value("flood"));
    let crew = (job.count("threads"), job.sizes.flood_window);
    let length = Duration::from_millis(job.sizes.flood_ms);
    let beat = || listen(&mut timer(), length);
    Ok(beside(flooded, kind, captures::<2>(), crew, beat))
}

/// How late a fresh timeout of one tick is, in ticks, beside cancelled ones.
pub fn backlog<R: Rival>(timer: Timer<R>, sizes: &Sizes) -> Figures {
    probe::expect(1);
    beside(timer, Kind::ScheduleCancel, Nothing, (1, 0), || {
        thread::sleep(Duration::from_millis(sizes.backlog_ms));
        let deadline = Instant::now() + TICK;
        let _kept = timer().schedule(probe::late(deadline), TICK);
        probe::wait(deadline, PATIENCE)
    })?;
    let ticks = probe::quantile(&probe::lateness(), 1.0, TICK.as_nanos() as f64);
    Ok(vec![("ticks_late", ticks)])
}

/// Does something while threads, each with such a window, flood the timer.
fn beside<R: Rival, O>(
    timer: Timer<R>,
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
                let mut worker = Worker::new(timer(), kind, task, number, window);
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

/// Beats from the calling thread, for `length`. A beat that is overdue at the end enters with its
/// lateness by then; one that is not due yet does not count.
fn listen<R: Rival>(timer: &mut R, length: Duration) -> Vec<Figure> {
    let (heart, heard) = mpsc::channel();
    let end = Instant::now() + length;
    let (mut late, mut beats) = (Vec::new(), 0.0);
    while Instant::now() < end {
        let due = Instant::now() + PERIOD;
        let heart = heart.clone();
        // Kept until then: some timeouts need their handle to live.
        let _kept = timer.schedule(move || _ = heart.send(Instant::now()), PERIOD);
        match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(ran) => {
                late.push(nanos_after(due, ran));
                beats += 1.0;
            }
            Err(_) if end > due => late.push(nanos_after(due, end)),
            Err(_) => {}
        }
    }
    late.sort_unstable();
    let quantiles = [("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0)];
    let figures = quantiles.map(|(metric, share)| (metric, quantile(&late, share, 1e6)));
    [&figures[..], &[("beats", beats)]].concat()
}
