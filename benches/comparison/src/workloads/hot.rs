//! The hot paths: threads that use a timer as fast as they can, in batches.

use super::batches::Median;
use super::worker::{Kind, Worker};
use super::{Figure, Figures};
use crate::plan::Job;
use crate::rivals::{Rival, Timer, Trait};
use crate::sizes::Sizes;
use crate::task::{self, Nothing, Task};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub fn path<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let kind = Kind::named(&job.workload.name);
    let all = job.sizes.schedule.min(job.rival.cap.unwrap_or(u64::MAX));
    let operations = match kind {
        Kind::Schedule => all / job.count("producers"),
        _ if job.rival.has(Trait::IsLinear) => job.sizes.batch.min(1_000),
        _ => job.sizes.batch,
    };
    let crew = (job.count("producers"), operations);
    let nanos = match job.value("captures") {
        "0" => measure(timer, kind, Nothing, crew, job.sizes),
        _ => measure(timer, kind, task::captures::<2>(), crew, job.sizes),
    };
    let mut figures: Vec<Figure> = vec![("ns_per_op", nanos)];
    if kind == Kind::Schedule && all < job.sizes.schedule {
        figures.push(("capped_at", all as f64));
    }
    Ok(figures)
}

/// Many more threads than cores. Producers beyond the number of cores take turns, so their waiting
/// is not counted: what is left is the core time of an operation.
pub fn crowd<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let producers = job.count("producers");
    let crew = (producers, job.sizes.crowd / producers);
    let task = task::captures::<2>();
    let waited = measure(timer, Kind::ScheduleCancel, task, crew, job.sizes);
    let at_once = producers.min(thread::available_parallelism()?.get() as u64);
    Ok(vec![("ns_per_op", waited * at_once as f64 / producers as f64)])
}

/// Nanoseconds for one operation of one producer, while `producers` of them are at work, each with
/// `operations` in a batch: from the first start to the last end.
fn measure<R: Rival>(
    timer: Timer<R>,
    kind: Kind,
    task: impl Task,
    (producers, operations): (u64, u64),
    sizes: &Sizes,
) -> f64 {
    let turn = Barrier::new(producers as usize);
    let batches = Mutex::new((Vec::new(), Median::new(sizes)));
    let enough = AtomicBool::new(false);
    let produce = |number| {
        let mut worker = Worker::new(timer(), kind, task.clone(), number, sizes.window);
        while !enough.load(Ordering::Relaxed) {
            turn.wait();
            let begin = Instant::now();
            worker.batch(operations);
            let end = Instant::now();
            worker.tidy();
            batches.lock().unwrap().0.push((begin, end));
            if turn.wait().is_leader() {
                let (spans, median) = &mut *batches.lock().unwrap();
                enough.store(median.take(whole(spans)), Ordering::Relaxed);
                spans.clear();
            }
            turn.wait();
        }
    };
    thread::scope(|scope| {
        for number in 0..producers {
            let produce = &produce;
            scope.spawn(move || produce(number));
        }
    });
    batches.into_inner().unwrap().1.of() / operations as f64
}

fn whole(spans: &[(Instant, Instant)]) -> Duration {
    let begin = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    end.zip(begin).map_or(Duration::ZERO, |(end, begin)| end - begin)
}
