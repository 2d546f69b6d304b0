//! Slots and heaps that are used again and again.

use super::HOUR;
use crate::common::{
    Random, Record, TICK, assert_conserved, blocking_task, manual, manual_with, on,
};
use crate::on_every_wheel;
use std::sync::mpsc;
use std::time::Duration;
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, ManualClock, RescheduleError, Timeout};

on_every_wheel!(
    rule_07_timeouts_of_one_thread_run_in_order_in_reused_slots,
    rule_07_timeouts_of_one_thread_run_in_order_through_a_backlog,
);

/// Handles stay right however often other slots are reused.
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
    clock.advance_in_one_jump(TICK);
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
            clock.advance_in_one_jump(TICK);
            exact();
        }
    }
    drop(window);
    exact();
    assert!(pending.iter().all(Timeout::cancel));
    assert_conserved(&timer);
}

/// The timers end in another order than they began.
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
            clock.advance_in_one_jump(TICK);
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

/// Random schedules and cancels of one thread. Its slots, in several chunks, are reused in any order.
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
                clock.advance_in_one_jump(Duration::ZERO);
            }
        }
        let mut expected: Vec<u64> = live.iter().map(|&(number, _)| number).collect();
        expected.sort_unstable();
        // The handles of some are kept for a round.
        live.truncate(random.below(live.len() as u64) as usize);
        clock.advance_in_one_jump(TICK);
        assert!(ran.take() == expected, "round {round}");
    }
}

/// Beyond the drain cap, with another thread that cancels, while the worker is busy.
fn rule_07_timeouts_of_one_thread_run_in_order_through_a_backlog(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let (blocking, gate) = blocking_task();
    // Slots in many chunks, freed in any order.
    let mut burst: Vec<_> = (0..5000).map(|_| timer.new_timeout(|| (), HOUR).unwrap()).collect();
    let mut random = Random(11);
    while !burst.is_empty() {
        assert!(burst.swap_remove(random.below(burst.len() as u64) as usize).cancel());
    }
    timer.new_timeout(blocking, TICK).unwrap();
    let mut expected = Vec::new();
    std::thread::scope(|scope| {
        let advance = scope.spawn(|| clock.advance_in_one_jump(TICK));
        gate.wait();
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
        gate.open();
        advance.join().unwrap();
    });
    (0..3).for_each(|_| clock.advance_in_one_jump(TICK));
    assert!(expected.len() > 100_000 && ran.take() == expected);
    assert_conserved(&timer);
}
