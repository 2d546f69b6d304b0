//! `stop_timeout`, whose limit always holds.

use crate::common::{assert_conserved, blocking_task, eventually, manual, ms};
#[cfg(not(windows))]
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake};
use std::time::{Duration, Instant};
use wheelwork::{HashedWheelTimer, StopError};

/// The worker's thread wakes the sleeps of a timer that ends. The stop has emptied the slots by then, which
/// takes a while.
#[test]
fn rule_09_a_stop_with_a_limit_wakes_every_sleep() {
    #[derive(Default)]
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }
    for _ in 0..20 {
        let (timer, _clock) = manual();
        (0..20_000).for_each(|_| drop(timer.new_timeout(|| (), ms(60_000)).unwrap()));
        let woken = Arc::new(Woken::default());
        let mut sleep = timer.sleep(ms(60_000));
        let waker = woken.clone().into();
        let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        assert_eq!(timer.stop_timeout(ms(60_000)).map(|left| left.len()).ok(), Some(20_000));
        eventually("the sleep is woken", || woken.0.load(SeqCst));
    }
}

#[test]
fn rule_09_a_stop_with_a_limit_names_the_thread_and_the_task_that_runs() {
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name("conn-timer");
    let timer = builder.build().unwrap();
    let (blocking, gate) = blocking_task();
    let slow = timer.new_timeout(blocking, Duration::ZERO);
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    gate.wait();

    let begun = Instant::now();
    let error = timer.stop_timeout(ms(20)).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(30), "the limit was 20 ms");
    assert!(error.to_string().contains("blocking_task"), "{error}");
    let StopError::StillRunning { limit, thread, task } = error else { panic!("{error:?}") };
    assert_eq!((limit, &*thread), (ms(20), "conn-timer"));
    let task = task.expect("the one that runs");
    assert!(task.type_name.contains("blocking_task::{{closure}}"), "{task:?}");
    assert!(timer.started_at() <= task.since && task.since <= Instant::now());
    assert!(timer.new_timeout(|| (), ms(1)).is_err(), "closed all the same");
    assert!(!timer.is_stopped(), "not before its end");

    gate.open();
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert!(slow.unwrap().is_expired());
    assert_conserved(&timer);
}

#[test]
fn rule_09_a_stop_with_a_limit_returns_what_is_pending() {
    for round in 0..500u64 {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        for n in 0..10 {
            timer.new_timeout(|| (), ms(60_000 + (n * 7 + round) % 10)).unwrap();
        }
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_micros(round * 7)); // the worker sleeps by then
        }
        let returned = timer.stop_timeout(ms(60_000)).expect("it runs nothing");
        assert_eq!((returned.len(), timer.pending_timeouts()), (10, 0));
        assert!(timer.is_stopped() && timer.new_timeout(|| (), ms(1)).is_err());
        assert_conserved(&timer);
        assert!(timer.stop().unwrap().is_empty(), "and the thread ends");
    }
}

/// The stops ask until one finds the end. No task runs after that.
#[test]
fn rule_09_a_stop_with_a_limit_of_zero_asks_once() {
    for round in 0..300u64 {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        for n in 0..200 {
            let ran = ran.clone();
            let task = move || _ = ran.fetch_add(1, SeqCst);
            timer.new_timeout(task, Duration::from_micros(n * 10)).unwrap();
        }
        std::thread::sleep(Duration::from_micros(round * 10));
        let (mut refusals, mut returned) = (0, None);
        while returned.is_none() {
            match timer.stop_timeout(Duration::ZERO) {
                Ok(unprocessed) => returned = Some((unprocessed.len(), ran.load(SeqCst))),
                Err(error) => {
                    refusals += 1;
                    let StopError::StillRunning { task, .. } = &error else { panic!("{error}") };
                    assert_eq!(
                        error.to_string().contains("with a task"),
                        task.is_some(),
                        "{error}"
                    );
                }
            }
        }
        let (returned, at_stop) = returned.expect("it has stopped");
        assert!(timer.stop().unwrap().is_empty(), "after {refusals} refusals");
        assert_eq!(ran.load(SeqCst), at_stop, "nothing runs after a stop has returned");
        assert_eq!((at_stop + returned, timer.pending_timeouts()), (200, 0));
        assert_conserved(&timer);
    }
}

/// An executor that runs each job on the worker, and whose drop blocks.
struct Lingers(Mutex<mpsc::Receiver<()>>);

impl wheelwork::executor::Executor for Lingers {
    fn execute(&self, job: wheelwork::executor::Job) -> Result<(), wheelwork::executor::Job> {
        job.run();
        Ok(())
    }
}

impl Drop for Lingers {
    fn drop(&mut self) {
        let _ = self.0.lock().unwrap().recv();
    }
}

/// A timer whose executor's drop blocks until the sender is dropped.
fn lingering() -> (HashedWheelTimer, mpsc::Sender<()>) {
    let (release, gate) = mpsc::channel();
    let builder = HashedWheelTimer::builder().tick_duration(ms(1));
    (builder.executor(Lingers(Mutex::new(gate))).build().unwrap(), release)
}

/// Only a stop without a limit waits for the drop of the executor.
#[test]
fn rule_09_a_stop_with_a_limit_does_not_wait_for_the_drop_of_the_executor() {
    for limit in [ms(60_000), Duration::from_secs(3600)] {
        let (timer, release) = lingering();
        timer.new_timeout(|| (), ms(60_000)).unwrap();
        assert_eq!(timer.stop_timeout(limit).unwrap().len(), 1);
        drop(release);
        assert!(timer.stop().unwrap().is_empty());
    }
}

/// The task ends before the limit, and then the drop of the executor blocks.
#[test]
fn rule_09_a_stop_with_a_limit_does_not_wait_for_the_drop_of_the_executor_after_a_task() {
    let (timer, release) = lingering();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, Duration::ZERO).unwrap();
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    gate.wait();
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| timer.stop_timeout(ms(60_000)));
        eventually("the timer is closed", || timer.new_timeout(|| (), Duration::MAX).is_err());
        gate.open();
        let returned = stop.join().unwrap().expect("nothing runs any more");
        assert!(
            returned.iter().any(|unprocessed| unprocessed.deadline() < Instant::now() + ms(60_000))
        );
    });
    drop(release);
    assert!(timer.stop().unwrap().is_empty());
}

/// The stop waits, because its limit is longer than the task takes.
#[test]
fn rule_09_a_stop_with_a_limit_waits_for_a_task_that_ends_in_time() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let started = Arc::new(AtomicBool::new(false));
    let flag = started.clone();
    let slow = move || {
        flag.store(true, SeqCst);
        std::thread::sleep(ms(100));
    };
    timer.new_timeout(slow, Duration::ZERO).unwrap();
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    eventually("the slow task starts", || started.load(SeqCst));
    assert_eq!(timer.stop_timeout(ms(60_000)).unwrap().len(), 1);
}

/// A timer whose worker ends only when the returned channel is used: it drops a thread-local then, which a task has
/// stored there. The flag says that it was dropped.
#[cfg(not(windows))] // there, no thread of the process starts while one drops its thread-locals
fn with_a_lingering_worker() -> (HashedWheelTimer, mpsc::Sender<()>, Arc<AtomicBool>) {
    struct Lingers(mpsc::Receiver<()>, Arc<AtomicBool>);
    impl Drop for Lingers {
        fn drop(&mut self) {
            let _ = self.0.recv();
            self.1.store(true, SeqCst);
        }
    }
    thread_local!(static STORED: RefCell<Option<Lingers>> = const { RefCell::new(None) });
    let (timer, clock) = manual();
    let (release, gate) = mpsc::channel();
    let dropped = Arc::new(AtomicBool::new(false));
    let lingers = Lingers(gate, dropped.clone());
    let store = move || STORED.with(|stored| *stored.borrow_mut() = Some(lingers));
    timer.new_timeout(store, ms(100)).unwrap();
    clock.advance_in_one_jump(ms(100));
    (timer, release, dropped)
}

/// Nor does a later stop without a limit wait for it: the worker's thread may be gone by then.
#[test]
#[cfg(not(windows))]
fn rule_09_a_stop_with_a_limit_does_not_wait_for_thread_locals_of_the_worker() {
    let (timer, release, dropped) = with_a_lingering_worker();
    assert_eq!(timer.stop_timeout(Duration::from_secs(3600)).unwrap().len(), 0);
    assert_eq!(timer.stop().unwrap().len(), 0);
    drop(timer);
    assert!(!dropped.load(SeqCst), "it waits");
    release.send(()).unwrap();
    eventually("the thread ends", || dropped.load(SeqCst));
}

#[test]
#[cfg(not(windows))]
fn a_stop_without_a_limit_waits_for_thread_locals_of_the_worker() {
    let (timer, release, dropped) = with_a_lingering_worker();
    let later = std::thread::spawn(move || {
        std::thread::sleep(ms(50));
        release.send(())
    });
    assert_eq!(timer.stop().unwrap().len(), 0);
    assert!(dropped.load(SeqCst), "the thread has ended");
    later.join().unwrap().expect("it waited");
}
