//! Stopping a timer, dropping its last handle, and what becomes of the pending timeouts.

mod common;

use common::{Record, assert_conserved, eventually, manual, manual_with, ms, on};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wheelwork::{
    HashedWheelTimer, Next, Period, RescheduleError, Run, ScheduleError, StopError, Timeout,
    TimerTask, WheelKind,
};

on_every_wheel!(
    rule_01_stop_returns_unprocessed_timeouts_in_the_order_of_deadlines,
    rule_01_a_timeout_scheduled_during_a_stop_runs_is_returned_or_is_refused,
);

fn rule_01_stop_returns_unprocessed_timeouts_in_the_order_of_deadlines(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let start = timer.new_timeout(ran.note("gone"), ms(100)).unwrap().now();
    let [c, _a, b] = [("c", 900), ("a", 300), ("b", 500)]
        .map(|(name, delay)| timer.new_timeout(ran.note(name), ms(delay)).unwrap());
    clock.advance(ms(100));
    timer.new_timeout(ran.note("queued"), ms(5000)).unwrap();
    b.cancel();
    ran.take();

    let unprocessed = timer.stop().unwrap();
    let deadlines: Vec<_> =
        unprocessed.iter().map(|u| (u.deadline() - start).as_millis()).collect();
    assert_eq!(deadlines, [300, 900, 5100]);
    assert!(!c.is_cancelled() && !c.is_expired());
    assert_eq!(c.reschedule(ms(1)), Err(RescheduleError::Stopped));
    assert_eq!((timer.pending_timeouts(), timer.metrics().returned), (0, 3));
    assert!(timer.is_stopped());

    assert_eq!(unprocessed[1].timeout().deadline(), c.deadline());
    let mut unprocessed = unprocessed.into_iter();
    unprocessed.next().unwrap().run();
    assert_eq!(ran.take(), ["a"]);
    drop(unprocessed.next());
    let (second, second_clock) = manual_with(on(wheel));
    second.new_timeout(unprocessed.next().unwrap().into_task(), ms(100)).unwrap();
    second_clock.advance(ms(100));
    assert_eq!(ran.take(), ["queued"], "a task taken out runs in another timer");
    assert_conserved(&timer);
}

/// A task of 8 bytes lies in its slot, one of 64 in a box.
#[test]
fn a_returned_task_is_recognised_by_its_type() {
    #[derive(Debug, PartialEq)]
    struct Saved<const N: usize>([u64; N]);

    impl<const N: usize> TimerTask for Saved<N> {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }
    }

    let timer = HashedWheelTimer::new().unwrap();
    let ran = Record::new();
    let boxed: Box<dyn FnOnce() + Send> = Box::new(ran.note("boxed"));
    timer.new_timeout(Saved([7]), ms(10_000)).unwrap();
    timer.new_timeout(Saved([8; 8]), ms(20_000)).unwrap();
    timer.new_timeout(ran.note("unnamed"), ms(30_000)).unwrap();
    timer.new_timeout(boxed, ms(40_000)).unwrap();
    let [small, large, closure, boxed]: [_; 4] = timer.stop().unwrap().try_into().unwrap();
    assert!(small.is::<Saved<1>>() && !small.is::<Saved<8>>() && large.is::<Saved<8>>());
    let due = large.deadline();
    let large = large.downcast::<Saved<1>>().expect_err("it is larger");
    assert_eq!((large.deadline(), large.timeout().is_cancelled()), (due, false));
    assert_eq!(large.downcast::<Saved<8>>().unwrap(), Saved([8; 8]));
    assert_eq!(small.into_task().downcast::<Saved<1>>().unwrap(), Saved([7]));
    closure.downcast::<Saved<1>>().expect_err("a closure").run();
    boxed.downcast::<Box<dyn FnOnce() + Send>>().expect("its type has a name")();
    assert_eq!(ran.take(), ["unnamed", "boxed"]);
}

/// A task that was taken out and scheduled again is held within another.
#[test]
fn a_task_scheduled_again_keeps_its_type() {
    fn greet() {}
    let (mut timer, mut task) = (HashedWheelTimer::new().unwrap(), None::<wheelwork::Task>);
    for again in 0..4 {
        match task.take() {
            Some(task) => timer.new_timeout(task, ms(10_000)).unwrap(),
            None => timer.new_timeout(greet as fn(), ms(10_000)).unwrap(),
        };
        let unprocessed = timer.stop().unwrap().remove(0);
        assert!(
            unprocessed.is::<fn()>() && !unprocessed.is::<Box<dyn FnOnce() + Send>>(),
            "time {again}"
        );
        task = Some(unprocessed.into_task());
        timer = HashedWheelTimer::new().unwrap();
    }
    assert!(task.unwrap().downcast::<fn()>().is_ok());
}

#[test]
fn rule_01_a_stopped_timer_gives_the_task_back() {
    let timer = HashedWheelTimer::new().unwrap();
    timer.stop().unwrap();
    let ran = Record::new();
    let error = timer.new_timeout(ran.note("back"), ms(1)).unwrap_err();
    assert!(matches!(error, ScheduleError::Stopped { .. }));
    assert_eq!(error.to_string(), "the timer is stopped: expected a running one");
    error.into_task()();
    assert_eq!(ran.take(), ["back"]);
    assert_eq!((timer.metrics().rejected, timer.pending_timeouts()), (1, 0));
    assert!(timer.stop().unwrap().is_empty(), "stopping again is no error");
}

fn rule_01_a_timeout_scheduled_during_a_stop_runs_is_returned_or_is_refused(wheel: WheelKind) {
    // The race is in the heaps, which are the same for every wheel.
    let rounds = if wheel == WheelKind::Hashed { 500u64 } else { 100 };
    for round in 0..rounds {
        let timer = on(wheel).tick_duration(ms(1)).build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let (mut accepted, mut refused, mut returned) = (0, 0, 0);
        std::thread::scope(|scope| {
            let producers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut accepted, mut refused) = (0, 0);
                        while refused == 0 {
                            let ran = ran.clone();
                            let task = move || {
                                ran.fetch_add(1, SeqCst);
                            };
                            match timer.new_timeout(task, ms(accepted % 3)) {
                                Ok(_) => accepted += 1,
                                Err(_) => refused += 1,
                            }
                        }
                        (accepted, refused)
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_micros(round * 23 % 2000));
            returned = timer.stop().unwrap().len();
            for producer in producers {
                let (a, r) = producer.join().unwrap();
                accepted += a;
                refused += r;
            }
        });
        assert_eq!(accepted as usize, ran.load(SeqCst) + returned, "round {round}");
        assert_eq!((refused, timer.pending_timeouts()), (2, 0));
        assert_conserved(&timer);
    }
}

#[test]
fn rule_01_concurrent_stops_return_each_timeout_once() {
    for _ in 0..100 {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        for _ in 0..50 {
            timer.new_timeout(|| (), ms(60_000)).unwrap();
        }
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let stops: Vec<_> =
                (0..3).map(|_| scope.spawn(|| timer.stop().unwrap().len())).collect();
            stops.into_iter().map(|stop| stop.join().unwrap()).collect()
        });
        assert_eq!(counts.iter().sum::<usize>(), 50, "{counts:?}");
    }
}

#[test]
fn rule_09_stop_inside_a_task_is_an_error() {
    let (timer, clock) = manual();
    let results = Record::new();
    let (handle, record) = (timer.clone(), results.clone());
    let task = move || {
        record.push(handle.stop().map(drop));
        record.push(handle.stop_timeout(ms(1)).map(drop));
    };
    timer.new_timeout(task, ms(100)).unwrap();
    clock.advance(ms(100));
    let results = results.take();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|r| matches!(r, Err(StopError::FromWorker))), "{results:?}");
    assert!(timer.new_timeout(|| (), ms(100)).is_ok(), "and the timer goes on");
}

#[test]
fn rule_09_a_stop_with_a_limit_names_the_task_that_runs() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let started = Arc::new(AtomicBool::new(false));
    let flag = started.clone();
    let slow = timer.new_timeout(
        move || {
            flag.store(true, SeqCst);
            let _ = gate.recv();
        },
        Duration::ZERO,
    );
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    eventually("the slow task starts", || started.load(SeqCst));

    let error = timer.stop_timeout(ms(20)).unwrap_err();
    let StopError::StillRunning { limit, timeout } = error else { panic!("{error:?}") };
    let running = timeout.expect("the one that runs");
    assert_eq!((limit, running.deadline()), (ms(20), slow.as_ref().unwrap().deadline()));
    assert!(format!("{running:?}").contains("running"));
    assert!(timer.new_timeout(|| (), ms(1)).is_err(), "closed all the same");
    assert!(!timer.is_stopped(), "not before its end");

    release.send(()).unwrap();
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert!(slow.unwrap().is_expired() && running.is_expired());
    assert_conserved(&timer);
}

/// The worker need not have its turn: the stop itself ends a timer whose worker runs no task.
#[test]
fn rule_09_a_stop_with_a_limit_of_zero_ends_a_timer_that_runs_no_task() {
    for round in 0..500u64 {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        for n in 0..10 {
            timer.new_timeout(|| (), ms(60_000 + (n * 7 + round) % 10)).unwrap();
        }
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_micros(round * 7)); // the worker sleeps by then
        }
        let returned = timer.stop_timeout(Duration::ZERO).expect("it runs nothing");
        assert_eq!((returned.len(), timer.pending_timeouts()), (10, 0));
        assert!(returned.is_sorted_by_key(|unprocessed| unprocessed.deadline()));
        assert!(timer.is_stopped() && timer.new_timeout(|| (), ms(1)).is_err());
        assert_conserved(&timer);
        assert!(timer.stop().unwrap().is_empty(), "and the thread ends");
    }
}

/// Whoever finds the worker between two runs ends the timer: nothing runs after that.
#[test]
fn rule_09_a_stop_with_a_limit_of_zero_ends_a_busy_timer_between_two_runs() {
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
                    let StopError::StillRunning { timeout, .. } = &error else { panic!("{error}") };
                    let named = error.to_string().contains("with a task");
                    assert_eq!(named, timeout.is_some(), "{error}");
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

/// The executor's drop never ends: only a stop without a limit waits for it.
#[test]
fn rule_09_a_stop_with_a_limit_does_not_wait_for_the_drop_of_the_executor() {
    struct Lingers(std::sync::Mutex<mpsc::Receiver<()>>);
    impl wheelwork::Executor for Lingers {
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
    let (release, gate) = mpsc::channel();
    let executor = Lingers(std::sync::Mutex::new(gate));
    let timer = HashedWheelTimer::builder().executor(executor).build().unwrap();
    timer.new_timeout(|| (), ms(60_000)).unwrap();
    assert_eq!(timer.stop_timeout(ms(20)).unwrap().len(), 1);
    drop(release);
    assert!(timer.stop().unwrap().is_empty());
}

/// The limit is for those who wait too long, not a time to give up at once.
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

/// The worker has begun the pass in which both are due.
#[test]
fn rule_01_a_timeout_due_later_in_the_pass_of_a_stop_is_returned_and_not_run() {
    let (timer, clock) = manual();
    let (release, gate) = mpsc::channel::<()>();
    let (started, is_running) = mpsc::channel();
    let blocking = move || {
        started.send(()).unwrap();
        let _ = gate.recv();
    };
    timer.new_timeout(blocking, ms(100)).unwrap();
    let ran = Record::new();
    let next = timer.new_timeout(ran.note("next"), ms(100)).unwrap();
    let (stopped, moved) = std::thread::scope(|scope| {
        scope.spawn(|| clock.advance(ms(100)));
        is_running.recv().unwrap();
        let answers = (timer.stop_timeout(ms(1)), next.reschedule(ms(100)));
        release.send(()).unwrap();
        answers
    });
    assert!(stopped.is_err());
    assert_eq!(moved, Err(RescheduleError::Stopped));
    assert_eq!((timer.stop().unwrap().len(), ran.len()), (1, 0));
    assert_conserved(&timer);
}

#[test]
fn rule_01_a_timeout_due_during_a_stop_is_returned_and_not_run() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let ran = Arc::new(AtomicUsize::new(0));
    let blocking = move || {
        let _ = gate.recv();
    };
    timer.new_timeout(blocking, Duration::ZERO).unwrap();
    for _ in 0..10 {
        let ran = ran.clone();
        let task = move || {
            ran.fetch_add(1, SeqCst);
        };
        timer.new_timeout(task, ms(1)).unwrap();
    }
    std::thread::sleep(ms(5));
    let returned = std::thread::scope(|scope| {
        let stop = scope.spawn(|| timer.stop().unwrap().len());
        eventually("closed", || timer.new_timeout(|| (), ms(60_000)).is_err());
        release.send(()).unwrap();
        stop.join().unwrap()
    });
    // Those that found the timer open while it was being closed are returned as well.
    assert!(returned >= 10, "{returned} returned");
    assert_eq!(ran.load(SeqCst), 0);
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(&timer);
}

#[test]
fn rule_09_dropping_the_last_handle_does_not_block_and_cancels() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let record = Record::new();
    let (release, gate) = mpsc::channel::<()>();
    let started = Arc::new(AtomicBool::new(false));
    let flag = started.clone();
    timer
        .new_timeout(
            move || {
                flag.store(true, SeqCst);
                let _ = gate.recv();
            },
            Duration::ZERO,
        )
        .unwrap();
    eventually("the blocking task starts", || started.load(SeqCst));
    let pending = timer.new_timeout(Told(record.clone()), ms(60_000)).unwrap();
    let copy = timer.clone();
    drop(timer);
    assert!(!pending.is_cancelled(), "not the last handle");
    drop(copy); // the worker is blocked by the task: this must return all the same
    assert_eq!(record.len(), 0);
    release.send(()).unwrap();
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
fn rule_01_a_periodic_timeout_does_not_run_after_a_stop() {
    let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let task = move || {
        count.fetch_add(1, SeqCst);
    };
    timer.new_periodic(task, Period::fixed_rate(ms(1))).unwrap();
    eventually("it runs", || runs.load(SeqCst) > 3);
    let returned = timer.stop().unwrap().len();
    let at_stop = runs.load(SeqCst);
    std::thread::sleep(ms(20));
    assert_eq!(runs.load(SeqCst), at_stop, "no run after stop has returned");
    assert!(returned <= 1, "returned if it was pending, ended if it was running");
    assert_conserved(&timer);
}

#[test]
fn rule_09_a_stop_does_not_wait_for_a_tick() {
    let timer =
        HashedWheelTimer::builder().tick_duration(Duration::from_secs(3600)).build().unwrap();
    timer.new_timeout(|| (), Duration::from_secs(60)).unwrap();
    let started = Instant::now();
    assert_eq!(timer.stop().unwrap().len(), 1);
    assert!(started.elapsed() < Duration::from_secs(60), "it does not wait for a tick");
}

struct Told(Record<&'static str>);

impl TimerTask for Told {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.0.push("run");
        Next::done()
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.0.push("cancelled");
    }
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

/// A stop gives up waiting, and then nobody is left to collect what it would have returned.
#[test]
fn rule_01_dropping_the_last_handle_after_a_failed_stop_cancels() {
    for collected_late in [false, true] {
        let timer = HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
        let (release, gate) = mpsc::channel::<()>();
        let (started, is_running) = mpsc::channel();
        let blocking = move || {
            started.send(()).unwrap();
            let _ = gate.recv();
        };
        timer.new_timeout(blocking, ms(1)).unwrap();
        let record = Record::new();
        let pending = timer.new_timeout(Told(record.clone()), ms(60_000)).unwrap();
        is_running.recv().unwrap();
        assert!(timer.stop_timeout(ms(1)).is_err());
        if collected_late {
            release.send(()).unwrap();
            eventually("the worker has reported", || timer.is_stopped());
            drop(timer);
        } else {
            drop(timer);
            release.send(()).unwrap();
        }
        eventually("it is cancelled", || record.len() == 1);
        assert_eq!(record.take(), ["cancelled"]);
        assert!(pending.is_cancelled());
    }
}

/// Its drop runs on the worker, before the stop returns: the stop's limit counts for it too.
#[test]
fn the_executor_is_dropped_before_the_stop_returns() {
    struct Noted(Record<()>);
    impl wheelwork::Executor for Noted {
        fn execute(&self, job: wheelwork::executor::Job) -> Result<(), wheelwork::executor::Job> {
            job.run();
            Ok(())
        }
    }
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.push(());
            panic!("a bad executor");
        }
    }
    let record = Record::new();
    let timer = HashedWheelTimer::builder().executor(Noted(record.clone())).build().unwrap();
    assert!(timer.stop().is_ok());
    assert_eq!(record.len(), 1);
}

/// A thread-local that a task has used is dropped when the worker's thread ends: a stop with a limit
/// does not wait for that, one without does, even if it comes later.
#[test]
fn rule_09_a_stop_with_a_limit_does_not_wait_for_thread_locals_of_the_worker() {
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
    clock.advance(ms(100));
    assert_eq!(timer.stop_timeout(Duration::from_secs(3600)).unwrap().len(), 0);
    assert!(!dropped.load(SeqCst), "it waits");
    let later = std::thread::spawn(move || {
        std::thread::sleep(ms(50));
        release.send(())
    });
    assert_eq!(timer.stop().unwrap().len(), 0);
    assert!(dropped.load(SeqCst), "the thread has ended");
    later.join().unwrap().expect("it waited");
}

struct Remind(u64);

impl TimerTask for Remind {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        Next::done()
    }
}

/// Also if it was scheduled in another timer meanwhile.
#[test]
fn a_returned_task_can_be_downcast() {
    let returned_by = |timer: HashedWheelTimer| timer.stop().unwrap().remove(0).into_task();
    let first = HashedWheelTimer::new().unwrap();
    first.new_timeout(Remind(7), ms(60_000)).unwrap();
    let second = HashedWheelTimer::new().unwrap();
    second.new_timeout(returned_by(first), ms(60_000)).unwrap();
    let task = returned_by(second).downcast::<Told>().err().expect("it is a `Remind`");
    assert_eq!(task.downcast::<Remind>().map(|Remind(user)| user).ok(), Some(7));
}
