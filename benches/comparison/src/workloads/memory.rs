//! The cost of pending timeouts while none is due, and the growth of the resident memory:
//! by these, by those of threads that have ended, and after a storm of cancels.

use super::Figures;
use crate::delays::{self, HOUR};
use crate::kernel;
use crate::rivals::{Rival, Trait};
use crate::sizes::Sizes;
use crate::task::{Captures, Nothing, TWO_WORDS, Task};
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

pub fn resident<R: Rival>(timer: &'static R::Timer, pending: u64, sizes: &Sizes) -> Figures {
    let mut timer = R::of(timer);
    let kept: Vec<_> = (0..pending).map(|_| timer.schedule(Nothing, HOUR)).collect();
    kernel::settle(Duration::from_secs(1) + Duration::from_micros(pending));
    let wakeups = kernel::wakeups()?;
    let cpu = kernel::cpu_time();
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(sizes.resident_ms));
    let window = begin.elapsed().as_secs_f64();
    let cpu = (kernel::cpu_time() - cpu).as_secs_f64();
    let wakeups = kernel::wakeups()? - wakeups;
    // Never cancelled: that takes long, and the process ends anyway.
    mem::forget(kept);
    Ok(vec![("cpu_percent", 100.0 * cpu / window), ("wakeups_per_s", wakeups as f64 / window)])
}

pub fn pending<R: Rival>(timer: &'static R::Timer, captures: u64, sizes: &Sizes) -> Figures {
    let mut timer = R::of(timer);
    warm_up(&mut timer);
    let before = kernel::resident_bytes()?;
    match captures {
        0 => hold(&mut timer, Nothing, sizes.memory),
        16 => hold(&mut timer, TWO_WORDS, sizes.memory),
        _ => hold(&mut timer, Captures([1, 2, 3]), sizes.memory),
    }
    Ok(vec![("bytes_per_timeout", growth_since(before)? / sizes.memory as f64)])
}

/// Schedules so many that stay. Handles are kept where a timeout needs one to live.
fn hold<R: Rival>(timer: &mut R, task: impl Task, timeouts: u64) {
    let mut kept = Vec::new();
    for _ in 0..timeouts {
        let handle = timer.schedule(task.clone(), HOUR);
        if R::FACTS.has(Trait::DiesWithHandle) {
            kept.push(handle);
        }
    }
    mem::forget(kept);
}

/// Each of so many is cancelled at once.
pub fn storm<R: Rival>(timer: &'static R::Timer, cancelled: u64) -> Figures {
    let mut timer = R::of(timer);
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

fn growth_since(before: f64) -> io::Result<f64> {
    kernel::settle(SETTLE);
    Ok(kernel::resident_bytes()? - before)
}

/// Scheduled by so many threads, each of which ends. The same threads use another timer before:
/// glibc keeps 250 stacks and arenas, and a thread that schedules touches more of them than one that
/// does nothing. They are not what a timeout costs.
pub fn short_lived<R: Rival>(
    [control, timer]: [&'static R::Timer; 2],
    threads: u64,
    sizes: &Sizes,
) -> Figures {
    let each = sizes.short_lived / threads;
    let wave = |timer| waves(threads, &|| hold(&mut R::of(timer), TWO_WORDS, each));
    let start = kernel::resident_bytes()?;
    waves(sizes.short_lived, &|| ())?;
    let idle = growth_since(start)?;
    wave(control)?;
    let used = growth_since(start)?;
    wave(timer)?;
    let timeouts = sizes.short_lived as f64;
    Ok(vec![
        ("bytes_per_timeout", (growth_since(start)? - used) / timeouts),
        ("with_its_threads", (used - idle) / timeouts),
    ])
}

/// The threads of a wave end when all of them have done their work.
fn waves(threads: u64, work: &(impl Fn() + Sync)) -> io::Result<()> {
    for begun in (0..threads).step_by(WAVE as usize) {
        let wave = WAVE.min(threads - begun);
        let done = &Barrier::new(wave as usize);
        thread::scope(|scope| {
            let body = move || {
                work();
                done.wait();
            };
            let spawn = |_| Builder::new().stack_size(STACK).spawn_scoped(scope, body);
            let running = (0..wave).map(spawn).collect::<io::Result<Vec<_>>>()?;
            // A scope does not wait for the destructors of thread-locals, but a join does.
            running.into_iter().try_for_each(|thread| thread.join().map_err(|_| panicked()))
        })?;
    }
    Ok(())
}

fn panicked() -> io::Error {
    io::Error::other("a thread that schedules has panicked")
}
