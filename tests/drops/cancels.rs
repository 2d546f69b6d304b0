//! Tasks that are cancelled.

use super::{Probe, fates, schedule};
use crate::common::{TICK, assert_conserved, eventually, manual, ms, one_look};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::time::Duration;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, Timeout};

with_every_task!(
    rule_01_a_repeating_task_that_is_cancelled_is_dropped_once,
    rule_01_a_task_cancelled_in_the_queue_is_dropped_once,
    rule_01_a_task_cancelled_in_the_wheel_is_dropped_once,
    rule_01_a_task_cancelled_during_its_run_is_dropped_once,
    rule_01_a_task_cancelled_by_a_guard_is_dropped_once,
    rule_01_a_task_cancelled_by_two_threads_is_dropped_once,
);

fn rule_01_a_repeating_task_that_is_cancelled_is_dropped_once<P: Probe>() {
    for in_wheel in [false, true] {
        let (timer, clock) = manual();
        let fates = fates();
        fates.goes_on.store(1000, SeqCst);
        let timeout = timer.new_timeout(P::of(&fates), TICK).unwrap();
        (0..5).for_each(|_| clock.advance_in_one_jump(TICK));
        fates.assert(0, 5, 0);
        if in_wheel {
            timeout.reschedule(ms(60_000)).unwrap();
            clock.advance_in_one_jump(TICK);
        }
        assert!(timeout.cancel() && !timeout.cancel());
        fates.assert(1, 5, 1);
        assert_conserved(&timer);
    }
}

fn rule_01_a_task_cancelled_in_the_queue_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    for n in 1..=200 {
        assert!(timer.new_timeout(P::of(&fates), TICK).unwrap().cancel());
        fates.assert(n, 0, n);
    }
    clock.advance_in_one_jump(TICK);
    drop(timer);
    fates.assert(200, 0, 200);
}

fn rule_01_a_task_cancelled_in_the_wheel_is_dropped_once<P: Probe>() {
    let (timer, clock) = manual();
    let fates = fates();
    let timeouts = schedule::<P>(&timer, &fates, 200, 5 * TICK);
    one_look(&timer, &clock);
    assert!(timeouts.iter().all(Timeout::cancel));
    fates.assert(200, 0, 200);
    clock.advance_in_one_jump(10 * TICK);
    fates.assert(200, 0, 200);
}

/// A task whose run waits until its timeout was cancelled.
struct Waits<P>(P, mpsc::Sender<()>, mpsc::Receiver<()>);

impl<P: Probe> TimerTask for Waits<P> {
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.fates().run.fetch_add(1, SeqCst);
        self.1.send(()).unwrap();
        self.2.recv().unwrap();
        assert!(run.is_cancelled() && self.0.is_whole());
        Next::after(self, Duration::ZERO)
    }
}

fn rule_01_a_task_cancelled_during_its_run_is_dropped_once<P: Probe>() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let fates = fates();
    let (runs, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let task = Waits(P::of(&fates), runs, may_go_on);
    let timeout = timer.new_timeout(task, ms(1)).unwrap();
    has_begun.recv().unwrap();
    assert!(!timeout.cancel(), "it runs");
    fates.assert(0, 1, 0);
    go_on.send(()).unwrap();
    eventually("its run ends", || fates.dropped() == 1);
    timer.stop().unwrap();
    fates.assert(1, 1, 0);
    assert_conserved(&timer);
}

fn rule_01_a_task_cancelled_by_a_guard_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual();
    let fates = fates();
    drop(timer.new_timeout(P::of(&fates), TICK).unwrap().cancel_on_drop());
    fates.assert(1, 0, 1);
}

fn rule_01_a_task_cancelled_by_two_threads_is_dropped_once<P: Probe>() {
    let (timer, _clock) = manual();
    let fates = fates();
    let timeouts = schedule::<P>(&timer, &fates, 500, TICK);
    // Two threads cancel each of them at once.
    let won = std::thread::scope(|scope| {
        let cancels = || timeouts.iter().filter(|timeout| timeout.cancel()).count();
        let (other, here) = (scope.spawn(cancels), cancels());
        other.join().unwrap() + here
    });
    assert_eq!(won, 500);
    fates.assert(500, 0, 500);
}
