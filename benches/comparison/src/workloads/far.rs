//! A great many far timeouts: how late a heartbeat is beside them, and what keeping one costs.

use super::probe::{self, quantile};
use super::{Error, Figures, PATIENCE};
use crate::plan::Job;
use crate::rivals::{Rival, Timer, Trait};
use crate::task::captures;
use crate::{delays, kernel, param};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BEAT: Duration = Duration::from_millis(5);
/// From one beat to the next.
const PACE: Duration = Duration::from_millis(2);
/// For what measures CPU time.
const SLOW_PACE: Duration = Duration::from_millis(20);
/// Operations between two looks at the clock.
const STEP: u64 = 64;
/// More than there are in any run.
const MOST_BEATS: u64 = 1_000_000;

/// The heart beats on `timer`; the far timeouts go to the same, or for the control to another. Fresh
/// pages stall the whole machine, and only the control shows by how much.
pub fn beside<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    probe::expect(MOST_BEATS);
    let flooded = if param::is_control(&job.param) { R::start(job.tick()) } else { timer };
    let far = job.count("far");
    let took = match job.value("beat") {
        "other_thread" => by_another_thread(timer, flooded, job),
        "cancelled" => {
            let handles = schedule(&mut flooded(), far, true, |_| ());
            file_all(flooded, job)?;
            probe::expect(MOST_BEATS);
            let (mut flooded, mut heart) = (flooded(), Heart::new(timer, PACE));
            let begin = Instant::now();
            for (i, handle) in (0..).zip(handles) {
                flooded.cancel(handle);
                heart.beat_at_step(i);
            }
            let took = begin.elapsed();
            heart.go_on(after(job)).map(|()| took)
        }
        _ => {
            let mut heart = Heart::new(timer, PACE);
            let begin = Instant::now();
            let beat = |i| heart.beat_at_step(i);
            let kept = schedule(&mut flooded(), far, needs_handle(job), beat);
            let took = begin.elapsed();
            let gone_on = heart.go_on(after(job));
            mem::forget(kept);
            gone_on.map(|()| took)
        }
    }?;
    let late = probe::lateness();
    Ok(vec![
        ("p99_ms", quantile(&late, 0.99, 1e6)),
        ("max_ms", quantile(&late, 1.0, 1e6)),
        ("beats", late.len() as f64),
        ("ns_per_op", took.as_nanos() as f64 / far as f64),
    ])
}

/// The time that one thread took to schedule all, while the heart beats on another.
fn by_another_thread<R: Rival>(
    timer: Timer<R>,
    flooded: Timer<R>,
    job: &Job,
) -> Result<Duration, Error> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let heart = scope.spawn(|| {
            let mut heart = Heart::new(timer, PACE);
            while !over.load(Ordering::Relaxed) {
                heart.beat_and_rest();
            }
            heart.go_on(after(job))
        });
        let begin = Instant::now();
        let kept = schedule(&mut flooded(), job.count("far"), needs_handle(job), |_| ());
        let took = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        heart.join().expect("it does not panic")?;
        mem::forget(kept);
        Ok(took)
    })
}

fn schedule<R: Rival>(
    timer: &mut R,
    far: u64,
    keep: bool,
    mut after_each: impl FnMut(u64),
) -> Vec<R::Handle> {
    let mut kept = Vec::with_capacity(if keep { far as usize } else { 0 });
    for i in 0..far {
        let handle = timer.schedule(captures::<2>(), delays::remote(i));
        kept.extend(keep.then_some(handle));
        after_each(i);
    }
    kept
}

/// Such handles are never dropped: to cancel all takes long, and the process ends anyway.
fn needs_handle(job: &Job) -> bool {
    job.rival.has(Trait::DiesWithHandle)
}

struct Heart<R: Rival> {
    timer: R,
    pace: Duration,
    next: Instant,
    /// Some timeouts need their handle to live.
    kept: Vec<R::Handle>,
}

impl<R: Rival> Heart<R> {
    fn new(timer: Timer<R>, pace: Duration) -> Self {
        Self { timer: timer(), pace, next: Instant::now(), kept: Vec::new() }
    }

    fn beat(&mut self, now: Instant) {
        self.kept.push(self.timer.schedule(probe::late(now + BEAT), BEAT));
        self.next = now + self.pace;
    }

    /// Between two operations at full speed.
    fn beat_at_step(&mut self, i: u64) {
        if i.is_multiple_of(STEP) {
            let now = Instant::now();
            if now >= self.next {
                self.beat(now);
            }
        }
    }

    fn beat_and_rest(&mut self) {
        self.beat(Instant::now());
        thread::sleep(self.pace);
    }

    /// Beats for some time after the others, and waits until all beats have run.
    fn go_on(mut self, time: Duration) -> Result<(), Error> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.beat_and_rest();
        }
        probe::await_runs(self.kept.len() as u64, PATIENCE)
    }
}

fn after(job: &Job) -> Duration {
    Duration::from_millis(job.sizes.far_after_ms)
}

/// Some timers leave a queue alone until something is due.
fn file_all<R: Rival>(timer: Timer<R>, job: &Job) -> Result<(), Error> {
    let time = after(job) + Duration::from_nanos(100 * job.count("far"));
    Heart::new(timer, SLOW_PACE).go_on(time)
}

/// CPU time of the timer's threads until all are where they stay, and the time to schedule one. A few
/// others are due meanwhile, because some timers leave a queue alone until something is due. What these cost
/// alone, and what a timer without work costs, is measured before and subtracted.
pub fn kept<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    probe::expect(MOST_BEATS);
    let far = job.count("far");
    let alone = Watched::begin();
    Heart::new(timer, SLOW_PACE).go_on(after(job))?;
    let share = alone.cpu_ns() / alone.ns();
    let mut heart = Heart::new(timer, SLOW_PACE);
    let all = Watched::begin();
    let beat = |i| heart.beat_at_step(i);
    let kept = schedule(&mut timer(), far, needs_handle(job), beat);
    let took = all.ns();
    heart.go_on(after(job) + Duration::from_nanos(100 * far))?;
    let cpu = all.cpu_ns() - share * all.ns();
    mem::forget(kept);
    Ok(vec![("ns_per_op", took / far as f64), ("cpu_ns_per_op", cpu / far as f64)])
}

/// The CPU time of all threads but the calling one, and the time, since it began.
struct Watched {
    cpu: Duration,
    begin: Instant,
}

impl Watched {
    fn begin() -> Self {
        Self { cpu: kernel::cpu_time_of_others(), begin: Instant::now() }
    }

    fn cpu_ns(&self) -> f64 {
        (kernel::cpu_time_of_others() - self.cpu).as_nanos() as f64
    }

    fn ns(&self) -> f64 {
        self.begin.elapsed().as_nanos() as f64
    }
}
