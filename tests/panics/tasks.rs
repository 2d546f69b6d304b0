//! Panics of tasks: in their runs, callbacks and drops.

use super::{BadCancel, Bomb, assert_unhurt, with_a_bomb};
use crate::common::{Record, TICK, assert_conserved, eventually, manual, manual_with};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use wheelwork::executor::Job;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, Period, RefusalReason, Timeout};

fn bad_task() {
    panic!("a bad task");
}

#[test]
fn rule_05_a_panic_in_a_run_is_contained() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let bad = timer.new_timeout(|| panic!("a bad task"), TICK).unwrap();
    let series = timer.new_periodic(bad_task, Period::fixed_rate(TICK)).unwrap();
    timer.new_timeout(ran.note("the same tick"), TICK).unwrap();
    clock.advance_in_one_jump(TICK * 3);
    assert_eq!(ran.take(), ["the same tick"]);
    assert!(bad.is_expired() && series.is_expired(), "and a series ends");
    assert_eq!((timer.metrics().panicked, timer.metrics().expired), (2, 3));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_a_cancel_callback_is_contained() {
    let (timer, clock) = manual();
    let told = Record::new();
    let timeout = timer.new_timeout(BadCancel(told.clone()), TICK).unwrap();
    assert!(timeout.cancel() && timeout.is_cancelled());
    assert_eq!((told.take(), timer.metrics().panicked), (vec!["told"], 1));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_panics_in_cancel_callbacks_after_the_last_handle_are_contained() {
    let (timer, _clock) = manual();
    let told = Record::new();
    let pending = [1, 2, 3].map(|n| timer.new_timeout(BadCancel(told.clone()), TICK * n).unwrap());
    drop(timer);
    eventually("all are told", || told.len() == 3);
    assert!(pending.iter().all(Timeout::is_cancelled));
}

#[test]
fn rule_05_a_panic_in_the_drop_of_captures_after_a_run_is_contained() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let (record, bomb) = (ran.clone(), Bomb::armed());
    let task = move || {
        let _bomb = &bomb;
        record.push("ran");
    };
    timer.new_timeout(task, TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!((ran.take(), timer.metrics().panicked), (vec!["ran"], 1));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_cancelled_task_is_contained() {
    let (timer, clock) = manual();
    assert!(timer.new_timeout(with_a_bomb(), TICK).unwrap().cancel());
    drop(timer.new_timeout(with_a_bomb(), TICK).unwrap().cancel_on_drop());
    assert_eq!((timer.metrics().panicked, timer.metrics().cancelled), (2, 2));
    assert_unhurt(&timer, &clock);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_an_abandoned_task_is_contained() {
    let dropped = AtomicUsize::new(0);
    let executor = move |job: Job| match dropped.fetch_add(1, SeqCst) {
        0 => {
            drop(job);
            Ok(())
        }
        _ => Err(job),
    };
    let (timer, clock) = manual_with(HashedWheelTimer::builder().executor(executor));
    let timeout = timer.new_timeout(with_a_bomb(), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert!(timeout.is_cancelled());
    assert_eq!((timer.metrics().panicked, timer.metrics().abandoned), (1, 1));
    assert_unhurt(&timer, &clock);
}

/// The panic reaches the caller, who owns the task by then.
#[test]
fn rule_05_a_panic_in_the_drop_of_a_task_given_back_is_the_callers() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(2));
    let pending = [(); 2].map(|()| timer.new_timeout(|| (), TICK).unwrap());
    let refused = timer.new_timeout(with_a_bomb(), TICK).unwrap_err();
    assert!(matches!(refused.reason(), RefusalReason::LimitReached { .. }));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(refused))).is_err());
    assert!(pending.iter().all(Timeout::cancel));
    timer.new_timeout(with_a_bomb(), TICK).unwrap();
    let mut returned = timer.stop().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(returned.pop()))).is_err());
    assert_eq!((timer.pending_timeouts(), timer.metrics().returned), (0, 1));
    assert_conserved(&timer);
    clock.advance_in_one_jump(TICK);
}

#[test]
fn rule_05_a_panic_in_the_drop_of_a_panic_payload_is_contained() {
    let (timer, clock) = manual();
    timer.new_timeout(|| panic_any(Bomb::armed()), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.metrics().panicked, 1);
    assert_unhurt(&timer, &clock);
}

/// The task asked for another run, but its timeout was cancelled during this one.
#[test]
fn rule_05_a_panic_in_the_drop_of_a_task_cancelled_during_its_run_is_contained() {
    struct Lasting;
    impl TimerTask for Lasting {
        fn run(self, run: &Run<'_>) -> Next<Self> {
            assert!(!run.timeout().cancel(), "it runs already");
            Next::after(self, TICK)
        }
    }
    impl Drop for Lasting {
        fn drop(&mut self) {
            panic!("a bad drop");
        }
    }
    let (timer, clock) = manual();
    let timeout = timer.new_timeout(Lasting, TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert!(timeout.is_cancelled());
    assert_eq!(timer.metrics().panicked, 1);
    assert_unhurt(&timer, &clock);
}
