//! A timer in a forked child, where its worker's thread does not exist.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]
#![allow(unsafe_code)] // `fork`

mod common;

use common::{Mutex, TICK, blocking_task, manual, ms};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wheelwork::HashedWheelTimer;

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

#[test]
fn rule_09_a_stop_in_a_forked_child_returns_the_timeouts() {
    let _alone = ALONE.lock();
    let timer = HashedWheelTimer::new().unwrap();
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    in_child(|| {
        timer.new_timeout(|| (), ms(90_000)).unwrap();
        assert_eq!(timer.stop().unwrap().len(), 2);
        assert!(timer.is_stopped() && timer.new_timeout(|| (), ms(1)).is_err());
        assert!(timer.stop().unwrap().is_empty());
        drop(timer.clone());
    });
    in_child(|| assert_eq!(timer.stop_timeout(Duration::ZERO).unwrap().len(), 1));
    in_child(|| {
        let mut stopped = pin!(timer.stop_async());
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(returned) = stopped.as_mut().poll(&mut context) else {
            panic!("nothing is left to wait for")
        };
        assert_eq!(returned.len(), 1);
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
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    for limit in [None, Some(ms(100))] {
        in_child(|| {
            let returned = limit.map_or_else(|| timer.stop(), |limit| timer.stop_timeout(limit));
            assert_eq!(returned.unwrap().len(), 1);
        });
    }
    gate.open();
    assert_eq!(timer.stop().unwrap().len(), 1);
}

/// A sleep in the child is woken by the stop, since there is no worker that could do so.
#[test]
fn rule_09_a_stop_in_a_forked_child_wakes_what_sleeps() {
    let _alone = ALONE.lock();
    let (timer, _clock) = manual();
    in_child(move || {
        let mut sleep = pin!(timer.sleep(TICK));
        let mut context = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        timer.stop().unwrap();
        assert!(sleep.as_mut().poll(&mut context).is_ready());
        drop(timer); // the last handle
    });
}

#[test]
fn rule_09_a_manual_clock_in_a_forked_child_does_not_wait() {
    let _alone = ALONE.lock();
    let (timer, clock) = manual();
    timer.new_timeout(|| (), TICK).unwrap();
    in_child(|| {
        clock.advance(TICK);
        assert_eq!((clock.elapsed(), timer.stop().unwrap().len()), (TICK, 1));
    });
    clock.advance(TICK);
    assert_eq!(timer.metrics().expired, 1, "the parent's clock is another");
}
