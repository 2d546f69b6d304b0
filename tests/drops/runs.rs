//! Tasks that run, once or again and again.

use super::{Probe, closure, fates, schedule};
use crate::common;
use crate::common::{TICK, assert_conserved, eventually, manual, manual_with, ms, one_look};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wheelwork::executor::ThreadPool;
use wheelwork::{HashedWheelTimer, Period};

with_every_task!(
    rule_01_a_task_that_runs_is_dropped_once,
    rule_01_a_task_whose_run_panics_is_dropped_once,
    rule_01_a_task_that_runs_on_an_executor_is_dropped_once,
    rule_01_a_repeating_task_that_ends_is_dropped_once,
    rule_01_a_repeating_task_on_an_executor_is_dropped_once,
    rule_01_a_periodic_task_is_dropped_once,
    rule_01_a_task_whose_drop_panics_is_dropped_once,
    rule_01_a_rescheduled_task_is_dropped_once,
);

fn rule_01_a_task_that_runs_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = schedule::<P>(&timer, &fates, 100, TICK);
    (0..100).for_each(|_| drop(timer.new_timeout(closure::<P>(&fates), TICK).unwrap()));
    fates.assert(0, 0, 0);
    clock.advance_in_one_jump(TICK);
    fates.assert(200, 200, 0);
    drop((timeouts, timer));
    fates.assert(200, 200, 0);
}

fn rule_01_a_task_whose_run_panics_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    fates.panics.store(true, SeqCst);
    drop(schedule::<P>(&timer, &fates, 10, TICK));
    clock.advance_in_one_jump(TICK);
    fates.assert(10, 10, 0);
    assert_eq!(timer.metrics().panicked, 10);
    assert_conserved(&timer);
}

fn rule_01_a_task_that_runs_on_an_executor_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(common::run_here));
    let fates = fates();
    drop(schedule::<P>(&timer, &fates, 100, TICK));
    clock.advance_in_one_jump(TICK);
    fates.assert(100, 100, 0);
}

fn rule_01_a_repeating_task_that_ends_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    fates.goes_on.store(3, SeqCst);
    timer.new_timeout(P::of(&fates), TICK).unwrap();
    (0..10).for_each(|_| clock.advance_in_one_jump(TICK));
    fates.assert(1, 4, 0);
    fates.goes_on.store(3, SeqCst);
    timer.new_timeout(P::of(&fates), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    drop(timer.stop().unwrap());
    fates.assert(2, 5, 0);
}

fn rule_01_a_repeating_task_on_an_executor_is_dropped_once<P: Probe>() {
    let pool = ThreadPool::with_size(2, 1000).unwrap();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(pool);
    let timer = builder.build().unwrap();
    let fates = fates();
    fates.goes_on.store(200, SeqCst);
    drop(schedule::<P>(&timer, &fates, 20, ms(1)));
    eventually("all have ended", || fates.dropped() == 20);
    fates.assert(20, 220, 0);
    fates.goes_on.store(u32::MAX, SeqCst);
    let timeouts = schedule::<P>(&timer, &fates, 20, ms(1));
    std::thread::sleep(ms(20));
    // A cancel during the first run is answered with false, and yet the timeout does not go on.
    timeouts.iter().for_each(|timeout| _ = timeout.cancel());
    eventually("all have ended", || fates.dropped() == 40);
    timer.stop().unwrap();
    assert_eq!(fates.dropped(), 40);
    assert_conserved(&timer);
}

fn rule_01_a_periodic_task_is_dropped_once<P: Probe>() {
    for inline in [true, false] {
        let builder = HashedWheelTimer::builder();
        let builder = if inline { builder } else { builder.executor(common::run_here) };
        let (timer, clock) = manual_with(builder);
        let fates = fates();
        let series = [(); 4].map(|()| {
            let probe = P::of(&fates);
            let task = move || _ = probe.fates().run.fetch_add(1, SeqCst);
            timer.new_periodic(task, Period::fixed_rate(TICK)).unwrap()
        });
        clock.advance_in_one_jump(5 * TICK);
        fates.assert(0, 20, 0);
        assert!(series[0].cancel());
        assert_eq!(fates.dropped(), 1);
        let refused = timer.new_periodic(
            {
                let probe = P::of(&fates);
                move || assert!(probe.is_whole())
            },
            Period::fixed_rate(Duration::ZERO),
        );
        drop(refused.expect_err("a period of zero"));
        assert_eq!(fates.dropped(), 2);
        drop(timer.stop().unwrap());
        assert_eq!(fates.dropped(), 5);
    }
}

fn rule_01_a_task_whose_drop_panics_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    fates.drop_panics.store(true, SeqCst);
    let timeouts = [(); 4].map(|()| timer.new_timeout(P::of(&fates), TICK).unwrap());
    assert!(timeouts[0].cancel());
    fates.assert(1, 0, 1);
    clock.advance_in_one_jump(TICK);
    fates.assert(4, 3, 1);
    assert_eq!(timer.metrics().panicked, 4);
    assert_conserved(&timer);
    timer.new_timeout(P::of(&fates), TICK).unwrap();
    drop(timer);
    eventually("the worker has ended", || fates.dropped() == 5);
    fates.drop_panics.store(false, SeqCst);
}

fn rule_01_a_rescheduled_task_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = schedule::<P>(&timer, &fates, 100, 5 * TICK);
    one_look(&timer, &clock);
    timeouts[..50].iter().for_each(|timeout| timeout.reschedule(2 * TICK).unwrap());
    timeouts[50..].iter().for_each(|timeout| timeout.reschedule(9 * TICK).unwrap());
    timeouts[..10].iter().for_each(|timeout| timeout.reschedule(20 * TICK).unwrap());
    clock.advance_in_one_jump(2 * TICK);
    fates.assert(40, 40, 0);
    (0..30).for_each(|_| clock.advance_in_one_jump(TICK));
    fates.assert(100, 100, 0);
}
