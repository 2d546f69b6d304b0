//! Calls of a thread that is ending, from the destructors of its thread-locals.

use super::HOUR;
use crate::common::{Record, TICK, assert_conserved, eventually, manual};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use wheelwork::{CancelOnDrop, HashedWheelTimer, RefusalReason, Timeout};

/// Calls a function when its thread drops it.
struct AtTheEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|act| act());
    }
}

thread_local! {
    static AT_THE_END: RefCell<Vec<AtTheEnd>> = const { RefCell::new(Vec::new()) };
}

/// Ends a thread that has scheduled in the timer. A destructor of its thread-locals calls `act`, before
/// or after the destructor of the timer's own.
fn at_the_end_of_a_thread(
    timer: &HashedWheelTimer,
    register_first: bool,
    act: impl FnOnce() + Send + 'static,
) {
    let register = move || {
        AT_THE_END.with_borrow_mut(|acts| acts.push(AtTheEnd(Some(Box::new(act)))));
    };
    let schedule = {
        let timer = timer.clone();
        move || drop(timer.new_timeout(|| (), Duration::MAX).unwrap())
    };
    let thread = std::thread::spawn(move || {
        if register_first {
            register();
            schedule();
        } else {
            schedule();
            register();
        }
    });
    thread.join().unwrap();
}

#[test]
fn rule_01_a_thread_can_schedule_while_its_thread_locals_are_destroyed() {
    for register_first in [false, true] {
        let (timer, clock) = manual();
        let (ran, kept) = (Record::new(), Record::new());
        let end = {
            let (timer, ran, kept) = (timer.clone(), ran.clone(), kept.clone());
            move || {
                for n in 0..200 {
                    drop(timer.new_timeout(ran.note(n), TICK).unwrap());
                    assert!(timer.new_timeout(|| (), TICK).unwrap().cancel());
                }
                kept.push(timer.new_timeout(ran.note(1000), HOUR).unwrap());
            }
        };
        at_the_end_of_a_thread(&timer, register_first, end);
        clock.advance_in_one_jump(TICK);
        let mut seen = ran.take();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..200));
        let kept: Timeout = kept.take().remove(0);
        kept.reschedule(TICK).unwrap();
        clock.advance_in_one_jump(TICK);
        assert_eq!(ran.take(), [1000]);
        assert_eq!(timer.pending_timeouts(), 1);
        assert_conserved(&timer);
    }
}

#[test]
fn rule_01_handles_work_while_thread_locals_are_destroyed() {
    for register_first in [false, true] {
        let (timer, clock) = manual();
        let ran = Record::new();
        let [moved, cancelled, dropped] =
            [1, 2, 3].map(|n| timer.new_timeout(ran.note(n), HOUR).unwrap());
        let guard: CancelOnDrop = timer.new_timeout(ran.note(4), HOUR).unwrap().cancel_on_drop();
        let end = move || {
            moved.reschedule(TICK).unwrap();
            assert!(cancelled.cancel());
            drop((dropped, guard));
        };
        at_the_end_of_a_thread(&timer, register_first, end);
        clock.advance_in_one_jump(TICK);
        assert_eq!(ran.take(), [1]);
        assert_eq!((timer.pending_timeouts(), timer.metrics().cancelled), (2, 2));
        assert_conserved(&timer);
    }
}

/// Schedules another timeout when it is dropped.
struct Heir(HashedWheelTimer, Record<&'static str>);

impl Drop for Heir {
    fn drop(&mut self) {
        match self.0.new_timeout(self.1.note("the heir"), TICK) {
            Ok(_) => self.1.push("scheduled"),
            Err(error) => {
                assert_eq!(error.reason(), RefusalReason::Stopped);
                self.1.push("refused");
            }
        }
    }
}

#[test]
fn rule_01_a_task_can_schedule_in_its_drop_while_thread_locals_are_destroyed() {
    for register_first in [false, true] {
        let (timer, clock) = manual();
        let ran = Record::new();
        let heir = Heir(timer.clone(), ran.clone());
        let guard = timer.new_timeout(move || drop(heir), HOUR).unwrap().cancel_on_drop();
        at_the_end_of_a_thread(&timer, register_first, move || drop(guard));
        assert_eq!(ran.take(), ["scheduled"]);
        clock.advance_in_one_jump(TICK);
        assert_eq!(ran.take(), ["the heir"]);
        assert_conserved(&timer);
    }
}

/// The end of the thread ends the timer.
#[test]
fn rule_01_the_last_handle_can_be_dropped_while_thread_locals_are_destroyed() {
    for register_first in [false, true] {
        let (timer, clock) = manual();
        let (ran, held) = (Record::new(), Arc::new(()));
        let captured = held.clone();
        let task = move || drop(captured);
        let timeout = timer.new_timeout(task, HOUR).unwrap();
        let last = timer.clone();
        let thread = std::thread::spawn({
            let ran = ran.clone();
            move || {
                let end = move || {
                    drop(last);
                    ran.push(());
                };
                let inner = timer.clone();
                at_the_end_of_a_thread(&inner, register_first, end);
            }
        });
        thread.join().unwrap();
        eventually("the timer has ended", || Arc::strong_count(&held) == 1);
        assert!(ran.len() == 1 && timeout.is_cancelled());
        drop(clock);
    }
}

/// The drop of each returned task schedules again. All of these timeouts are refused.
#[test]
fn rule_01_a_task_that_schedules_in_its_drop_is_refused_after_a_stop() {
    let (timer, _clock) = manual();
    let ran = Record::new();
    for _ in 0..100 {
        let heir = Heir(timer.clone(), ran.clone());
        timer.new_timeout(move || drop(heir), HOUR).unwrap();
    }
    let left = timer.stop().unwrap();
    assert_eq!((left.len(), ran.len()), (100, 0));
    drop(left);
    assert_eq!(ran.take(), vec!["refused"; 100]);
    assert_eq!(timer.metrics().rejected, 100);
    assert_conserved(&timer);
}
