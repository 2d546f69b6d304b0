//! A timer in a forked child, where its worker's thread does not exist.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]
#![allow(unsafe_code)] // `fork`

mod common;

use common::{Mutex, Record, TICK, blocking_task, eventually, manual, ms, run_here};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork};
use std::os::unix::process::parent_id;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wheelwork::executor::ThreadPool;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, ManualClock, StopError, Timeout};

/// Only one test forks at a time, so that no other thread of this process is within a timer.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `act` in a forked child. The test fails if that panics or takes 20 s.
fn in_child(act: impl FnOnce()) {
    // SAFETY: the other threads of this process are the test harness, which waits, and workers, which sleep
    // or block in a task. So none of them has a lock that the child needs.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Child => {
            alarm::set(20); // its signal ends the child
            let failed = catch_unwind(AssertUnwindSafe(act)).is_err();
            // SAFETY: ends the process, without destructors and exit handlers, which belong to the parent.
            unsafe { nix::libc::_exit(i32::from(failed)) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
    }
}

/// The error of each stop in a forked child.
fn assert_refused(timer: &HashedWheelTimer) {
    let refused = StopError::Forked { process: parent_id() };
    assert_eq!(timer.stop().unwrap_err(), refused);
    assert_eq!(timer.stop_timeout(ms(1)).unwrap_err(), refused);
    let mut stop = pin!(timer.stop_async());
    let Poll::Ready(polled) = stop.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("there is nothing to wait for")
    };
    assert_eq!(polled.unwrap_err(), refused);
    assert!(!timer.is_stopped());
}

#[test]
fn rule_09_a_stop_in_a_forked_child_is_an_error() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::new().unwrap();
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    in_child(|| {
        timer.new_timeout(|| (), ms(90_000)).unwrap();
        assert_refused(&timer);
        drop(timer.clone());
    });
    assert_eq!(timer.stop().unwrap().len(), 1, "the parent's timer is another");
}

/// The run goes on in the parent. Its task is not in the child.
#[test]
fn rule_09_a_stop_in_a_child_that_was_forked_during_a_run_does_not_wait_for_it() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, Duration::ZERO).unwrap();
    gate.wait();
    in_child(|| assert_refused(&timer));
    gate.open();
    assert!(timer.stop().unwrap().is_empty());
}

/// A stop has given up, and the timer has ended since. So the drop of the parent's last handle tells the task.
#[test]
fn rule_01_the_drop_of_the_last_handle_in_a_forked_child_tells_no_task() {
    struct Told(Record<&'static str>);
    impl TimerTask for Told {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }

        fn cancelled(self, _timeout: &Timeout) {
            self.0.push("cancelled");
        }
    }
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.push("dropped");
        }
    }
    let _alone = ALONE.lock();
    let (held_by_the_worker, ended) = channel::<()>();
    let executor = move |job| {
        let _held = &held_by_the_worker;
        run_here(job)
    };
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).executor(executor);
    let mut timer = Some(builder.build().unwrap());
    let handle = timer.as_ref().unwrap();
    let (told, (blocking, gate)) = (Record::new(), blocking_task());
    handle.new_timeout(Told(told.clone()), ms(60_000)).unwrap();
    handle.new_timeout(blocking, Duration::ZERO).unwrap();
    gate.wait();
    assert!(handle.stop_timeout(ms(1)).is_err());
    gate.open();
    assert!(ended.recv().is_err(), "the worker has ended the timer, and dropped its executor");
    in_child(|| {
        drop(timer.take());
        assert_eq!(told.len(), 0);
    });
    drop(timer);
    assert_eq!(told.take(), ["cancelled", "dropped"]);
}

/// The worker is the thread that forks, so the child has it. This thread has left the timer by then, and holds no lock.
#[test]
fn a_child_that_returns_from_a_task_goes_on_as_a_worker() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let both_are_scheduled = Arc::new(AtomicBool::new(false));
    let child = Arc::new(AtomicI32::new(0));
    let (may_fork, forked) = (both_are_scheduled.clone(), child.clone());
    let forks = move || {
        while !may_fork.load(SeqCst) {
            std::thread::yield_now();
        }
        // SAFETY: as in `in_child`.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Child => _ = alarm::set(20),
            ForkResult::Parent { child } => forked.store(child.as_raw(), SeqCst),
        }
    };
    let parent = std::process::id();
    let ends_the_child = move || {
        if std::process::id() != parent {
            // SAFETY: as in `in_child`.
            unsafe { nix::libc::_exit(7) }
        }
    };
    timer.new_timeout(forks, Duration::ZERO).unwrap();
    timer.new_timeout(ends_the_child, ms(20)).unwrap();
    both_are_scheduled.store(true, SeqCst);
    eventually("the child exists", || child.load(SeqCst) != 0);
    let child = Pid::from_raw(child.load(SeqCst));
    assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 7));
}

/// The job never ends in the child.
#[test]
fn rule_09_a_manual_clock_in_a_forked_child_does_not_wait_for_the_jobs_of_the_parent() {
    let _alone = ALONE.lock();
    let clock = ManualClock::new();
    let builder = HashedWheelTimer::builder().clock(clock.clone());
    let timer = builder.executor(ThreadPool::with_size(1, 8).unwrap()).build().unwrap();
    let (task, gate) = blocking_task();
    timer.new_timeout(task, TICK).unwrap();
    clock.advance_in_one_jump(TICK);
    gate.wait();
    in_child(|| {
        clock.advance(TICK);
        assert_eq!(clock.elapsed(), 2 * TICK);
    });
    drop(gate);
}

#[test]
fn rule_09_a_manual_clock_in_a_forked_child_does_not_wait() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    timer.new_timeout(|| (), TICK).unwrap();
    in_child(|| {
        clock.advance_in_one_jump(TICK);
        assert_eq!(clock.elapsed(), TICK);
        assert_refused(&timer);
    });
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.metrics().expired, 1, "the parent's clock is another");
}
