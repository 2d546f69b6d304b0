//! Tasks that are pending when their timer stops, or when their thread or the last handle goes.

use super::{Fates, Probe, fates, schedule};
use crate::common::{TICK, blocking_task, eventually, into_the_wheel, manual, ms};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::executor::ThreadPool;

with_every_task!(
    rule_01_a_returned_task_that_is_run_is_dropped_once,
    rule_01_a_returned_task_that_is_taken_out_is_dropped_once,
    rule_01_a_returned_task_that_is_dropped_is_dropped_once,
    rule_01_a_task_that_no_stop_collects_is_dropped_once,
    rule_01_a_repeating_task_in_a_stopped_timer_is_dropped_once,
    rule_01_a_task_pending_at_the_drop_of_its_timer_is_dropped_once,
    rule_01_a_task_whose_handle_outlives_the_timer_is_dropped_once,
    rule_01_a_task_whose_thread_has_ended_is_dropped_once,
);

/// A timer with twenty of these tasks pending: ten in the wheel, ten in the queue.
fn with_pending<P: Probe>(fates: &Arc<Fates>) -> HashedWheelTimer {
    let (timer, clock) = manual();
    drop(schedule::<P>(&timer, fates, 10, ms(60_000)));
    into_the_wheel(&timer, &clock);
    drop(schedule::<P>(&timer, fates, 10, ms(60_000)));
    timer
}

fn rule_01_a_returned_task_that_is_run_is_dropped_once<P: Probe>() {
    let fates = fates();
    let left = with_pending::<P>(&fates).stop().unwrap();
    fates.assert(0, 0, 0);
    for (n, unprocessed) in (1..).zip(left) {
        unprocessed.run();
        fates.assert(n, n, 0);
    }
    fates.assert(20, 20, 0);
}

fn rule_01_a_returned_task_that_is_taken_out_is_dropped_once<P: Probe>() {
    let fates = fates();
    let left = with_pending::<P>(&fates).stop().unwrap();
    let (other, clock) = manual();
    for (n, unprocessed) in left.into_iter().enumerate() {
        let task = unprocessed.into_task();
        match n % 4 {
            0 => assert!(task.downcast::<P>().is_ok_and(|probe| probe.is_whole())),
            1 => drop(task),
            2 => drop(other.new_timeout(task, TICK).unwrap()),
            _ => assert!(other.new_timeout(task, TICK).unwrap().cancel()),
        }
    }
    fates.assert(15, 0, 5);
    clock.advance_in_one_jump(TICK);
    fates.assert(20, 5, 5);
}

fn rule_01_a_returned_task_that_is_dropped_is_dropped_once<P: Probe>() {
    let fates = fates();
    let mut left = with_pending::<P>(&fates).stop().unwrap();
    left.truncate(15);
    fates.assert(5, 0, 0);
    drop(left);
    fates.assert(20, 0, 0);
}

/// The stop gives up waiting, and then the last handle is dropped.
fn rule_01_a_task_that_no_stop_collects_is_dropped_once<P: Probe>() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let fates = fates();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, ms(1)).unwrap();
    gate.wait();
    drop(schedule::<P>(&timer, &fates, 20, ms(60_000)));
    assert!(timer.stop_timeout(ms(1)).is_err());
    fates.assert(0, 0, 0);
    drop(timer);
    gate.open();
    eventually("the worker has ended", || fates.dropped() == 20);
    std::thread::sleep(ms(10));
    fates.assert(20, 0, 20);
}

/// The tasks repeat without end, and the timer is stopped meanwhile.
fn rule_01_a_repeating_task_in_a_stopped_timer_is_dropped_once<P: Probe>() {
    for inline in [true, false] {
        let builder = HashedWheelTimer::builder().tick_duration(ms(1));
        let pool = ThreadPool::with_size(1, 1000).unwrap();
        let timer = if inline { builder } else { builder.executor(pool) }.build().unwrap();
        let fates = fates();
        fates.goes_on.store(u32::MAX, SeqCst);
        let pending = schedule::<P>(&timer, &fates, 50, Duration::ZERO);
        eventually("they run", || fates.run.load(SeqCst) > 500);
        let left = timer.stop().unwrap();
        drop((left, pending, timer));
        eventually("all have ended", || fates.dropped() == 50);
        std::thread::sleep(ms(10));
        assert_eq!(fates.dropped(), 50);
    }
}

fn rule_01_a_task_pending_at_the_drop_of_its_timer_is_dropped_once<P: Probe>() {
    let fates = fates();
    drop(with_pending::<P>(&fates));
    eventually("the worker has ended", || fates.dropped() == 20);
    std::thread::sleep(ms(10));
    fates.assert(20, 0, 20);
}

fn rule_01_a_task_whose_handle_outlives_the_timer_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = [(); 10].map(|()| timer.new_timeout(P::of(&fates), TICK).unwrap());
    drop((timer, clock));
    eventually("the worker has ended", || fates.dropped() == 10);
    assert!(timeouts.iter().all(|timeout| timeout.is_cancelled() && !timeout.cancel()));
    drop(timeouts);
    fates.assert(10, 0, 10);
}

/// The thread ends first. Then each of its timeouts ends in another way.
fn rule_01_a_task_whose_thread_has_ended_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = std::thread::scope(|scope| {
        let schedule = || {
            let delays = [TICK, TICK, 9 * TICK, 9 * TICK];
            delays.map(|delay| timer.new_timeout(P::of(&fates), delay).unwrap())
        };
        scope.spawn(schedule).join().unwrap()
    });
    fates.assert(0, 0, 0);
    assert!(timeouts[0].cancel());
    fates.assert(1, 0, 1);
    clock.advance_in_one_jump(TICK);
    fates.assert(2, 1, 1);
    assert!(timeouts[2].cancel());
    fates.assert(3, 1, 2);
    drop(timer.stop().unwrap());
    fates.assert(4, 1, 2);
}
