//! Stops while timeouts are scheduled, expire and run.

use crate::common::{Record, assert_conserved, blocking_task, eventually, manual, ms, on};
use crate::on_every_wheel;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use wheelwork::time::Clock;
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, Period, RescheduleError, StopError};

on_every_wheel!(rule_01_a_timeout_scheduled_during_a_stop_runs_is_returned_or_is_refused);

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
    clock.advance_in_one_jump(ms(100));
    let results = results.take();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|r| matches!(r, Err(StopError::FromWorker))), "{results:?}");
    assert!(timer.new_timeout(|| (), ms(100)).is_ok(), "and the timer goes on");
}

/// Both timeouts are due in the pass that the worker has begun.
#[test]
fn rule_01_a_timeout_due_later_in_the_pass_of_a_stop_is_returned_and_not_run() {
    let (timer, clock) = manual();
    let (blocking, gate) = blocking_task();
    timer.new_timeout(blocking, ms(100)).unwrap();
    let ran = Record::new();
    let next = timer.new_timeout(ran.note("next"), ms(100)).unwrap();
    let (stopped, moved) = std::thread::scope(|scope| {
        scope.spawn(|| clock.advance_in_one_jump(ms(100)));
        gate.wait();
        let answers = (timer.stop_timeout(ms(1)), next.reschedule(ms(100)));
        gate.open();
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
    let (blocking, gate) = blocking_task();
    let ran = Arc::new(AtomicUsize::new(0));
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
        gate.open();
        stop.join().unwrap()
    });
    // Those that found the timer open while it was being closed are returned as well.
    assert!(returned >= 10, "{returned} returned");
    assert_eq!(ran.load(SeqCst), 0);
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(&timer);
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

/// The worker drops the executor before `stop` returns, and contains a panic there.
#[test]
fn the_executor_is_dropped_before_the_stop_returns() {
    struct Noted(Record<()>);
    impl wheelwork::executor::Executor for Noted {
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

/// A clock that asks a server for the time, and so parks on the worker thread.
struct Asks(Sender<Sender<()>>);

const ASKS: &str = "asks";

impl Clock for Asks {
    fn now(&self) -> Instant {
        if std::thread::current().name() == Some(ASKS) {
            let (reply, answer) = channel();
            if self.0.send(reply).is_ok() {
                let _ = answer.recv();
            }
        }
        Instant::now()
    }
}

/// The park in the clock consumes the unpark token of the stop. Each of the worker's readings is tried.
#[test]
fn rule_09_a_clock_that_parks_swallows_no_stop() {
    for stopped_in in 0..6 {
        let (ask, asked) = channel();
        let builder = HashedWheelTimer::builder().tick_duration(ms(1)).thread_name(ASKS);
        let timer = builder.clock(Asks(ask)).build().unwrap();
        timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap();
        let mut reads = 0;
        while let Ok(reply) = asked.recv_timeout(ms(100)) {
            if reads == stopped_in {
                std::thread::sleep(ms(5)); // it parks
                let _ = timer.stop_timeout(Duration::ZERO);
                std::thread::sleep(ms(5)); // it parks again
            }
            reads += 1;
            let _ = reply.send(());
        }
        let asked = std::thread::spawn(move || asked.iter().for_each(|reply| _ = reply.send(())));
        let was_stopped = reads > stopped_in;
        eventually("it has ended", || timer.is_stopped() || !was_stopped);
        drop(timer);
        asked.join().unwrap();
    }
}
