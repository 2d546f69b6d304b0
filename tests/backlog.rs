//! More timeouts in the queue than the worker takes in one pass (the drain cap).

mod common;

use common::{Record, TICK, blocking_task, eventually, manual_with, ms, on};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use wheelwork::{Clock, HashedWheelTimer, WheelKind};

on_every_wheel!(
    rule_03_a_backlog_is_taken_in_several_passes_before_the_worker_sleeps,
    rule_06_the_queue_is_left_alone_until_something_in_it_is_due,
    rule_03_cancelled_timeouts_do_not_count_towards_the_cap,
    rule_03_the_cap_does_not_change_the_order,
    rule_03_a_storm_of_cancels_does_not_delay_a_new_timeout,
    rule_03_a_burst_is_in_the_wheel_when_it_is_due,
);

const HOUR: Duration = Duration::from_secs(3600);

/// Holds the worker in a task while `fill` runs, so that the queue fills up behind it.
fn behind_a_busy_worker(
    timer: &HashedWheelTimer,
    clock: &wheelwork::ManualClock,
    fill: impl FnOnce(),
) {
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, TICK).unwrap();
    std::thread::scope(|scope| {
        let advance = scope.spawn(|| clock.advance(TICK));
        gate.wait();
        fill();
        gate.open();
        advance.join().unwrap();
    });
}

fn rule_03_a_backlog_is_taken_in_several_passes_before_the_worker_sleeps(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    behind_a_busy_worker(&timer, &clock, || {
        timer.new_timeout(|| (), TICK).unwrap(); // or nothing would have to move
        (0..249_999).for_each(|_| drop(timer.new_timeout(|| (), HOUR).unwrap()));
        assert_eq!(timer.metrics().queue_depth, 250_000);
    });
    clock.advance(TICK);
    let metrics = timer.metrics();
    assert_eq!((metrics.queue_depth, metrics.passes_with_backlog), (0, 2));
}

/// A timeout that is not due stays in the queue. A cancel there leaves nothing for the worker.
fn rule_06_the_queue_is_left_alone_until_something_in_it_is_due(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let sooner = timer.new_timeout(|| (), 3 * TICK).unwrap();
    let later = timer.new_timeout(|| (), HOUR).unwrap();
    clock.advance(TICK);
    assert_eq!(timer.metrics().queue_depth, 2);
    assert!(sooner.cancel());
    clock.advance(TICK);
    assert_eq!(timer.metrics().queue_depth, 1);
    let next = timer.new_timeout(|| (), TICK).unwrap();
    clock.advance(TICK);
    assert!(next.is_expired());
    assert_eq!((timer.metrics().queue_depth, timer.pending_timeouts()), (0, 1));
    drop(later);
}

/// 90,000 live timeouts among 500,000 cancelled ones fit into one pass.
fn rule_03_cancelled_timeouts_do_not_count_towards_the_cap(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    behind_a_busy_worker(&timer, &clock, || {
        let all: Vec<_> = (0..590_000).map(|_| timer.new_timeout(|| (), HOUR).unwrap()).collect();
        let cancelled = all.iter().enumerate().filter(|(n, _)| n % 59 >= 9);
        cancelled.for_each(|(_, timeout)| assert!(timeout.cancel()));
        timer.new_timeout(|| (), TICK).unwrap();
        assert_eq!(timer.metrics().queue_depth, 90_001);
    });
    clock.advance(TICK);
    let metrics = timer.metrics();
    assert_eq!((metrics.queue_depth, metrics.passes_with_backlog), (0, 0));
}

/// More timeouts of one thread and tick than the cap run in the order of scheduling, with and without a
/// jump of the clock.
fn rule_03_the_cap_does_not_change_the_order(wheel: WheelKind) {
    for jump in [false, true] {
        let (timer, clock) = manual_with(on(wheel));
        clock.advance(5 * TICK);
        let ran = Record::new();
        behind_a_busy_worker(&timer, &clock, || {
            for n in 0..150_000u32 {
                drop(timer.new_timeout(ran.note(n), Duration::ZERO).unwrap());
            }
            if jump {
                let (clock, before) = (clock.clone(), clock.now());
                std::thread::spawn({
                    let clock = clock.clone();
                    move || clock.advance(10 * TICK)
                });
                eventually("time has jumped", || clock.now() > before);
            }
        });
        clock.advance(Duration::ZERO); // one more pass in the tick that they are due in
        clock.advance(TICK);
        let ran = ran.take();
        assert_eq!(ran.len(), 150_000);
        assert!(ran.is_sorted(), "{} came first", ran[0]);
    }
}

/// Netty's worst case: one thread schedules and cancels at full speed, another needs a timeout.
fn rule_03_a_storm_of_cancels_does_not_delay_a_new_timeout(wheel: WheelKind) {
    let timer = on(wheel).tick_duration(ms(100)).build().unwrap();
    let stop = AtomicBool::new(false);
    let ran = Record::new();
    std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            while !stop.load(SeqCst) {
                timer.new_timeout(|| (), HOUR).unwrap().cancel();
            }
        });
        std::thread::sleep(ms(300));
        timer.new_timeout(ran.note(()), ms(100)).unwrap();
        eventually("it runs", || ran.len() == 1);
        stop.store(true, SeqCst);
        storm.join().unwrap();
    });
    let metrics = timer.metrics();
    assert!(metrics.cancelled > 1000 && metrics.passes_with_backlog == 0, "{metrics:?}");
    assert_eq!(metrics.queue_depth, 0, "nothing dead is queued");
}

/// The worker files a burst before it is due, so that it runs without a delay.
fn rule_03_a_burst_is_in_the_wheel_when_it_is_due(wheel: WheelKind) {
    const BURST: u64 = 40_000; // it takes the worker more than a tick to file them
    let (timer, clock) = manual_with(on(wheel).tick_duration(ms(1)));
    (0..BURST).for_each(|_| drop(timer.new_timeout(|| (), ms(100)).unwrap()));
    clock.advance(ms(50));
    assert_eq!(timer.metrics().queue_depth, BURST, "it is left alone until shortly before");
    clock.advance(ms(49));
    let metrics = timer.metrics();
    assert_eq!((metrics.queue_depth, metrics.expired), (0, 0));
    clock.advance(ms(1));
    assert_eq!(timer.metrics().expired, BURST);
}
