//! Tasks that see their run, tasks that a cancel gives back, and handles that do not keep their timer.

use crate::common::{Record, TICK, assert_conserved, eventually, manual, manual_with, ms};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use wheelwork::executor::ThreadPool;
use wheelwork::task::{Next, Run, Task, TaskFn, TimerTask, task_fn};
use wheelwork::timer::WeakTimer;
use wheelwork::{HashedWheelTimer, RefusalReason, Timeout};

#[test]
fn a_closure_sees_its_run() {
    let pool = ThreadPool::with_size(1, 10).unwrap();
    for builder in [HashedWheelTimer::builder(), HashedWheelTimer::builder().executor(pool)] {
        let (timer, clock) = manual_with(builder);
        let seen = Record::new();
        let record = seen.clone();
        let task = task_fn(move |run| record.push((run.timeout(), run.now() - run.deadline())));
        let timeout = timer.new_timeout(task, TICK / 2).unwrap();
        clock.advance(TICK);
        assert_eq!(seen.take(), [(timeout, TICK / 2)]);
    }
}

/// The run is its last one anyway, so the cancel comes too late for its caller.
#[test]
fn a_closure_sees_that_its_run_was_cancelled() {
    let (timer, clock) = manual();
    let seen = Record::new();
    let record = seen.clone();
    let task = task_fn(move |run| {
        let before = run.is_cancelled();
        record.push((before, run.timeout().cancel(), run.is_cancelled()));
    });
    let timeout = timer.new_timeout(task, TICK).unwrap();
    clock.advance(TICK);
    assert_eq!(seen.take(), [(false, false, true)]);
    assert!(timeout.is_expired() && !timeout.is_cancelled());
    assert_eq!((timer.metrics().expired, timer.metrics().cancelled), (1, 0));
}

#[test]
fn a_closure_that_sees_its_run_comes_back() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    let task = |_: &Run<'_>| ();
    timer.new_timeout(task_fn(task as fn(&Run<'_>)), TICK).unwrap();
    let refused = timer.new_timeout(task_fn(task), TICK).unwrap_err();
    assert_eq!(refused.reason(), RefusalReason::LimitReached { limit: 1 });
    let _closure = refused.into_task().into_inner();
    let unprocessed = timer.stop().unwrap().remove(0);
    assert!(unprocessed.downcast::<TaskFn<fn(&Run<'_>)>>().is_ok());
    drop(clock);
}

/// Closures that never return are tasks too.
#[test]
fn a_closure_may_never_return() {
    let (timer, clock) = manual();
    timer.new_timeout(|| panic!("one"), TICK).unwrap();
    timer.new_timeout(task_fn(|_| panic!("two")), TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.metrics().panicked, 2);
}

/// A task with a value. It notes its cancel, and its drop.
struct Valuable {
    value: u64,
    _large: [u64; 8],
    cancelled: Record<u64>,
    dropped: Arc<AtomicUsize>,
}

impl TimerTask for Valuable {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::after(self, TICK)
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.cancelled.push(self.value);
    }
}

impl Drop for Valuable {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, SeqCst);
    }
}

#[test]
fn rule_01_a_cancel_gives_the_task_back() {
    let (timer, clock) = manual();
    let (cancelled, dropped) = (Record::new(), Arc::new(AtomicUsize::new(0)));
    let valuable = |value| Valuable {
        value,
        _large: [value; 8],
        cancelled: cancelled.clone(),
        dropped: dropped.clone(),
    };
    let timeouts: Vec<_> =
        (0..50).map(|n| timer.new_timeout(valuable(n), TICK * n as u32).unwrap()).collect();
    clock.advance_in_one_jump(TICK * 5); // some have run, and some are in the wheel
    for (n, timeout) in (0..).zip(&timeouts) {
        let task = timeout.cancel_and_take().expect("it is pending");
        assert!(timeout.is_cancelled() && timeout.cancel_and_take().is_none() && !timeout.cancel());
        assert_eq!(task.downcast::<Valuable>().expect("of this type").value, n);
    }
    assert_eq!((cancelled.len(), dropped.load(SeqCst)), (0, 50));
    assert_eq!((timer.metrics().cancelled, timer.pending_timeouts()), (50, 0));
    assert_conserved(&timer);
}

#[test]
fn a_task_that_was_taken_can_be_scheduled_again() {
    let ((first, _), (second, clock)) = (manual(), manual());
    let ran = Record::new();
    let task = first.new_timeout(ran.note("ran"), TICK).unwrap().cancel_and_take().unwrap();
    let again = second.new_timeout(task, TICK).unwrap();
    let task: Task = again.cancel_and_take().unwrap();
    second.new_timeout(task, TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran.take(), ["ran"]);
}

/// The run has the task. A series ends, as after a cancel.
#[test]
fn a_task_that_runs_is_not_given_back() {
    let (timer, clock) = manual();
    let (own, taken) = (Arc::new(Mutex::new(None::<Timeout>)), Record::new());
    let (shared, record) = (own.clone(), taken.clone());
    let takes = move || {
        let timeout = shared.lock().unwrap().clone();
        record.push(timeout.is_some_and(|timeout| timeout.cancel_and_take().is_some()));
    };
    *own.lock().unwrap() = Some(timer.new_periodic(takes, TICK).unwrap());
    clock.advance(TICK * 3);
    assert_eq!(taken.take(), [false]);
    let after = timer.stop().unwrap();
    assert!(after.is_empty());
    let timeout = own.lock().unwrap().take().unwrap();
    assert!(timeout.is_cancelled() && timeout.cancel_and_take().is_none());
}

/// A stop, the expiry and two cancels race for a task. One of them gets it.
#[test]
fn rule_01_a_task_is_given_to_one_of_all() {
    for _ in 0..200 {
        let (timer, clock) = manual();
        let (ran, start) = (Record::new(), Barrier::new(3));
        let timeout = timer.new_timeout(ran.note(()), TICK).unwrap();
        let ends = std::thread::scope(|scope| {
            let takes = || {
                start.wait();
                usize::from(timeout.cancel_and_take().is_some())
            };
            let takers = [scope.spawn(takes), scope.spawn(takes)];
            start.wait();
            clock.advance_in_one_jump(TICK);
            takers.map(|taker| taker.join().unwrap()).into_iter().sum::<usize>()
        });
        assert_eq!(ends + ran.len() + timer.stop().unwrap().len(), 1);
        assert_conserved(&timer);
    }
}

#[test]
fn rule_09_a_weak_handle_does_not_keep_its_timer() {
    let (timer, clock) = manual();
    let weak = timer.downgrade();
    let (own, ran) = (weak.clone(), Record::new());
    let record = ran.clone();
    let pending = timer.new_periodic(move || record.push(own.upgrade().is_some()), TICK).unwrap();
    clock.advance(TICK * 2);
    assert_eq!(ran.take(), [true, true]);
    let upgraded = weak.upgrade().expect("there is a handle");
    drop(timer);
    clock.advance(TICK);
    assert_eq!(ran.take(), [true], "the upgraded handle keeps it");
    drop(upgraded);
    assert!(weak.upgrade().is_none());
    eventually("it is cancelled", || pending.is_cancelled());
    assert!(WeakTimer::new().upgrade().is_none());
    assert_eq!(format!("{weak:?}"), "WeakTimer { is_alive: false }");
}

/// The last handle is dropped in a task of the same timer.
#[test]
fn rule_09_a_task_may_drop_the_last_handle() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let weak = timer.downgrade();
    let own = Mutex::new(Some(timer.clone()));
    timer.new_timeout(move || drop(own.lock().unwrap().take()), ms(5)).unwrap();
    let pending = timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap();
    drop(timer);
    eventually("the task has run", || weak.upgrade().is_none());
    eventually("the other is cancelled", || pending.is_cancelled());
}
