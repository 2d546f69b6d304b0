//! Memory is proportional to the live timeouts, and scheduling allocates little.
//!
//! A counting allocator sees every live byte of this process. No test from another file may disturb it.

mod common;
mod thread_memory;

use common::{
    TICK, WHEELS, eventually, manual, manual_with, ms, on, one_look, partly_in_the_wheel,
};
use kit::live_bytes::{ALONE, COUNTING, Counting, allocations, bytes};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use wheelwork::future::{DelayQueue, Sleep};
use wheelwork::idle::{Answer, IdlePolicy, IdleStreams, IdleTimeouts, Watch};
use wheelwork::timer::WheelKind;
use wheelwork::watchdog::Watchdog;
use wheelwork::wheel::Wheel;
use wheelwork::{HashedWheelTimer, MissedTickBehavior, Period, Timeout};

#[global_allocator]
static ALLOCATOR: &Counting = &COUNTING;

const HOUR: Duration = Duration::from_secs(3600);

/// The fewest bytes of a pending timeout.
const LEAST: isize = if cfg!(target_pointer_width = "64") { 39 } else { 33 };

/// The allocations during `work`: the fewest of five times, since the test harness, which starts
/// and reports the other tests of this file meanwhile, allocates too.
fn fewest_allocations(mut work: impl FnMut()) -> usize {
    let times = (0..5).map(|_| {
        let before = allocations();
        work();
        allocations() - before
    });
    times.min().expect("five times")
}

/// Waves of timeouts reach the wheel and are cancelled there. None is ever due.
#[test]
fn rule_04_a_storm_of_cancels_in_the_wheel_does_not_grow_memory() {
    let _alone = ALONE.lock();
    WHEELS.into_iter().for_each(storm_on);
}

fn storm_on(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let mut wave = Vec::with_capacity(20_000);
    let mut after = Vec::new();
    for _ in 0..30 {
        wave.extend(partly_in_the_wheel(&timer, &clock, 20_000, |n| {
            timer.new_timeout(|| (), HOUR + ms(n)).unwrap()
        }));
        wave.drain(..).for_each(|timeout: Timeout| assert!(timeout.cancel()));
        clock.advance_in_one_jump(Duration::ZERO); // until the worker has swept the wheel
        after.push(bytes());
    }
    let (early, late) = (after[5], *after.last().unwrap());
    // What 30 waves would leave is five times as much.
    assert!(late < early + 1_000_000, "{early} bytes after 6 waves, {late} after 30");
    timer.stop().unwrap();
}

/// `stop` returns the task of one timer, which then goes to the next timer.
#[test]
fn rule_04_a_task_handed_from_timer_to_timer_does_not_grow() {
    let _alone = ALONE.lock();
    let (mut task, mut after) = (None::<wheelwork::task::Task>, Vec::new());
    for n in 0..2000 {
        let timer = HashedWheelTimer::builder().ticks_per_wheel(8).build().unwrap();
        match task.take() {
            Some(task) => timer.new_timeout(task, HOUR).unwrap(),
            None => timer.new_timeout(|| (), HOUR).unwrap(),
        };
        task = Some(timer.stop().unwrap().remove(0).into_task());
        drop(timer);
        if n % 100 == 99 {
            after.push(bytes());
        }
    }
    let (early, late) = (after[0], *after.last().unwrap());
    assert!(late < early + 20_000, "{early} bytes after 100 times, {late} after 2,000");
}

/// Each timeout is cancelled soon after it was scheduled, while the worker sleeps: nothing drains the
/// queue.
#[test]
fn rule_04_a_storm_of_cancels_in_the_queue_does_not_grow_memory() {
    let _alone = ALONE.lock();
    let tick = Duration::from_secs(3600);
    let timer = HashedWheelTimer::builder().tick_duration(tick).build().unwrap();
    let mut window = std::collections::VecDeque::new();
    let mut at_start = 0;
    for n in 0..1_000_000 {
        window.push_back(timer.new_timeout(|| (), HOUR).unwrap());
        if window.len() > 1000 {
            assert!(window.pop_front().unwrap().cancel()); // out of the middle of the queue
        }
        if n == 100_000 {
            at_start = bytes();
        }
    }
    let grown = bytes() - at_start;
    assert!(grown < 2_000_000, "{grown} bytes more after 900,000 more cancels");
    assert_eq!(timer.pending_timeouts(), 1000);
}

/// Fifty million, or `WHEELWORK_CANCELS`, a million at least: about half of every other wave is cancelled in the
/// wheel, the rest in the queue.
#[test]
#[ignore = "ten seconds in release, far longer without: part of the long run"]
fn rule_04_a_storm_of_fifty_million_cancels_does_not_grow_memory() {
    let _alone = ALONE.lock();
    let cancels = std::env::var("WHEELWORK_CANCELS").ok();
    let cancels: usize = cancels.map_or(50_000_000, |n| n.parse().expect("a number of cancels"));
    const WAVE: u64 = 100_000;
    let (timer, clock) = manual();
    let mut wave = Vec::with_capacity(WAVE as usize);
    let (mut after, mut in_wheel) = (Vec::new(), 0);
    let far = |n| timer.new_timeout(|| (), HOUR + ms(n)).unwrap();
    for number in 0..cancels / WAVE as usize {
        if number % 2 == 0 {
            wave.extend(partly_in_the_wheel(&timer, &clock, WAVE, far));
            in_wheel += WAVE - timer.queue_depth() as u64;
        } else {
            wave.extend((0..WAVE).map(far));
        }
        wave.drain(..).for_each(|timeout: Timeout| assert!(timeout.cancel()));
        clock.advance_in_one_jump(Duration::ZERO); // until the worker has swept the wheel
        after.push(bytes());
    }
    let (first, rest) = after.split_at(after.len() / 10);
    let [early, late] = [first, rest].map(|part| *part.iter().max().expect("a million cancels"));
    println!(
        "{} cancels, {in_wheel} in the wheel: at most {early} bytes in the first tenth, {late} in the rest",
        timer.metrics().cancelled
    );
    assert!(late < early + 1_000_000, "{early} bytes in the first tenth, {late} in the rest");
    timer.stop().unwrap();
}

#[test]
fn rule_04_timeouts_pulled_forward_again_and_again_do_not_grow_memory() {
    let _alone = ALONE.lock();
    WHEELS.into_iter().for_each(pull_forward_on);
}

fn pull_forward_on(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let far = |_| timer.new_timeout(|| (), HOUR * 9).unwrap();
    let timeouts = partly_in_the_wheel(&timer, &clock, 1000, far);
    let mut after = Vec::new();
    for round in 0..300 {
        let delay = HOUR * 8 - Duration::from_secs(round);
        timeouts.iter().for_each(|timeout| timeout.reschedule(delay).unwrap());
        clock.advance_in_one_jump(ms(100));
        after.push(bytes());
    }
    let (early, late) = (after[30], *after.last().unwrap());
    assert!(late < early + 300_000, "{early} bytes after 31 rounds, {late} after 300");
    timer.stop().unwrap();
}

#[test]
fn rule_04_memory_comes_back_after_a_peak() {
    let _alone = ALONE.lock();
    WHEELS.into_iter().for_each(peak_on);
}

fn peak_on(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    clock.advance_in_one_jump(ms(100));
    let before = bytes();
    (0..300_000).for_each(|_| drop(timer.new_timeout(|| (), ms(5000)).unwrap()));
    let peak = bytes() - before;
    clock.advance_in_one_jump(ms(5000));
    assert_eq!(timer.pending_timeouts(), 0);
    let left = bytes() - before;
    assert!(peak > 300_000 * LEAST && left < peak / 2, "{left} of {peak} bytes are left");
    println!("bytes for each pending timeout: {}", peak / 300_000);
    timer.stop().unwrap();
}

/// Each survivor keeps the 62 slots of its chunk at most, 2.6 KB; README rule 4 and the crate's page
/// say so.
#[test]
fn rule_04_a_survivor_of_a_burst_keeps_at_most_its_chunk() {
    const SURVIVORS: usize = 500;
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    clock.advance_in_one_jump(Duration::ZERO);
    let before = bytes();
    let burst: Vec<_> = (0..512 * SURVIVORS)
        .map(|n| timer.new_timeout(|| (), if n % 512 == 0 { HOUR } else { ms(100) }).unwrap())
        .collect();
    drop(burst);
    clock.advance_in_one_jump(ms(100));
    assert_eq!(timer.pending_timeouts(), SURVIVORS);
    (0..3).for_each(|_| one_look(&timer, &clock)); // what a pass keeps follows the last
    clock.advance_in_one_jump(Duration::from_secs(1)); // chunks are released at most once per second
    let each = (bytes() - before) / SURVIVORS as isize;
    println!("bytes for each survivor: {each}");
    assert!(each < 2600 + 1000, "{each} bytes for each survivor");
    timer.stop().unwrap();
}

/// However long a tick is: chunks are released by the time, at most once per second.
#[test]
fn rule_04_memory_comes_back_after_two_bursts_within_a_tick() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::builder().tick_duration(HOUR).build().unwrap();
    let before = bytes();
    for _ in 0..2 {
        let burst: Vec<_> = (0..500_000).map(|_| timer.new_timeout(|| (), HOUR).unwrap()).collect();
        assert!(bytes() - before > 500_000 * LEAST);
        assert!(burst.iter().all(Timeout::cancel));
    }
    eventually("the memory of both comes back", || bytes() - before < 1_000_000);
    timer.stop().unwrap();
}

/// The figures of the structures' pages.
#[cfg(target_pointer_width = "64")]
#[test]
fn rule_04_buckets_take_what_their_pages_say() {
    const BUCKETS: usize = 16_384;
    /// In units, rounded. Threads of earlier tests may still give memory back, so a disturbed look is repeated.
    fn takes<S>(make: impl Fn() -> Wheel<u64, S>, unit: usize, expected: isize) {
        eventually("the structure takes what its page says", || {
            let before = bytes();
            let wheel = make();
            let taken = bytes() - before;
            drop(wheel);
            (taken as f64 / unit as f64).round() as isize == expected
        });
    }
    let _alone = ALONE.lock();
    takes(|| Wheel::hashed(BUCKETS).unwrap(), BUCKETS, 41);
    takes(|| Wheel::simple(BUCKETS).unwrap(), BUCKETS, 64);
    let level = || {
        let mut wheel = Wheel::hierarchical(BUCKETS).unwrap();
        wheel.insert(5, 5);
        wheel
    };
    takes(level, BUCKETS, 64);
    takes(Wheel::linux_classic, 1024, 33); // the levels themselves are the last one
    takes(Wheel::linux, 1024, 14);
}

/// A bucket costs 41 bytes, and nothing more once it is empty, however its entries leave it.
#[test]
fn rule_04_empty_buckets_keep_no_entries() {
    const BUCKETS: u64 = 16_384;
    let _alone = ALONE.lock();
    for cancels in [true, false] {
        let before = bytes();
        let builder = HashedWheelTimer::builder().ticks_per_wheel(BUCKETS as usize);
        let (timer, clock) = manual_with(builder);
        let turn = TICK * BUCKETS as u32;
        let spread = |n| timer.new_timeout(|| (), ms(n % BUCKETS * 100 + 5000)).unwrap();
        let mut burst = Vec::new();
        // A pass files at most 100,000.
        (0..2).for_each(|_| burst.extend(partly_in_the_wheel(&timer, &clock, 130_000, spread)));
        let filed = burst.len() - timer.queue_depth();
        assert!(filed > 175_000, "{filed} are in the wheel");
        assert!(!cancels || burst.iter().all(Timeout::cancel));
        drop(burst);
        clock.advance_in_one_jump(Duration::from_secs(10));
        if !cancels {
            (0..BUCKETS / 8).for_each(|_| clock.advance_in_one_jump(TICK * 8));
            clock.advance_in_one_jump(turn);
        }
        assert_eq!(timer.pending_timeouts(), 0);
        clock.advance_in_one_jump(Duration::from_secs(1)); // chunks are released at most once per second
        let left = bytes() - before;
        println!("bytes with nothing pending: {left}");
        assert!(
            left < 1_000_000,
            "{left} bytes with nothing pending; they were cancelled: {cancels}"
        );
        timer.stop().unwrap();
    }
}

#[test]
fn rule_04_a_wheel_gives_back_the_memory_of_a_burst() {
    let _alone = ALONE.lock();
    let before = bytes();
    let mut wheel = Wheel::hashed(512).unwrap();
    for n in 0..300_000u64 {
        wheel.insert(5, n);
        wheel.insert(if n % 2 == 0 { 600 } else { 88 }, n); // two ticks of one bucket
    }
    assert_eq!(wheel.expire(5, |_, _| ()) + wheel.expire(1000, |_, _| ()), 600_000);
    let left = bytes() - before;
    assert!(left < 600_000, "{left} bytes in an empty wheel, less than one for each of the burst");
}

#[test]
fn rule_04_rescheduling_allocates_nothing() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::builder().tick_duration(HOUR).build().unwrap();
    let timeout = timer.new_timeout(|| (), HOUR).unwrap();
    std::thread::sleep(ms(20));
    let push_back = || (0..1000).for_each(|n| timeout.reschedule(HOUR + ms(n)).unwrap());
    assert_eq!(fewest_allocations(push_back), 0);
}

/// In a burst of a thousand runs, on the worker and on an executor. The queue of missed runs takes a
/// block for every 31 of the latter.
#[test]
fn rule_04_a_timeout_that_repeats_allocates_nothing() {
    const RUNS: u32 = 1000;
    let _alone = ALONE.lock();
    for inline in [true, false] {
        let builder = HashedWheelTimer::builder().ticks_per_wheel(8);
        let (timer, clock) = manual_with(match inline {
            true => builder,
            false => builder.executor(common::run_here),
        });
        let (mut runs, mut held) = (0, [0u64; 5]);
        let task = move || {
            runs += 1;
            held[runs as usize % 5] += 1;
        };
        let period = Period::fixed_rate_with(ms(100), MissedTickBehavior::Burst);
        timer.new_periodic(task, period).unwrap();
        clock.advance_in_one_jump(ms(100) * 50);
        let allocations = fewest_allocations(|| clock.advance_in_one_jump(ms(100) * RUNS));
        assert_eq!(timer.metrics().expired, u64::from(5 * RUNS) + 50);
        assert!(allocations < 50, "{allocations} allocations in {RUNS} runs");
        timer.stop().unwrap();
    }
}

#[test]
fn rule_04_stopped_timers_leave_no_memory_behind() {
    let _alone = ALONE.lock();
    WHEELS.into_iter().for_each(end_timers_on);
}

/// The handles keep each slot of the thread's chunk.
#[test]
fn rule_04_calls_that_a_stopped_timer_refuses_take_no_memory() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::new().unwrap();
    let _handles: Vec<_> = (0..62).map(|_| timer.new_timeout(|| (), ms(60_000)).unwrap()).collect();
    let slots = timer.metrics().slots;
    timer.stop().unwrap();
    for _ in 0..100 {
        timer.new_timeout(|| (), ms(60_000)).unwrap_err();
    }
    assert!(timer.metrics().slots <= slots);
}

fn end_timers_on(wheel: WheelKind) {
    let mut after = Vec::new();
    for _ in 0..20 {
        let (timer, clock) = manual_with(on(wheel));
        let kept: Vec<_> =
            (0..100).map(|n| timer.new_timeout(|| (), ms(n * 10)).unwrap()).collect();
        clock.advance_in_one_jump(ms(500));
        assert_eq!(timer.stop().unwrap().len(), 49);
        drop((timer, clock, kept));
        after.push(bytes());
    }
    // The test harness may start a thread meanwhile, once; what a timer leaves, each leaves.
    let mut grown: Vec<isize> = after.windows(2).map(|pair| pair[1] - pair[0]).collect();
    grown.sort_unstable();
    assert_eq!(grown[grown.len() / 2], 0, "bytes more for each timer: {grown:?}");
}

/// The bytes for each of 50 pieces that `make` makes.
fn bytes_each<T>(make: impl FnMut(usize) -> T) -> isize {
    const MANY: usize = 50;
    let before = bytes();
    let _kept: Vec<T> = (0..MANY).map(make).collect();
    (bytes() - before) / MANY as isize
}

/// 16 KB of it are the 512 buckets.
#[test]
fn rule_04_a_timer_before_its_first_timeout_takes_at_most_40_kilobytes() {
    let _alone = ALONE.lock();
    let mut timers = Vec::with_capacity(50);
    let each = bytes_each(|_| timers.push(manual()));
    timers.iter().for_each(|(timer, _)| drop(timer.stop().unwrap()));
    println!("bytes for each timer: {each}");
    assert!(each < 40_000, "{each} bytes for each timer");
}

/// The sizes that the crate's page and the chapter on sizing give. A clock of one's own would come on top of it.
#[test]
fn rule_04_what_a_handle_and_a_thread_keep_of_an_ended_timer_is_bounded() {
    let _alone = ALONE.lock();
    let ended = |_| {
        let timer = HashedWheelTimer::new().unwrap();
        let schedule = || timer.new_timeout(|| (), HOUR).unwrap();
        let handle = std::thread::scope(|scope| scope.spawn(schedule).join().unwrap());
        drop(timer.stop().unwrap());
        handle
    };
    let of_handle = bytes_each(ended);
    // Each of these threads has scheduled in a timer that another thread has stopped.
    let (until, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    let of_thread = std::thread::scope(|scope| {
        let idle = || assert!(ended.lock().unwrap().recv().is_err());
        let thread = |schedules: bool| {
            let timer = HashedWheelTimer::new().unwrap();
            let (done, is_done) = std::sync::mpsc::channel();
            let other = timer.clone();
            scope.spawn(move || {
                if schedules {
                    drop(other.new_timeout(|| (), HOUR));
                }
                drop(other);
                done.send(()).unwrap();
                idle();
            });
            is_done.recv().unwrap();
            drop(timer.stop().unwrap());
        };
        let without = bytes_each(|_| thread(false));
        let with = bytes_each(|_| thread(true));
        drop(until);
        with - without
    });
    println!("bytes of an ended timer: {of_handle} for each handle, {of_thread} for each thread");
    assert!(of_handle < 3072, "{of_handle} bytes for each handle");
    assert!(of_thread < 4096, "{of_thread} bytes for each thread");
}

/// Dead entries outnumber the live ones because the live ones expire, not because more are cancelled.
#[test]
fn rule_04_dead_entries_are_swept_when_the_live_ones_expire() {
    let _alone = ALONE.lock();
    WHEELS.into_iter().for_each(dead_among_the_living_on);
}

fn dead_among_the_living_on(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    clock.advance_in_one_jump(Duration::ZERO);
    let before = bytes();
    let far = |n| timer.new_timeout(|| (), HOUR + ms(n)).unwrap();
    let dead = partly_in_the_wheel(&timer, &clock, 300_000, far);
    (0..300_000).for_each(|_| drop(timer.new_timeout(|| (), ms(5000)).unwrap()));
    assert!(dead.iter().all(Timeout::cancel));
    drop(dead);
    (0..60).for_each(|_| clock.advance_in_one_jump(ms(100)));
    assert_eq!(timer.pending_timeouts(), 0);
    let left = bytes() - before;
    assert!(left < 1_000_000, "{left} bytes with nothing pending");
    timer.stop().unwrap();
}

fn idle_timeouts(timer: &HashedWheelTimer) -> IdleTimeouts<u64> {
    IdleTimeouts::new(timer, |_, _| Answer::KeepWatching)
}

#[test]
fn rule_04_feeding_a_watchdog_allocates_nothing() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let watchdog = Watchdog::new(&timer, |_: &str, _| ());
    let limit = Duration::from_secs(1);
    let watched = watchdog.watch("it", limit).unwrap();
    clock.advance(limit); // it is reported, and recovers
    let found = fewest_allocations(|| {
        watched.feed();
        drop(watched.pause());
    });
    assert_eq!(found, 0);
    timer.stop().unwrap();
}

/// The handle and the user's value are included.
#[test]
fn rule_04_a_watched_connection_takes_at_most_100_bytes() {
    const CONNECTIONS: usize = 300_000;
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let idle = idle_timeouts(&timer);
    let policy = IdlePolicy::new().reader(HOUR).writer(HOUR * 2).jitter(HOUR);
    let before = bytes();
    let mut watches: Vec<Watch> = Vec::with_capacity(CONNECTIONS);
    watches.extend((0..CONNECTIONS as u64).map(|id| idle.watch(id, &policy).unwrap()));
    clock.advance_in_one_jump(Duration::ZERO);
    let each = (bytes() - before) / CONNECTIONS as isize;
    println!("bytes for each watched connection: {each}");
    assert!(each <= 100, "{each} bytes");
    let before = allocations();
    watches.iter().for_each(|watch| {
        watch.touch();
        watch.begin_pause();
        watch.end_pause();
    });
    assert_eq!(allocations() - before, 0);
    timer.stop().unwrap();
}

#[test]
fn rule_04_connections_that_come_and_go_do_not_grow_memory() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let idle = idle_timeouts(&timer);
    let policy = IdlePolicy::new().both(HOUR);
    let _resident = idle.watch(0, &policy).unwrap();
    let mut after = Vec::new();
    for wave in 0..40 {
        let watches: Vec<_> = (0..20_000).map(|id| idle.watch(id, &policy).unwrap()).collect();
        clock.advance_in_one_jump(ms(wave));
        drop(watches);
        after.push(bytes());
    }
    let (early, late) = (after[4], *after.last().unwrap());
    assert!(late < early + 300_000, "{early} bytes after 5 waves, {late} after 40");
    timer.stop().unwrap();
}

/// Neither the connections nor their reports leave memory behind.
#[test]
fn rule_04_connections_that_were_reported_and_dropped_leave_no_memory_behind() {
    let _alone = ALONE.lock();
    for answer in [Answer::KeepWatching, Answer::StopWatching] {
        let (timer, clock) = manual();
        let idle = IdleTimeouts::new(&timer, move |_: &mut u64, _| answer);
        let policy = IdlePolicy::new().both(ms(1000));
        let _resident = idle.watch(0, &IdlePolicy::new()).unwrap();
        clock.advance_in_one_jump(Duration::ZERO);
        let before = bytes();
        let watches: Vec<_> = (0..100_000).map(|id| idle.watch(id, &policy).unwrap()).collect();
        clock.advance_in_one_jump(ms(2000));
        drop(watches);
        assert_eq!(idle.watched(), 1);
        clock.advance_in_one_jump(ms(2000));
        let kept = bytes() - before;
        assert!(kept < 250_000, "{kept} bytes are kept after 100,000 that answered {answer:?}");
        timer.stop().unwrap();
    }
}

#[test]
fn rule_04_a_connection_that_was_reported_and_stays_watched_takes_at_most_120_bytes() {
    const CONNECTIONS: usize = 100_000;
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let idle = idle_timeouts(&timer);
    let policy = IdlePolicy::new().both(ms(1000));
    let mut watches: Vec<Watch> = Vec::with_capacity(CONNECTIONS);
    let before = bytes() - (CONNECTIONS * size_of::<Watch>()) as isize;
    watches.extend((0..CONNECTIONS as u64).map(|id| idle.watch(id, &policy).unwrap()));
    clock.advance_in_one_jump(ms(1000));
    let each = (bytes() - before) / CONNECTIONS as isize;
    println!("bytes for each that was reported: {each}");
    assert!(each <= 120, "{each} bytes");
    assert_eq!(idle.watched(), CONNECTIONS);
    // Activity makes the reports void. The next check frees their memory.
    watches.iter().for_each(Watch::touch);
    clock.advance_in_one_jump(ms(999));
    watches.iter().for_each(Watch::touch);
    clock.advance_in_one_jump(ms(500));
    let each = (bytes() - before) / CONNECTIONS as isize;
    assert!(each <= 100, "{each} bytes after activity");
    timer.stop().unwrap();
}

/// The worst case: each survivor is alone in its row, and was reported for all kinds.
#[test]
fn rule_04_the_last_connection_of_a_row_keeps_at_most_8_kilobytes() {
    const SURVIVORS: usize = 100;
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let idle = idle_timeouts(&timer);
    let second = ms(1000);
    let silences = IdlePolicy::new().reader(second).writer(second).both(second);
    let policy = silences.waiting_write(second).max_age(second, None);
    let before = bytes();
    let mut burst: Vec<_> =
        (0..1024 * SURVIVORS as u64).map(|id| idle.watch(id, &policy).unwrap()).collect();
    burst.iter().for_each(Watch::record_waiting_write);
    clock.advance_in_one_jump(second);
    let mut number = 0;
    burst.retain(|_| {
        number += 1;
        number % 1024 == 500
    });
    burst.shrink_to_fit();
    assert_eq!(idle.watched(), SURVIVORS);
    let each = (bytes() - before) / SURVIVORS as isize;
    println!("bytes for each survivor among 1024: {each}");
    assert!(each < 8000, "{each} bytes for each survivor");
    drop(burst);
    timer.stop().unwrap();
}

fn polled(sleep: &mut Sleep, waker: &Waker) -> Poll<()> {
    std::pin::pin!(sleep).poll(&mut Context::from_waker(waker))
}

#[test]
fn rule_04_a_sleep_allocates_nothing() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let first: Waker = Arc::new(Idle).into();
    let second: Waker = Arc::new(Idle).into();
    let _slot = timer.new_timeout(|| (), HOUR).unwrap(); // this thread has a chunk
    let found = fewest_allocations(|| {
        let mut sleep = timer.sleep(ms(100));
        assert!(polled(&mut sleep, &first).is_pending());
        assert!(polled(&mut sleep, &second).is_pending());
        sleep.reset_after(ms(50));
        assert!(polled(&mut sleep, &second).is_pending());
        let mut dropped = timer.sleep(ms(100));
        assert!(polled(&mut dropped, &first).is_pending());
    });
    assert_eq!(found, 0);
    let plain = fewest_allocations(|| {
        timer.new_timeout(|| (), ms(100)).unwrap();
        clock.advance_in_one_jump(ms(100));
    });
    let mut sleep = timer.sleep(ms(100));
    let found = fewest_allocations(|| {
        sleep.reset_after(ms(100));
        assert!(polled(&mut sleep, &first).is_pending());
        clock.advance_in_one_jump(ms(100));
        assert!(polled(&mut sleep, &first).is_ready());
    });
    assert!(found <= plain, "{found}, and a task without captures takes {plain}");
    timer.stop().unwrap();
}

struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

/// A watched connection, and what its stream adds: the handle, and the place of the wakers.
#[test]
fn rule_04_a_stream_with_idle_timeouts_takes_at_most_210_bytes() {
    const STREAMS: usize = 100_000;
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let (streams, policy) = (IdleStreams::new(&timer), IdlePolicy::new().both(HOUR));
    let before = bytes();
    let mut all = Vec::with_capacity(STREAMS);
    all.extend((0..STREAMS).map(|_| streams.wrap_with((), &policy, |()| None).unwrap()));
    clock.advance_in_one_jump(Duration::ZERO);
    let each = (bytes() - before) / STREAMS as isize;
    println!("bytes for each stream with idle timeouts: {each}");
    assert!(each <= 210, "{each} bytes");
    drop(all);
    clock.advance_in_one_jump(Duration::ZERO);
    let left = bytes() - before;
    assert!(left < 250_000, "{left} bytes without a stream");
    timer.stop().unwrap();
}

/// Reads that move a byte, and reads that wait with the same wakers as before.
#[test]
fn rule_04_reads_of_a_stream_with_idle_timeouts_allocate_nothing() {
    let _alone = ALONE.lock();
    let (timer, _clock) = manual();
    let policy = IdlePolicy::new().both(ms(100));
    let ready = tokio::io::repeat(7);
    let mut busy = IdleStreams::new(&timer).wrap_with(ready, &policy, |_| None).unwrap();
    let (near, _far) = tokio::io::duplex(8);
    let mut silent = IdleStreams::new(&timer).wrap_with(near, &policy, |_| None).unwrap();
    let wakers: [Waker; 2] = [Arc::new(Idle).into(), Arc::new(Idle).into()];
    let found = fewest_allocations(|| {
        for waker in &wakers {
            assert!(read(&mut busy, waker).is_ready());
            assert!(read(&mut silent, waker).is_pending());
        }
    });
    assert_eq!(found, 0);
    timer.stop().unwrap();
}

fn read(stream: &mut (impl AsyncRead + Unpin), waker: &Waker) -> Poll<std::io::Result<()>> {
    let mut bytes = [0; 8];
    let mut buffer = ReadBuf::new(&mut bytes);
    std::pin::pin!(stream).poll_read(&mut Context::from_waker(waker), &mut buffer)
}

/// A burst of sleeps, and of values in a delay queue.
#[test]
fn rule_04_futures_leave_no_memory_behind() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let waker: Waker = Arc::new(Idle).into();
    let mut after = Vec::new();
    for _ in 0..12 {
        let mut sleeps: Vec<Sleep> = (0..20_000).map(|n| timer.sleep(HOUR + ms(n))).collect();
        assert!(sleeps.iter_mut().all(|sleep| polled(sleep, &waker).is_pending()));
        drop(sleeps);
        clock.advance_in_one_jump(ms(100));
        let mut queue = DelayQueue::new(&timer);
        let keys: Vec<_> = (0..20_000).map(|n| queue.insert(n, HOUR)).collect();
        let full = bytes();
        keys[1..].iter().for_each(|&key| assert!(queue.remove(key).is_some()));
        let left = full - bytes();
        assert!(left > 1_000_000, "19,999 of 20,000 values have left: {left} bytes");
        drop((queue, keys));
        after.push(bytes());
    }
    let (early, late) = (after[3], *after.last().unwrap());
    assert!(late < early + 200_000, "{early} bytes after 4 waves, {late} after 12");
    timer.stop().unwrap();
}
