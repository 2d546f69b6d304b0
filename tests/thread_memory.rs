//! Memory of timers that many threads use: it is proportional to the live timeouts, not to the threads.
//!
//! A counting allocator sees every live byte of this process. No test from another file may disturb it.

use crate::LEAST;
use crate::common::{TICK, blocking_task, into_the_wheel, manual_with, partly_in_the_wheel};
use kit::live_bytes::{ALONE, bytes};
use std::sync::{Barrier, mpsc};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, ManualClock, Timeout};

const HOUR: Duration = Duration::from_secs(3600);
const THREADS: usize = 10_000;

/// A timer with few buckets, because a bucket that was used keeps some memory.
fn manual() -> (HashedWheelTimer, ManualClock) {
    manual_with(HashedWheelTimer::builder().ticks_per_wheel(8))
}

/// Calls `act` on `count` threads, `at_once` of them at a time. Returns after their thread-locals are
/// destroyed, for which a scope alone does not wait.
fn threads(count: usize, at_once: usize, act: impl Fn() + Sync) {
    for _ in 0..count / at_once {
        let all = Barrier::new(at_once);
        let one = || {
            act();
            all.wait();
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(one)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

/// The bytes that `schedule` takes in a new timer.
fn bytes_of(schedule: impl Fn(&HashedWheelTimer)) -> isize {
    let (timer, clock) = manual();
    into_the_wheel(&timer, &clock);
    let before = bytes();
    schedule(&timer);
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.pending_timeouts(), THREADS);
    let taken = bytes() - before;
    timer.stop().unwrap(); // all of it is gone before the next one is measured
    taken
}

fn one(timer: &HashedWheelTimer) {
    timer.new_timeout(|| (), HOUR).unwrap();
}

#[test]
fn rule_04_timeouts_of_many_threads_take_at_most_twice_the_memory_of_one() {
    let _alone = ALONE.lock();
    let of_one = bytes_of(|timer| (0..THREADS).for_each(|_| one(timer)));
    // A thread that is alive has chunks and a queue of its own.
    const OWN: isize = 4096;
    for at_once in [1, 10, 100] {
        let of_many = bytes_of(|timer| threads(THREADS, at_once, || one(timer)));
        println!("{at_once} threads at once: {of_many} bytes; one thread: {of_one}");
        let own = if at_once < 100 { 0 } else { OWN * at_once as isize };
        let twice = of_many <= 2 * of_one + own;
        assert!(twice, "{at_once} at once: {of_many} bytes, and {of_one} of one thread");
    }
}

/// All timeouts of a thread have ended when the next wave of threads begins.
#[test]
fn rule_04_threads_that_come_and_go_do_not_grow_memory() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let mut after = Vec::new();
    for wave in 0..60 {
        threads(200, 20, || {
            let timeouts: Vec<_> =
                (0..50).map(|_| timer.new_timeout(|| (), TICK).unwrap()).collect();
            assert!(timeouts.iter().step_by(2).all(Timeout::cancel));
        });
        clock.advance_in_one_jump(TICK);
        assert_eq!(timer.pending_timeouts(), 0, "wave {wave}");
        after.push(bytes());
    }
    let (early, late) = (after[5], *after.last().unwrap());
    assert!(late < early + 100_000, "{early} bytes after 6 waves, {late} after 60");
    timer.stop().unwrap();
}

/// One thread schedules a million timeouts, and another cancels them. Their slots come back.
#[test]
fn rule_04_timeouts_that_another_thread_cancels_do_not_grow_memory() {
    const BATCH: u64 = 1000;
    let _alone = ALONE.lock();
    for in_wheel in [false, true] {
        let (timer, clock) = manual();
        let mut after = Vec::new();
        let (hand, handed) = mpsc::sync_channel::<Vec<Timeout>>(1);
        let (done, is_done) = mpsc::sync_channel::<()>(1);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for timeouts in handed {
                    assert!(timeouts.iter().all(Timeout::cancel));
                    drop(timeouts);
                    done.send(()).unwrap();
                }
            });
            for _ in 0..500 {
                let far = |_| timer.new_timeout(|| (), HOUR).unwrap();
                let batch = if in_wheel {
                    partly_in_the_wheel(&timer, &clock, BATCH, far)
                } else {
                    (0..BATCH).map(far).collect()
                };
                hand.send(batch).unwrap();
                is_done.recv().unwrap();
                after.push(bytes());
            }
            drop(hand);
        });
        assert_eq!(timer.metrics().cancelled, 500 * BATCH);
        let early = *after[..100].iter().max().unwrap();
        let late = *after[400..].iter().max().unwrap();
        assert!(late < early + 200_000, "{early} bytes at first, {late} at last: {in_wheel}");
        timer.stop().unwrap();
    }
}

/// The bytes at a peak and those left `ticks` later, beside what one timeout and its thread take.
fn peak_and_left(ticks: u32, burst: impl FnOnce(&HashedWheelTimer)) -> (isize, isize) {
    let (timer, clock) = manual();
    one(&timer);
    into_the_wheel(&timer, &clock);
    let before = bytes();
    burst(&timer);
    let peak = bytes() - before;
    (0..ticks).for_each(|_| clock.advance_in_one_jump(TICK));
    clock.advance_in_one_jump(Duration::from_secs(1)); // chunks are released at most once per second
    assert_eq!(timer.pending_timeouts(), 1);
    let left = bytes() - before;
    timer.stop().unwrap();
    (peak, left)
}

/// The thread that stays keeps memory for its own timeouts, not for the other thread's peak.
#[test]
fn rule_04_memory_comes_back_after_the_peak_of_a_thread_that_has_ended() {
    let _alone = ALONE.lock();
    let (peak, left) = peak_and_left(4, |timer| {
        let burst = || (0..100_000).for_each(|_| drop(timer.new_timeout(|| (), TICK).unwrap()));
        std::thread::scope(|scope| scope.spawn(burst).join().unwrap());
    });
    assert!(peak > 100_000 * LEAST && left < 400_000, "{left} of {peak} bytes are left");
}

/// None of the threads schedules again.
#[test]
fn rule_04_memory_comes_back_after_the_peaks_of_many_threads() {
    let _alone = ALONE.lock();
    let (peak, left) = peak_and_left(5, |timer| {
        threads(20, 20, || {
            // Some are due in the tick in which they are filed, and others later.
            let schedule = |delay| drop(timer.new_timeout(|| (), delay).unwrap());
            (0..20_000).for_each(|n| schedule(if n % 2 == 0 { TICK } else { 3 * TICK }));
        });
    });
    assert!(peak > 400_000 * LEAST && left < 2_000_000, "{left} of {peak} bytes are left");
}

/// A thread begins and ends while a task runs on the worker, so the worker learns of its heap afterwards.
#[test]
fn rule_04_memory_comes_back_after_a_burst_within_one_pass() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    let (task, gate) = blocking_task();
    timer.new_timeout(task, TICK).unwrap();
    let before = bytes();
    let (peak, advanced) = std::thread::scope(|scope| {
        let advanced = scope.spawn(|| clock.advance_in_one_jump(TICK));
        gate.wait();
        threads(1, 1, || {
            let burst: Vec<_> = (0..100_000).map(|_| timer.new_timeout(|| (), HOUR)).collect();
            assert!(burst.into_iter().all(|timeout| timeout.unwrap().cancel()));
        });
        let peak = bytes() - before;
        gate.open();
        (peak, advanced.join())
    });
    advanced.unwrap();
    clock.advance_in_one_jump(TICK);
    let left = bytes() - before;
    assert!(peak > 100_000 * LEAST && left < 100_000, "{left} of {peak} bytes are left");
    timer.stop().unwrap();
}

/// Each thread is refused. Those that are alive at one time have a chunk each, until they end.
#[test]
fn rule_04_threads_that_come_and_go_at_a_stopped_timer_leave_no_memory_behind() {
    let _alone = ALONE.lock();
    for schedules_before in [false, true] {
        let (timer, _clock) = manual();
        if schedules_before {
            one(&timer);
        }
        timer.stop().unwrap();
        let refused = || assert!(timer.new_timeout(|| (), HOUR).is_err());
        threads(100, 20, refused);
        let before = bytes();
        threads(2000, 20, refused);
        threads(200, 20, || drop(timer.sleep(HOUR)));
        let left = bytes() - before;
        assert!(left < 20_000, "{left} bytes are left after 2,200 threads");
    }
}

/// What a thread kept for its next burst goes when it ends.
#[test]
fn rule_04_threads_that_have_ended_leave_no_memory_behind() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    one(&timer);
    into_the_wheel(&timer, &clock);
    let before = bytes();
    threads(200, 200, || {
        let burst: Vec<_> = (0..1290).map(|_| timer.new_timeout(|| (), HOUR).unwrap()).collect();
        assert!(burst.iter().all(Timeout::cancel));
    });
    (0..3).for_each(|_| clock.advance_in_one_jump(Duration::from_secs(1)));
    let left = bytes() - before;
    // The entries of the table stay, 8 bytes for each chunk.
    assert!(left < 250_000, "{left} bytes are left of 200 threads");
    assert_eq!(timer.thread_metrics().len(), 1, "the threads have left");
    let metrics = timer.metrics();
    assert_eq!((metrics.scheduled, metrics.cancelled), (200 * 1290 + 2, 200 * 1290));
    timer.stop().unwrap();
}

/// The timer's handle and the thread that scheduled in it are still alive.
#[test]
fn rule_04_a_stopped_timer_keeps_no_memory_of_returned_timeouts() {
    let _alone = ALONE.lock();
    let (timer, _clock) = manual();
    let before = bytes();
    let (hand, handed) = mpsc::channel::<Vec<Timeout>>();
    let (end, may_end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let timer = &timer;
        scope.spawn(move || {
            let schedule = |_| timer.new_timeout(|| (), HOUR).unwrap();
            hand.send((0..100_000).map(schedule).collect()).unwrap();
            let _ = may_end.recv();
        });
        let handles = handed.recv().unwrap();
        let peak = bytes() - before;
        drop(timer.stop().unwrap());
        drop(handles);
        let left = bytes() - before;
        assert!(peak > 4_000_000 && left < 400_000, "{left} of {peak} bytes are left");
        drop(end);
    });
}
