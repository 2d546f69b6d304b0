//! The cost of pending timeouts while none is due, and the growth of the resident memory:
//! by these, by those of threads that have ended, and after a storm of cancels.

use super::{Error, Figures};
use crate::delays::{self, HOUR};
use crate::kernel;
use crate::plan::Job;
use crate::rivals::{Rival, Timer, Trait};
use crate::task::{Nothing, Task, captures};
use std::io;
use std::mem;
use std::sync::Barrier;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

const STORM_DELAY: Duration = Duration::from_secs(60);
const SETTLE: Duration = Duration::from_secs(2);
/// Cancels between two looks at the memory.
const STEP: u64 = 100_000;
/// Growth at which a storm is broken off, for the sake of the machine.
const TOO_MUCH: f64 = (4u64 << 30) as f64;
const MIB: f64 = 1024.0 * 1024.0;
/// Threads that live at the same time.
const WAVE: u64 = 250;
const STACK: usize = 64 << 10;

pub fn resident<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let pending = job.count("pending");
    let mut timer = timer();
    let kept: Vec<_> = (0..pending).map(|_| timer.schedule(Nothing, HOUR)).collect();
    kernel::settle(Duration::from_secs(1) + Duration::from_micros(pending));
    let wakeups = kernel::wakeups()?;
    let cpu = kernel::cpu_time();
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(job.sizes.resident_ms));
    let window = begin.elapsed().as_secs_f64();
    let cpu = (kernel::cpu_time() - cpu).as_secs_f64();
    let wakeups = kernel::wakeups()? - wakeups;
    // Never cancelled: that takes long, and the process ends anyway.
    mem::forget(kept);
    Ok(vec![("cpu_percent", 100.0 * cpu / window), ("wakeups_per_s", wakeups as f64 / window)])
}

pub fn pending<R: Rival>(timer: Timer<R>, job: &Job) -> Figures {
    let mut timer = timer();
    warm_up(&mut timer);
    let before = kernel::resident_bytes()?;
    let timeouts = job.sizes.memory;
    match job.count("captures") {
        0 => hold(&mut timer, Nothing, timeouts, job),
        16 => hold(&mut timer, captures::<2>(), timeouts, job),
        _ => hold(&mut timer, captures::<3>(), timeouts, job),
    }
    Ok(vec![("bytes_per_timeout", growth_since(before)? / timeouts as f64)])
}

/// Schedules `timeouts` that stay. Handles are kept where a timeout needs one to live.
fn hold<R: Rival>(timer: &mut R, task: impl Task, timeouts: u64, job: &Job) {
    let needs_handle = job.rival.has(Trait::DiesWithHandle);
    let schedule = |_| timer.schedule(task.clone(), HOUR);
    mem::forget((0..timeouts).map(schedule).filter(|_| needs_handle).collect::<Vec<_>>());
}

/// Schedules `cancelled` timeouts, and cancels each at once.
pub fn storm<R: Rival>(timer: Timer<R>, cancelled: u64) -> Figures {
    let mut timer = timer();
    warm_up(&mut timer);
    let before = kernel::resident_bytes()?;
    let mut figures = Vec::new();
    for done in (STEP..=cancelled).step_by(STEP as usize) {
        (0..STEP).for_each(|_| timer.schedule_and_cancel(Nothing, STORM_DELAY));
        if kernel::resident_bytes()? > before + TOO_MUCH {
            figures.push(("capped_at", done as f64));
            break;
        }
    }
    figures.push(("rss_mib_after", growth_since(before)? / MIB));
    Ok(figures)
}

/// What a timer allocates once is not what a timeout costs.
fn warm_up<R: Rival>(timer: &mut R) {
    (0..1000).for_each(|i| timer.schedule_and_cancel(Nothing, delays::usual(i)));
    kernel::settle(SETTLE);
}

fn growth_since(before: f64) -> Result<f64, Error> {
    kernel::settle(SETTLE);
    Ok(kernel::resident_bytes()? - before)
}

/// Timeouts of threads that have ended. The same threads use another timer before:
/// glibc keeps 250 stacks and arenas, and a thread that schedules touches more of them than one that
/// does nothing. They are not what a timeout costs.
pub fn short_lived<R: Rival>([control, timer]: [Timer<R>; 2], job: &Job) -> Figures {
    let (threads, timeouts) = (job.count("threads"), job.sizes.short_lived);
    let each = timeouts / threads;
    let wave = |timer: Timer<R>| waves(threads, &|| hold(&mut timer(), captures::<2>(), each, job));
    let start = kernel::resident_bytes()?;
    waves(timeouts, &|| ())?;
    let idle = growth_since(start)?;
    wave(control)?;
    let used = growth_since(start)?;
    wave(timer)?;
    let all = growth_since(start)?;
    let figures = [("bytes_per_timeout", all - used), ("with_its_threads", used - idle)];
    Ok(figures.map(|(metric, bytes)| (metric, bytes / timeouts as f64)).to_vec())
}

/// The threads of a wave end when all of them have done their work.
fn waves(threads: u64, work: &(impl Fn() + Sync)) -> io::Result<()> {
    for begun in (0..threads).step_by(WAVE as usize) {
        let wave = WAVE.min(threads - begun);
        let done = &Barrier::new(wave as usize);
        let body = move || {
            work();
            done.wait();
        };
        thread::scope(|scope| {
            let spawn = |_| Builder::new().stack_size(STACK).spawn_scoped(scope, body);
            let running = (0..wave).map(spawn).collect::<io::Result<Vec<_>>>()?;
            // A scope does not wait for the destructors of thread-locals, but a join does.
            running.into_iter().for_each(|thread| thread.join().expect("none panics"));
            Ok::<_, io::Error>(())
        })?;
    }
    Ok(())
}
