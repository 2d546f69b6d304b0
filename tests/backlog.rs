//! More timeouts than the worker files in one pass (the drain cap).

use crate::common::{Record, TICK, blocking_task, eventually, manual_with, ms, on};
use crate::on_every_wheel;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::time::Clock;
use wheelwork::timer::WheelKind;

on_every_wheel!(
    rule_03_far_timeouts_are_no_backlog,
    rule_06_the_queue_is_left_alone_until_something_in_it_is_due,
    rule_03_the_cap_does_not_change_the_order,
    rule_03_a_storm_of_cancels_does_not_delay_a_new_timeout,
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
        let advance = scope.spawn(|| clock.advance_in_one_jump(TICK));
        gate.wait();
        fill();
        gate.open();
        advance.join().unwrap();
    });
}

/// Far timeouts that pile up behind a busy worker stay where they are, and delay nothing.
fn rule_03_far_timeouts_are_no_backlog(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    behind_a_busy_worker(&timer, &clock, || {
        (0..249_999).for_each(|_| drop(timer.new_timeout(|| (), HOUR).unwrap()));
        timer.new_timeout(ran.note(()), TICK).unwrap();
        assert_eq!(timer.queue_depth(), 250_000);
    });
    clock.advance_in_one_jump(TICK);
    let metrics = timer.metrics();
    assert_eq!((ran.len(), metrics.passes_with_backlog), (1, 0));
    let left = timer.queue_depth();
    assert!(left > 249_000, "{left} are left alone");
}

/// A timeout that is not due stays in the queue. A cancel there leaves nothing for the worker.
fn rule_06_the_queue_is_left_alone_until_something_in_it_is_due(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let sooner = timer.new_timeout(|| (), 3 * TICK).unwrap();
    let later = timer.new_timeout(|| (), HOUR).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.queue_depth(), 2);
    assert!(sooner.cancel());
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.queue_depth(), 1);
    let next = timer.new_timeout(|| (), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert!(next.is_expired());
    assert_eq!((timer.queue_depth(), timer.pending_timeouts()), (0, 1), "`later` was near `next`");
    drop(later);
}

/// More timeouts of one thread and tick than the cap run in the order of scheduling, with and without a
/// jump of the clock.
fn rule_03_the_cap_does_not_change_the_order(wheel: WheelKind) {
    for jump in [false, true] {
        let (timer, clock) = manual_with(on(wheel));
        clock.advance_in_one_jump(5 * TICK);
        let ran = Record::new();
        behind_a_busy_worker(&timer, &clock, || {
            for n in 0..150_000u32 {
                drop(timer.new_timeout(ran.note(n), Duration::ZERO).unwrap());
            }
            if jump {
                let (clock, before) = (clock.clone(), clock.now());
                std::thread::spawn({
                    let clock = clock.clone();
                    move || clock.advance_in_one_jump(10 * TICK)
                });
                eventually("time has jumped", || clock.now() > before);
            }
        });
        clock.advance_in_one_jump(Duration::ZERO); // one more pass in the tick that they are due in
        clock.advance_in_one_jump(TICK);
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
        eventually("it storms", || timer.metrics().cancelled > 1000);
        timer.new_timeout(ran.note(()), ms(100)).unwrap();
        eventually("it runs", || ran.len() == 1);
        stop.store(true, SeqCst);
        storm.join().unwrap();
    });
    let metrics = timer.metrics();
    assert_eq!(metrics.passes_with_backlog, 0, "{metrics:?}");
    assert_eq!(timer.queue_depth(), 0, "nothing dead is queued");
}
