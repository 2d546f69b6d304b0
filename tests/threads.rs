//! Threads that schedule: they end before their timeouts, they cancel each other's, and each sees its own
//! in the order in which it scheduled them.
//!
//! `thread_memory.rs` measures their memory.

mod common;

use common::{
    Random, Record, TICK, assert_conserved, eventually, into_the_wheel, manual, manual_with, ms, on,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;
use wheelwork::{
    CancelOnDrop, HashedWheelTimer, ManualClock, RescheduleError, ScheduleError, Timeout, WheelKind,
};

on_every_wheel!(
    rule_07_timeouts_of_one_thread_run_in_order_in_reused_slots,
    rule_07_timeouts_of_one_thread_run_in_order_through_a_backlog,
);

const HOUR: Duration = Duration::from_secs(3600);
const THREADS: usize = 10_000;

/// What becomes of the timeouts of threads that have ended.
#[derive(Clone, Copy)]
enum End {
    Runs,
    Cancelled,
    Stopped,
}

/// Calls `act` on as many threads, several of them alive at once, and returns after their ends.
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
            clock.advance(TICK); // what this thread's heap has is filed
        }
    });
    let handles = handles.take();
    let pending = timer.pending_timeouts();
    assert_eq!(pending, THREADS);
    let mut ended: Vec<usize> = match end {
        End::Runs => {
            (0..60).for_each(|_| clock.advance(TICK));
            assert!(handles.iter().all(|handle| handle.is_expired() && !handle.cancel()));
            ran.take()
        }
        End::Cancelled => {
            assert!(handles.iter().all(Timeout::cancel));
            assert!(handles.iter().all(|handle| handle.is_cancelled() && !handle.cancel()));
            (0..60).for_each(|_| clock.advance(TICK));
            assert_eq!(ran.len(), 0);
            (0..THREADS).collect()
        }
        End::Stopped => {
            let left = timer.stop().unwrap();
            assert!(left.is_sorted_by_key(|unprocessed| unprocessed.deadline()));
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

/// In the queue and in the wheel, and moved by other threads than its own.
#[test]
fn rule_01_a_timeout_outlives_its_thread() {
    for in_wheel in [false, true] {
        let (timer, clock) = manual();
        let ran = Record::new();
        let delays = [5 * TICK, 50 * TICK, 50 * TICK, 5 * TICK, 7 * TICK];
        let [_as_it_was, sooner, cancelled, later, _] = std::thread::scope(|scope| {
            let schedule = || {
                let mut n = 0;
                delays.map(|delay| {
                    n += 1;
                    timer.new_timeout(ran.note(n), delay).unwrap()
                })
            };
            scope.spawn(schedule).join().unwrap()
        });
        if in_wheel {
            into_the_wheel(&timer, &clock);
        }
        sooner.reschedule(2 * TICK).unwrap();
        later.reschedule(20 * TICK).unwrap();
        assert!(cancelled.cancel());
        let seen: Vec<_> = (0..60)
            .flat_map(|_| {
                clock.advance(TICK);
                ran.take()
            })
            .collect();
        assert_eq!(seen, [2, 1, 5, 4], "in the wheel: {in_wheel}");
        assert_conserved(&timer);
    }
}

/// Does something when its thread drops it.
struct AtTheEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|act| act());
    }
}

thread_local! {
    static AT_THE_END: RefCell<Vec<AtTheEnd>> = const { RefCell::new(Vec::new()) };
}

/// Ends a thread that has scheduled in the timer, with `act` in a destructor of its thread-locals:
/// before that of the timer's own, or after it.
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
        clock.advance(TICK);
        let mut seen = ran.take();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..200));
        let kept: Timeout = kept.take().remove(0);
        kept.reschedule(TICK).unwrap();
        clock.advance(TICK);
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
        clock.advance(TICK);
        assert_eq!(ran.take(), [1]);
        assert_eq!((timer.pending_timeouts(), timer.metrics().cancelled), (2, 2));
        assert_conserved(&timer);
    }
}

/// Schedules another one when it is dropped.
struct Heir(HashedWheelTimer, Record<&'static str>);

impl Drop for Heir {
    fn drop(&mut self) {
        match self.0.new_timeout(self.1.note("the heir"), TICK) {
            Ok(_) => self.1.push("scheduled"),
            Err(ScheduleError::Stopped { .. }) => self.1.push("refused"),
            Err(error) => panic!("{error}"),
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
        clock.advance(TICK);
        assert_eq!(ran.take(), ["the heir"]);
        assert_conserved(&timer);
    }
}

/// The thread's end is the timer's end.
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

/// A stop ends timeouts whose drop schedules again: all of these are refused, none is lost.
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

/// The handles look at their own slots, however often the others are used.
#[test]
fn rule_01_handles_stay_exact_while_their_slots_are_used_again() {
    let millions = if cfg!(debug_assertions) { 1 } else { 5 };
    let (timer, clock) = manual();
    let mut expired = Vec::new();
    let mut cancelled = Vec::new();
    let mut pending = Vec::new();
    for n in 0..300 {
        let (timeouts, delay) = match n % 3 {
            0 => (&mut expired, TICK),
            1 => (&mut cancelled, HOUR),
            _ => (&mut pending, HOUR),
        };
        timeouts.push(timer.new_timeout(|| (), delay).unwrap());
    }
    clock.advance(TICK);
    assert!(cancelled.iter().all(Timeout::cancel));
    let deadlines: Vec<_> = pending.iter().map(Timeout::deadline).collect();
    let exact = || {
        for timeout in &expired {
            assert!(timeout.is_expired() && !timeout.is_cancelled() && !timeout.cancel());
            assert_eq!(timeout.reschedule(TICK), Err(RescheduleError::Expired));
            assert_eq!(timeout.deadline(), None);
        }
        for timeout in &cancelled {
            assert!(timeout.is_cancelled() && !timeout.is_expired() && !timeout.cancel());
            assert_eq!(timeout.reschedule(TICK), Err(RescheduleError::Cancelled));
            assert_eq!(timeout.deadline(), None);
        }
        for (timeout, deadline) in pending.iter().zip(&deadlines) {
            assert!(!timeout.is_cancelled() && !timeout.is_expired());
            assert_eq!(timeout.deadline(), *deadline);
        }
    };
    let mut window = std::collections::VecDeque::new();
    for n in 0..millions * 1_000_000 {
        window.push_back(timer.new_timeout(|| (), if n % 10 == 0 { TICK } else { HOUR }).unwrap());
        if window.len() > 100 {
            window.pop_front().expect("a hundred").cancel();
        }
        if n % 100_000 == 0 {
            clock.advance(TICK);
            exact();
        }
    }
    drop(window);
    exact();
    assert!(pending.iter().all(Timeout::cancel));
    assert_conserved(&timer);
}

/// Of many threads that end while others cancel and move what they have left.
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
                clock.advance(ms(1));
            }
        }
    });
    (0..200).for_each(|_| clock.advance(ms(1)));
    let metrics = timer.metrics();
    assert_eq!(ran.load(SeqCst) + cancelled, 200_000, "{metrics:?}");
    assert_eq!((metrics.cancelled as usize, metrics.rescheduled as usize), (cancelled, moved));
    assert_eq!(timer.pending_timeouts(), 0);
    assert_conserved(&timer);
}

/// A thread has timeouts in many timers, and the timers end in another order than they began.
#[test]
fn rule_01_one_thread_can_schedule_in_many_timers() {
    let mut timers: Vec<(HashedWheelTimer, ManualClock)> = (0..20).map(|_| manual()).collect();
    let ran = Record::new();
    let mut random = Random(9);
    while !timers.is_empty() {
        for _ in 0..20 {
            for (timer, _) in &timers {
                drop(timer.new_timeout(ran.note(()), TICK).unwrap());
                timer.new_timeout(|| (), HOUR).unwrap();
                assert!(timer.new_timeout(|| (), HOUR).unwrap().cancel());
            }
        }
        let mut pending = 0;
        for (timer, clock) in &timers {
            clock.advance(TICK);
            assert_conserved(timer);
            pending += timer.pending_timeouts();
        }
        assert_eq!(ran.take().len(), 20 * timers.len());
        let (timer, _) = timers.swap_remove(random.below(timers.len() as u64) as usize);
        let left = timer.pending_timeouts();
        assert!(left >= 20 && pending >= 20 * (timers.len() + 1));
        match random.below(2) {
            0 => assert_eq!(timer.stop().unwrap().len(), left),
            _ => drop(timer),
        }
    }
}

/// Every thread's timeouts are counted, also of those that have ended.
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
        clock.advance(TICK);
        let metrics = timer.metrics();
        let counts = (metrics.scheduled, metrics.cancelled, metrics.rescheduled, metrics.expired);
        assert_eq!(counts, (wave * 80, wave * 24, wave * 16, wave * 40));
        assert_eq!(timer.pending_timeouts() as u64, wave * 16);
    }
    assert_conserved(&timer);
}

/// Rule 7, in one tick: random schedules and cancels of one thread, so that its slots, in several
/// chunks, are used again in any order.
fn rule_07_timeouts_of_one_thread_run_in_order_in_reused_slots(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let mut random = Random(3);
    let mut number = 0;
    for round in 0..30 {
        let mut live: Vec<(u64, Timeout)> = Vec::new();
        for _ in 0..2000 {
            if random.below(3) > 0 || live.is_empty() {
                number += 1;
                live.push((number, timer.new_timeout(ran.note(number), TICK).unwrap()));
            } else {
                let (_, timeout) = live.swap_remove(random.below(live.len() as u64) as usize);
                assert!(timeout.cancel());
            }
            // The worker looks in between, but nothing is due.
            if random.below(500) == 0 {
                clock.advance(Duration::ZERO);
            }
        }
        let mut expected: Vec<u64> = live.iter().map(|&(number, _)| number).collect();
        expected.sort_unstable();
        // The handles of some are kept for a round.
        live.truncate(random.below(live.len() as u64) as usize);
        clock.advance(TICK);
        assert!(ran.take() == expected, "round {round}");
    }
}

/// The same beyond the drain cap, with another thread that cancels, and with a worker that is busy
/// meanwhile.
fn rule_07_timeouts_of_one_thread_run_in_order_through_a_backlog(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let (runs, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let blocking = move || {
        runs.send(()).unwrap();
        let _ = may_end.recv();
    };
    // Slots in many chunks, freed in any order.
    let mut burst: Vec<_> = (0..5000).map(|_| timer.new_timeout(|| (), HOUR).unwrap()).collect();
    let mut random = Random(11);
    while !burst.is_empty() {
        assert!(burst.swap_remove(random.below(burst.len() as u64) as usize).cancel());
    }
    timer.new_timeout(blocking, TICK).unwrap();
    let mut expected = Vec::new();
    std::thread::scope(|scope| {
        let advance = scope.spawn(|| clock.advance(TICK));
        has_begun.recv().unwrap();
        let (hand, handed) = mpsc::channel::<Timeout>();
        scope.spawn(move || handed.iter().for_each(|timeout| assert!(timeout.cancel())));
        for n in 0..180_000 {
            let timeout = timer.new_timeout(ran.note(n), Duration::ZERO).unwrap();
            match random.below(8) {
                0 => assert!(timeout.cancel()),
                1 => hand.send(timeout).unwrap(),
                _ => expected.push(n),
            }
        }
        drop(hand);
        end.send(()).unwrap();
        advance.join().unwrap();
    });
    (0..3).for_each(|_| clock.advance(TICK));
    assert!(expected.len() > 100_000 && ran.take() == expected);
    assert_conserved(&timer);
}
