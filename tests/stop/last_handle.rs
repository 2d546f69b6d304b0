//! The drop of the last handle, which cancels and never blocks.

use super::Told;
use crate::common::{Record, blocking_task, eventually, ms};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, RescheduleError};

#[test]
fn rule_09_dropping_the_last_handle_does_not_block_and_cancels() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let record = Record::new();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, Duration::ZERO).unwrap();
    gate.wait();
    let pending = timer.new_timeout(Told(record.clone()), ms(60_000)).unwrap();
    let copy = timer.clone();
    drop(timer);
    assert!(!pending.is_cancelled(), "not the last handle");
    drop(copy); // the worker is blocked by the task: this must return all the same
    assert_eq!(record.len(), 0);
    gate.open();
    eventually("the worker cancels what is pending", || pending.is_cancelled());
    eventually("and tells the task", || record.len() == 1);
    assert_eq!(record.take(), ["cancelled"]);
    assert_eq!(pending.reschedule(ms(1)), Err(RescheduleError::Cancelled));
}

#[test]
fn rule_09_a_task_may_drop_the_last_handle() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let pending = timer.new_timeout(|| (), ms(60_000)).unwrap();
    let handle = timer.clone();
    timer.new_timeout(move || drop(handle), ms(1)).unwrap();
    drop(timer);
    eventually("the worker ends itself", || pending.is_cancelled());
}

#[test]
fn rule_09_dropping_the_last_handle_wakes_a_sleeping_worker() {
    let timer =
        HashedWheelTimer::builder().tick_duration(Duration::from_secs(3600)).build().unwrap();
    let pending = timer.new_timeout(|| (), Duration::MAX).unwrap();
    std::thread::sleep(ms(50));
    drop(timer);
    eventually("the worker ends", || pending.is_cancelled());
}

/// A stop gives up waiting, and then no handle is left to collect the timeouts.
#[test]
fn rule_01_dropping_the_last_handle_after_a_failed_stop_cancels() {
    for collected_late in [false, true] {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        let (blocking, gate) = blocking_task();
        timer.new_timeout(blocking, ms(1)).unwrap();
        let record = Record::new();
        let pending = timer.new_timeout(Told(record.clone()), ms(60_000)).unwrap();
        gate.wait();
        assert!(timer.stop_timeout(ms(1)).is_err());
        if collected_late {
            gate.open();
            eventually("the worker has reported", || timer.is_stopped());
            drop(timer);
            assert_eq!(record.len(), 1, "the thread that drops tells the task");
        } else {
            drop(timer);
            gate.open();
        }
        eventually("it is cancelled", || record.len() == 1);
        assert_eq!(record.take(), ["cancelled"]);
        assert!(pending.is_cancelled());
    }
}
