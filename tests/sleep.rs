//! A worker with nothing due sleeps.
//!
//! The timer counts its own wake-ups, on the system clock. A slow machine causes fewer of them, never
//! more, so the upper bounds hold there too. A sleep may end early by itself, as the standard library
//! allows. The bounds leave room for a few of these.

use crate::common::{Record, eventually, into_the_wheel, manual, manual_with, ms, on, one_look};
use crate::on_every_wheel;
use std::time::{Duration, Instant};
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, Timeout};

on_every_wheel!(
    rule_06_an_empty_timer_sleeps,
    rule_06_a_timer_whose_next_timeout_is_far_sleeps,
    rule_06_a_new_timeout_wakes_a_sleeping_worker_in_time,
    rule_06_producers_wake_the_worker_at_most_once_a_tick,
    rule_06_cancelled_timeouts_do_not_keep_the_worker_awake,
    rule_06_cancels_of_endless_timeouts_do_not_keep_the_worker_awake,
    rule_06_cancelled_timeouts_in_the_wheel_cause_no_wake_ups,
    rule_06_timeouts_that_were_pushed_back_cause_no_wake_ups,
);

const HOUR: Duration = Duration::from_secs(3600);

fn timer(wheel: WheelKind) -> HashedWheelTimer {
    on(wheel).tick_duration(ms(1)).build().unwrap()
}

fn wakeups_during(timer: &HashedWheelTimer, time: Duration) -> u64 {
    let before = timer.metrics().wakeups;
    std::thread::sleep(time);
    timer.metrics().wakeups - before
}

/// CPU time of this process's only thread of that name, in the system's clock ticks.
#[cfg(target_os = "linux")]
fn processor_time_of(thread: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.join("stat")).ok());
    let named: Vec<String> = stats.filter(|s| s.contains(&format!("({thread})"))).collect();
    let [stat] = named.as_slice() else { panic!("{} threads", named.len()) };
    let after_name: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
    let [user, system] = [12, 13].map(|field: usize| after_name[field].parse::<u64>().unwrap());
    user + system
}

/// The counter of wake-ups would not show a worker that never sleeps.
#[test]
#[cfg(target_os = "linux")]
fn rule_06_a_worker_with_nothing_to_do_uses_no_cpu_time() {
    const NAME: &str = "idle-worker";
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name(NAME).build().unwrap();
    let ran = Record::new();
    timer.new_timeout(ran.note(()), ms(1)).unwrap();
    timer.new_timeout(|| (), HOUR).unwrap();
    eventually("the worker has begun", || ran.len() == 1);
    std::thread::sleep(ms(50));
    let before = processor_time_of(NAME);
    std::thread::sleep(ms(500));
    let used = processor_time_of(NAME) - before;
    assert!(used <= 2, "{used} clock ticks, of about 50");
}

fn rule_06_an_empty_timer_sleeps(wheel: WheelKind) {
    let timer = timer(wheel);
    std::thread::sleep(ms(20));
    assert!(wakeups_during(&timer, ms(200)) <= 2);
}

fn rule_06_a_timer_whose_next_timeout_is_far_sleeps(wheel: WheelKind) {
    let timer = timer(wheel);
    (0..100_000).for_each(|_| drop(timer.new_timeout(|| (), HOUR).unwrap()));
    std::thread::sleep(ms(50));
    assert!(wakeups_during(&timer, ms(200)) <= 2);
}

fn rule_06_a_new_timeout_wakes_a_sleeping_worker_in_time(wheel: WheelKind) {
    let timer = timer(wheel);
    timer.new_timeout(|| (), HOUR).unwrap();
    std::thread::sleep(ms(20)); // asleep for an hour
    let ran = Record::new();
    timer.new_timeout(ran.note(()), ms(2)).unwrap();
    eventually("it runs long before the hour", || ran.len() == 1);
}

/// Each timeout is due sooner than the one before, so each is a reason to wake the worker.
fn rule_06_producers_wake_the_worker_at_most_once_a_tick(wheel: WheelKind) {
    let tick = ms(50);
    let timer = on(wheel).tick_duration(tick).build().unwrap();
    std::thread::sleep(ms(20));
    let before = timer.metrics().wakeups;
    let started = Instant::now();
    for sooner in (0..20_000u32).rev() {
        timer.new_timeout(|| (), HOUR + ms(100) * sooner).unwrap();
    }
    let ticks = started.elapsed().as_millis() as u64 / 50 + 2;
    let wakeups = timer.metrics().wakeups - before;
    assert!(wakeups <= 3 * ticks, "{wakeups} wake-ups in {ticks} ticks");
}

/// The remote-call pattern: each call arms a timeout and cancels it when the answer comes.
fn rule_06_cancelled_timeouts_do_not_keep_the_worker_awake(wheel: WheelKind) {
    let timer = timer(wheel);
    std::thread::sleep(ms(20));
    let before = timer.metrics().wakeups;
    let started = Instant::now();
    while started.elapsed() < ms(300) {
        assert!(timer.new_timeout(|| (), HOUR).unwrap().cancel());
        std::thread::sleep(Duration::from_micros(500));
    }
    let wakeups = timer.metrics().wakeups - before;
    assert!(wakeups <= 20, "{wakeups} wake-ups for some 500 timeouts that never fired");
}

/// Timeouts that never fire leave no dead entries that would make the worker sweep for ever.
fn rule_06_cancels_of_endless_timeouts_do_not_keep_the_worker_awake(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let never: Vec<_> =
        (0..6000).map(|_| timer.new_timeout(|| (), Duration::MAX).unwrap()).collect();
    one_look(&timer, &clock);
    assert!(never.iter().all(wheelwork::Timeout::cancel));
    drop(never);
    (0..2).for_each(|_| clock.advance_in_one_jump(Duration::ZERO));
    let before = timer.metrics().wakeups;
    for _ in 0..100 {
        assert!(timer.new_timeout(|| (), HOUR).unwrap().cancel());
        std::thread::sleep(ms(1));
    }
    let wakeups = timer.metrics().wakeups - before;
    assert!(wakeups <= 5, "{wakeups} wake-ups");
}

/// Puts timeouts into the wheel, each in a tick of its own, and calls `give_up` on each. Then asserts
/// that the worker sleeps.
fn nothing_is_due_after(wheel: WheelKind, give_up: fn(&Timeout)) {
    let timer = timer(wheel);
    // Tries again if this thread was held up for so long that they began to expire.
    eventually("this thread is not held up", || {
        let started = Instant::now();
        let schedule = |n: u64| {
            if n % 25 == 0 {
                timer.new_timeout(|| (), Duration::ZERO).unwrap(); // so the worker looks at all
            }
            timer.new_timeout(|| (), ms(400 + n)).unwrap()
        };
        let timeouts: Vec<_> = (0..300).map(schedule).collect();
        eventually("half are in the wheel", || timer.queue_depth() < 200);
        timeouts.iter().for_each(give_up);
        started.elapsed() < ms(380)
    });
    let wakeups = wakeups_during(&timer, ms(800));
    assert!(wakeups <= 5, "{wakeups} wake-ups for nothing");
}

fn rule_06_cancelled_timeouts_in_the_wheel_cause_no_wake_ups(wheel: WheelKind) {
    nothing_is_due_after(wheel, |timeout| _ = timeout.cancel());
}

fn rule_06_timeouts_that_were_pushed_back_cause_no_wake_ups(wheel: WheelKind) {
    nothing_is_due_after(wheel, |timeout| _ = timeout.reschedule(HOUR));
}

#[test]
fn rule_06_a_timeout_pulled_forward_wakes_a_sleeping_worker() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let timeout = timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap();
    std::thread::sleep(ms(50));
    timeout.reschedule(ms(1)).unwrap();
    eventually("it runs", || timeout.is_expired());
}

/// Each burst empties its chunks. The next one uses the same chunks.
#[test]
fn rule_06_bursts_that_are_cancelled_at_once_do_not_wake_the_worker_each_time() {
    for size in [500, 1500, 2000, 20_000] {
        let (timer, clock) = manual();
        timer.new_timeout(|| (), ms(3_600_000)).unwrap();
        into_the_wheel(&timer, &clock);
        let before = timer.metrics().wakeups;
        for _ in 0..50 {
            let burst: Vec<_> = (0..size).map(|_| timer.new_timeout(|| (), ms(60_000))).collect();
            assert!(burst.into_iter().all(|timeout| timeout.unwrap().cancel()));
        }
        std::thread::sleep(ms(20)); // the worker comes to rest
        let wakeups = timer.metrics().wakeups - before;
        assert!(wakeups <= 6, "{wakeups} wake-ups by bursts of {size}");
    }
}
