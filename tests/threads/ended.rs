//! Timeouts of threads that have ended.

use super::HOUR;
use crate::common::{Record, TICK, assert_conserved, into_the_wheel, manual, manual_with, ms};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;
use wheelwork::{HashedWheelTimer, Timeout};

const THREADS: usize = 10_000;

/// How the timeouts of the ended threads end.
#[derive(Clone, Copy)]
enum End {
    Runs,
    Cancelled,
    Stopped,
}

/// Calls `act` on `count` threads, twenty at a time, and returns when they have ended.
fn threads(count: usize, act: impl Fn(usize) + Sync) {
    const AT_ONCE: usize = 20;
    for first in (0..count).step_by(AT_ONCE) {
        std::thread::scope(|scope| {
            let act = &act;
            (first..(first + AT_ONCE).min(count)).for_each(|n| _ = scope.spawn(move || act(n)));
        });
    }
}

fn threads_that_come_and_go(end: End) {
    let (timer, clock) = manual();
    let (ran, handles) = (Record::new(), Record::new());
    threads(THREADS, |n| {
        let delay = if n % 2 == 0 { 50 * TICK } else { 55 * TICK };
        handles.push(timer.new_timeout(ran.note(n), delay).unwrap());
        if n % 300 == 0 {
            timer.new_timeout(|| (), Duration::ZERO).unwrap();
            clock.advance_in_one_jump(TICK); // what this thread's heap has is filed
        }
    });
    let handles = handles.take();
    let pending = timer.pending_timeouts();
    assert_eq!(pending, THREADS);
    let mut ended: Vec<usize> = match end {
        End::Runs => {
            (0..60).for_each(|_| clock.advance_in_one_jump(TICK));
            assert!(handles.iter().all(|handle| handle.is_expired() && !handle.cancel()));
            ran.take()
        }
        End::Cancelled => {
            assert!(handles.iter().all(Timeout::cancel));
            assert!(handles.iter().all(|handle| handle.is_cancelled() && !handle.cancel()));
            (0..60).for_each(|_| clock.advance_in_one_jump(TICK));
            assert_eq!(ran.len(), 0);
            (0..THREADS).collect()
        }
        End::Stopped => {
            let left = timer.stop().unwrap();
            left.into_iter().for_each(|unprocessed| unprocessed.run());
            ran.take()
        }
    };
    ended.sort_unstable();
    assert!(ended.into_iter().eq(0..THREADS), "each ends once");
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(&timer);
}

#[test]
fn rule_01_timeouts_of_ended_threads_run() {
    threads_that_come_and_go(End::Runs);
}

#[test]
fn rule_01_timeouts_of_ended_threads_can_be_cancelled() {
    threads_that_come_and_go(End::Cancelled);
}

#[test]
fn rule_01_timeouts_of_ended_threads_are_returned_by_stop() {
    threads_that_come_and_go(End::Stopped);
}

/// Other threads move and cancel it, in the queue and in the wheel.
#[test]
fn rule_01_a_timeout_outlives_its_thread() {
    for in_wheel in [false, true] {
        let (timer, clock) = manual();
        let ran = Record::new();
        let delays = [5 * TICK, 50 * TICK, 50 * TICK, 5 * TICK, 7 * TICK];
        let [_as_it_was, sooner, cancelled, later, _] = std::thread::scope(|scope| {
            let schedule = || {
                let mut n = 0;
                let timeouts = delays.map(|delay| {
                    n += 1;
                    timer.new_timeout(ran.note(n), delay).unwrap()
                });
                if in_wheel {
                    into_the_wheel(&timer, &clock);
                }
                timeouts
            };
            scope.spawn(schedule).join().unwrap()
        });
        sooner.reschedule(2 * TICK).unwrap();
        later.reschedule(20 * TICK).unwrap();
        assert!(cancelled.cancel());
        let seen: Vec<_> = (0..60)
            .flat_map(|_| {
                clock.advance_in_one_jump(TICK);
                ran.take()
            })
            .collect();
        assert_eq!(seen, [2, 1, 5, 4], "in the wheel: {in_wheel}");
        assert_conserved(&timer);
    }
}

/// Many threads end while another cancels and moves the timeouts that they left.
#[test]
fn rule_01_threads_can_end_while_others_cancel_and_move_their_timeouts() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(ms(1)));
    let ran = Arc::new(AtomicUsize::new(0));
    let (hand, handed) = mpsc::channel::<Vec<Timeout>>();
    let (mut cancelled, mut moved) = (0, 0);
    std::thread::scope(|scope| {
        let (timer, ran, clock) = (&timer, &ran, &clock);
        scope.spawn(move || {
            threads(2000, |_| {
                let schedule = |n| {
                    let ran = ran.clone();
                    let task = move || _ = ran.fetch_add(1, SeqCst);
                    timer.new_timeout(task, ms(1) * n).unwrap()
                };
                hand.send((1..=100).map(schedule).collect()).unwrap();
            });
        });
        for (n, timeouts) in handed.iter().enumerate() {
            for timeout in timeouts.iter().step_by(2) {
                cancelled += usize::from(timeout.cancel());
            }
            for timeout in timeouts.iter().skip(1).step_by(10) {
                moved += usize::from(timeout.reschedule(ms(n as u64 % 50)).is_ok());
            }
            if n % 10 == 0 {
                clock.advance_in_one_jump(ms(1));
            }
        }
    });
    (0..200).for_each(|_| clock.advance_in_one_jump(ms(1)));
    let metrics = timer.metrics();
    assert_eq!(ran.load(SeqCst) + cancelled, 200_000, "{metrics:?}");
    assert_eq!((metrics.cancelled as usize, metrics.rescheduled as usize), (cancelled, moved));
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(&timer);
}

/// The counts include the timeouts of threads that have ended.
#[test]
fn rule_01_timeouts_of_ended_threads_stay_counted() {
    let (timer, clock) = manual();
    for wave in 1..=20 {
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait(); // all of them at once
                    let timeouts = [(); 10].map(|()| timer.new_timeout(|| (), TICK).unwrap());
                    assert!(timeouts[..3].iter().all(Timeout::cancel));
                    timeouts[3..5].iter().for_each(|timeout| timeout.reschedule(HOUR).unwrap());
                });
            }
        });
        clock.advance_in_one_jump(TICK);
        let metrics = timer.metrics();
        let counts = (metrics.scheduled, metrics.cancelled, metrics.rescheduled, metrics.expired);
        assert_eq!(counts, (wave * 80, wave * 24, wave * 16, wave * 40));
        assert_eq!(timer.pending_timeouts() as u64, wave * 16);
    }
    assert_conserved(&timer);
}
