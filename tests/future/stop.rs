//! The futures of a timer that stops, and `stop_async`.

use crate::common::{Gate, Mutex, TICK, blocking_task, eventually, manual, manual_with, ms};
use crate::wakers::{Alarm, Hooks, block_on};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, StopError, Unprocessed};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn rule_09_a_stop_wakes_every_sleep_and_returns_none_of_them() {
    let (timer, clock) = manual();
    let alarms: Vec<Alarm> = (0..5).map(|_| Alarm::new()).collect();
    let mut sleeps: Vec<_> = (1..6).map(|n| timer.sleep(n * SECOND)).collect();
    for (alarm, sleep) in alarms.iter().zip(&mut sleeps) {
        assert!(alarm.poll(sleep).is_pending());
        timer.new_timeout(|| (), SECOND / 2).unwrap();
    }
    clock.advance_in_one_jump(ms(1)); // the timeouts are in the wheel or in the queue
    let returned = timer.stop().unwrap();
    assert_eq!(returned.len(), 5);
    for (alarm, sleep) in alarms.iter().zip(&mut sleeps) {
        assert_eq!((alarm.wakes(), alarm.clones(), sleep.was_stopped()), (1, 0, false));
        assert_eq!(alarm.poll(sleep), Poll::Ready(()));
        assert!(sleep.was_stopped() && !sleep.is_elapsed());
    }
    clock.advance_in_one_jump(10 * SECOND);
    assert!(sleeps[0].was_stopped() && sleeps[0].is_elapsed(), "it did not end by its deadline");
    let metrics = timer.metrics();
    assert_eq!((metrics.returned, metrics.cancelled, metrics.pending), (5, 5, 0));
}

#[test]
fn a_sleep_that_has_elapsed_before_the_stop_was_not_stopped() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    clock.advance_in_one_jump(SECOND);
    timer.stop().unwrap();
    assert_eq!((alarm.poll(&mut sleep), sleep.was_stopped()), (Poll::Ready(()), false));
}

#[test]
fn a_sleep_in_a_stopped_timer_is_ready_at_once() {
    let (timer, _clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    timer.stop().unwrap();
    for _ in 0..3 {
        assert_eq!((alarm.poll(&mut sleep), sleep.was_stopped()), (Poll::Ready(()), true));
        sleep.reset_after(SECOND);
        assert!(!sleep.was_stopped());
    }
    assert_eq!((alarm.wakes(), alarm.clones()), (0, 0));
}

#[test]
fn a_stop_with_a_limit_wakes_too() {
    let (timer, _clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    assert!(timer.stop_timeout(ms(60_000)).unwrap().is_empty());
    eventually("the sleep is woken", || alarm.wakes() == 1);
    assert!(alarm.poll(&mut sleep).is_ready());
}

/// A stop does not wait for what a waker does.
#[test]
fn rule_09_a_stop_with_a_limit_wakes_nobody_on_its_own_thread() {
    for _ in 0..20 {
        let (timer, _clock) = manual();
        let (woken_by, woken) = std::sync::mpsc::channel();
        let on_wake = Box::new(move || _ = woken_by.send(std::thread::current().id()));
        let waker = Hooks { on_wake, ..Hooks::default() }.waker();
        let mut sleep = timer.sleep(SECOND);
        let mut context = std::task::Context::from_waker(&waker);
        assert!(std::pin::pin!(&mut sleep).poll(&mut context).is_pending());
        assert!(timer.stop_timeout(ms(60_000)).unwrap().is_empty());
        assert_ne!(woken.recv().unwrap(), std::thread::current().id());
    }
}

/// The timer is closed, and its worker is still busy.
#[test]
fn rule_09_a_stop_that_gave_up_resolves_every_sleep() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(5 * SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, SECOND).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| clock.advance_in_one_jump(SECOND));
        gate.wait();
        let stopped = timer.stop_timeout(Duration::ZERO);
        assert!(matches!(stopped, Err(StopError::StillRunning { .. })));
        assert!(alarm.poll(&mut sleep).is_ready() && sleep.was_stopped(), "it is closed");
        gate.open();
    });
    assert!(timer.stop().unwrap().is_empty());
}

#[test]
fn a_waker_may_stop_waiting_for_others_when_the_timer_stops() {
    let (timer, _clock) = manual();
    let (alarm, mut other) = (Alarm::new(), timer.sleep(2 * SECOND));
    assert!(alarm.poll(&mut other).is_pending());
    let other = Mutex::new(Some(other));
    let on_wake = Box::new(move || drop(other.lock().unwrap().take()));
    let waker = Hooks { on_wake, ..Hooks::default() }.waker();
    let mut sleep = timer.sleep(SECOND);
    let poll = std::pin::pin!(&mut sleep).poll(&mut std::task::Context::from_waker(&waker));
    assert!(poll.is_pending());
    assert!(timer.stop().unwrap().is_empty());
    assert_eq!(alarm.clones(), 0);
}

#[test]
fn stop_async_returns_the_unprocessed_timeouts() {
    let (timer, _clock) = manual();
    let timeouts = [2, 1].map(|n| timer.new_timeout(|| (), n * SECOND).unwrap());
    let mut returned = block_on(timer.stop_async()).unwrap();
    assert!(timer.is_stopped());
    returned.sort_by_cached_key(Unprocessed::deadline);
    let deadlines = returned.iter().map(Unprocessed::deadline);
    assert!(deadlines.eq([1, 2].map(|n| timer.started_at() + n * SECOND)));
    assert!(timeouts.iter().all(|timeout| !timeout.is_cancelled()));
    assert!(timer.new_timeout(|| (), SECOND).is_err());
    assert!(block_on(timer.stop_async()).unwrap().is_empty(), "the first has them");
    assert!(timer.stop().unwrap().is_empty());
}

#[test]
fn stop_async_begins_with_its_first_poll() {
    let (timer, _clock) = manual();
    let stop = timer.stop_async();
    timer.new_timeout(|| (), SECOND).expect("it is not stopped");
    assert_eq!(block_on(stop).unwrap().len(), 1);
}

/// A timer whose worker is busy until the gate is opened.
fn busy() -> (HashedWheelTimer, Gate) {
    let builder = HashedWheelTimer::builder().tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, Duration::ZERO).unwrap();
    gate.wait();
    (timer, gate)
}

#[test]
fn stop_async_waits_for_a_running_task_and_wakes_the_latest_waker_only() {
    let (timer, gate) = busy();
    let alarms = [(); 2].map(|()| Alarm::new());
    let mut stop = timer.stop_async();
    for _ in 0..2 {
        assert!(alarms[0].poll(&mut stop).is_pending());
    }
    assert!(alarms[1].poll(&mut stop).is_pending());
    assert_eq!(alarms.each_ref().map(Alarm::clones), [0, 1]);
    gate.open();
    eventually("it is woken", || alarms[1].wakes() == 1);
    assert!(alarms[1].poll(&mut stop).is_ready());
    assert_eq!(alarms[0].wakes(), 0);
}

/// The same for a task that waits for the end while another stop ends the timer.
#[test]
fn a_stop_with_a_limit_wakes_no_other_stop_on_its_own_thread() {
    for _ in 0..20 {
        let (timer, _clock) = manual();
        let (woken_by, woken) = std::sync::mpsc::channel();
        let on_wake = Box::new(move || _ = woken_by.send(std::thread::current().id()));
        let waker = Hooks { on_wake, ..Hooks::default() }.waker();
        let mut stop = timer.stop_async();
        let mut context = std::task::Context::from_waker(&waker);
        if std::pin::pin!(&mut stop).poll(&mut context).is_pending() {
            assert!(timer.stop_timeout(ms(60_000)).unwrap().is_empty());
            assert_ne!(woken.recv().unwrap(), std::thread::current().id());
        }
    }
}

#[test]
fn a_stop_async_that_is_dropped_drops_its_waker_and_leaves_the_timeouts_to_the_next() {
    let (timer, gate) = busy();
    timer.new_timeout(|| (), 3_600 * SECOND).unwrap();
    let alarms = [(); 2].map(|()| Alarm::new());
    let mut stops = [(); 2].map(|()| timer.stop_async());
    for (alarm, stop) in alarms.iter().zip(&mut stops) {
        assert!(alarm.poll(stop).is_pending());
    }
    let [first, mut second] = stops;
    drop(first);
    assert_eq!(alarms.each_ref().map(Alarm::clones), [0, 1]);
    gate.open();
    eventually("the other is woken", || alarms[1].wakes() == 1);
    let Poll::Ready(Ok(returned)) = alarms[1].poll(&mut second) else { panic!("it has ended") };
    assert_eq!((returned.len(), alarms[0].wakes()), (1, 0));
}

#[test]
fn stop_async_may_be_polled_on_the_worker() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(TICK));
    let alarm = Arc::new(Alarm::new());
    let stop = Arc::new(Mutex::new(timer.stop_async()));
    let (own, waker) = (stop.clone(), alarm.clone());
    let task = move || assert!(waker.poll(&mut *own.lock().unwrap()).is_pending());
    timer.new_timeout(task, TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    eventually("it is woken", || alarm.wakes() == 1);
    assert!(alarm.poll(&mut *stop.lock().unwrap()).is_ready());
}

#[test]
fn rule_05_a_waker_of_stop_async_that_panics_hurts_nobody() {
    let (timer, gate) = busy();
    let bad = || panic!("a bad waker");
    let waker = Hooks { on_wake: Box::new(bad), ..Hooks::default() }.waker();
    let (alarm, mut stops) = (Alarm::new(), [(); 2].map(|()| timer.stop_async()));
    let [first, second] = &mut stops;
    let poll = pin!(first).poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending() && alarm.poll(second).is_pending());
    gate.open();
    eventually("the other is woken", || alarm.wakes() == 1);
    assert!(timer.stop().unwrap().is_empty());
}

/// The last poll drops a clone of the waker.
#[test]
fn rule_01_a_waker_that_panics_when_dropped_takes_no_timeouts_with_it() {
    let (timer, gate) = busy();
    timer.new_timeout(|| (), 3_600 * SECOND).unwrap();
    let (alarm, mut stop) = (Alarm::new(), timer.stop_async());
    assert!(alarm.poll(&mut stop).is_pending());
    gate.open();
    eventually("it has ended", || alarm.wakes() == 1);
    let bad = || assert!(std::thread::panicking(), "a bad drop");
    let waker = Hooks { on_drop: Box::new(bad), ..Hooks::default() }.waker();
    let last = move || {
        let _ = pin!(stop).poll(&mut Context::from_waker(&waker));
    };
    assert!(catch_unwind(AssertUnwindSafe(last)).is_err());
    assert_eq!(timer.stop().unwrap().len(), 1);
}
