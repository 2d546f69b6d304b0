//! Claim: cancelled, postponed and far timeouts cause neither needless wake-ups nor long steps of the
//! worker. Each row attacks a timer with a tick of 1 ms, and prints the measured value and the goal. A busy
//! machine exceeds the times, so nothing here fails. `.ci/long` runs it.
//!
//! `cargo bench --bench attacks`, or with a number that divides the sizes: `-- 10`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wheelwork::{HashedWheelTimer, Timeout};

const HOUR: Duration = Duration::from_secs(3600);
const BEAT: Duration = Duration::from_millis(5);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn timer(buckets: usize) -> HashedWheelTimer {
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).ticks_per_wheel(buckets);
    builder.build().expect("a timer")
}

fn schedule(timer: &HashedWheelTimer, count: u64, delay: impl Fn(u64) -> Duration) -> Vec<Timeout> {
    (0..count).map(|n| timer.new_timeout(|| (), delay(n)).expect("it runs")).collect()
}

/// Every 64th is due soon: the worker comes upon the others beside it, and files most of them.
fn in_the_wheel(
    timer: &HashedWheelTimer,
    count: u64,
    soon: Duration,
    later: impl Fn(u64) -> Duration,
) -> Vec<Timeout> {
    schedule(timer, count, |n| if n % 64 == 0 { soon } else { later(n) })
}

fn until_run(timer: &HashedWheelTimer, count: u64) {
    while timer.metrics().expired < count {
        std::thread::sleep(ms(1));
    }
}

fn row(attack: &str, reached: &str, limit: &str) {
    println!("{attack:<48} {reached:>15} {limit:>14}");
}

/// Wake-ups within five seconds after `count` timeouts in distinct ticks were cancelled or pushed back.
fn wake_ups(attack: &str, count: u64, give_up: impl Fn(u64, &Timeout)) {
    let timer = timer(512);
    let later = |n| ms(3000) + Duration::from_micros(n * 4_000_000 / count);
    let timeouts = in_the_wheel(&timer, count, ms(200), later);
    until_run(&timer, count.div_ceil(64));
    (0..).zip(&timeouts).for_each(|(n, timeout)| give_up(n, timeout));
    let before = timer.metrics().wakeups;
    std::thread::sleep(ms(5000));
    row(attack, &format!("{} in 5 s", timer.metrics().wakeups - before), "6");
}

/// The worst lateness of a heartbeat on the same timer during `act` and a second after.
fn lateness(timer: &HashedWheelTimer, attack: &str, act: impl FnOnce()) {
    let over = AtomicBool::new(false);
    let worst = std::thread::scope(|scope| {
        let heart = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            while !over.load(Relaxed) {
                let (sender, beat) = mpsc::channel();
                let due = Instant::now() + BEAT;
                let note = move || _ = sender.send(Instant::now());
                timer.new_timeout_at(note, due).expect("it runs");
                worst = worst.max(beat.recv().expect("a beat") - due);
            }
            worst
        });
        act();
        std::thread::sleep(ms(1000));
        over.store(true, Relaxed);
        heart.join().expect("a heartbeat")
    });
    row(attack, &format!("{:.1} ms late", worst.as_secs_f64() * 1e3), "10 ms");
}

/// Far beyond the reach of a wheel of one bucket, or within that of 512.
fn far_timeouts(buckets: usize, place: &str, count: u64) {
    let timer = timer(buckets);
    let timeouts = in_the_wheel(&timer, count, ms(2000), |n| HOUR + ms(n));
    let due = count.div_ceil(64);
    lateness(&timer, &format!("{count} {place} brought in"), || until_run(&timer, due));
    lateness(&timer, &format!("{count} {place} cancelled"), || {
        timeouts.iter().for_each(|timeout| _ = timeout.cancel());
    });
}

fn stop_behind(count: u64) {
    let timer = timer(512);
    let (release, gate) = mpsc::channel::<()>();
    timer.new_timeout(move || _ = gate.recv(), ms(1)).expect("it runs");
    std::thread::sleep(ms(20));
    (0..count).for_each(|_| drop(timer.new_timeout(|| (), Duration::ZERO).expect("it runs")));
    drop(release);
    std::thread::sleep(ms(5));
    let started = Instant::now();
    let returned = timer.stop().expect("not on the worker").len();
    let each = started.elapsed().as_nanos() as f64 / returned.max(1) as f64;
    row(&format!("stop behind {count} zero delays"), &format!("{each:.0} ns each"), "-");
}

fn main() {
    let divisor = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(1).max(1);
    row("attack", "reached", "should be");
    wake_ups("4,000 cancelled", 4000, |_, timeout| _ = timeout.cancel());
    wake_ups("999 of 1,000 cancelled", 1000, |n, timeout| _ = n == 999 || timeout.cancel());
    wake_ups("1,000 pushed back", 1000, |_, timeout| _ = timeout.reschedule(HOUR));
    far_timeouts(1, "far ones", 3_000_000 / divisor);
    far_timeouts(512, "in buckets", 3_000_000 / divisor);
    stop_behind(20_000_000 / divisor);
}
