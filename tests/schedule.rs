//! Scheduling and expiry. `build.rs` has the errors of settings out of range.

use crate::common::{
    Random, Record, TICK, eventually, into_the_wheel, manual_with, ms, on, one_look, sized,
};
use crate::on_every_wheel;
use std::time::{Duration, Instant};
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, RescheduleError};

on_every_wheel!(
    rule_02_no_timeout_is_early_by_instant,
    rule_02_a_timeout_is_late_by_less_than_a_tick,
    rule_02_a_timeout_fires_at_its_tick_and_not_before,
    a_timeout_can_be_scheduled_by_instant,
    rule_10_a_zero_delay_fires_at_the_next_tick,
    rule_10_the_longest_delay_never_fires,
    rule_08_a_far_timeout_does_not_hide_a_near_one,
    rule_07_timeouts_of_one_thread_and_tick_run_in_order,
    rule_07_far_timeouts_of_one_thread_and_tick_run_in_order,
    rule_07_ticks_run_in_order_after_a_stall,
    rule_07_rescheduled_timeouts_run_in_their_new_tick_after_a_stall,
    rule_07_a_year_passes_in_one_jump,
    rule_07_a_long_stall_does_not_cost_a_visit_for_each_round,
    a_handle_tells_how_its_timeout_ended,
    rule_03_an_advance_expires_everything_due_beyond_the_drain_cap,
    rule_07_ticks_keep_their_order_across_the_drain_cap,
);

fn rule_02_no_timeout_is_early_by_instant(wheel: WheelKind) {
    let timer = on(wheel).tick_duration(ms(1)).build().unwrap();
    let early = Record::new();
    let mut random = Random(1);
    for i in 0..2000 {
        let delay = Duration::from_micros(random.below(20_000));
        let early = early.clone();
        let scheduled = Instant::now();
        let task = move || early.push(delay.checked_sub(scheduled.elapsed()));
        timer.new_timeout(task, delay).unwrap();
        if i % 100 == 0 {
            std::thread::sleep(ms(1));
        }
    }
    eventually("all have run", || early.len() == 2000);
    let early: Vec<_> = early.take().into_iter().flatten().filter(|d| !d.is_zero()).collect();
    assert!(early.is_empty(), "early by {early:?}");
}

/// On the manual clock there is no scheduling delay, so only the tick makes a timeout late.
fn rule_02_a_timeout_is_late_by_less_than_a_tick(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let mut random = Random(2);
    for _ in 0..500 {
        let deadline = clock.elapsed() + Duration::from_micros(random.below(3_000_000));
        let (ran, now) = (ran.clone(), clock.clone());
        let task = move || ran.push((deadline, now.elapsed()));
        timer.new_timeout(task, deadline - clock.elapsed()).unwrap();
        clock.advance_in_one_jump(ms(7)); // not a divisor of the tick
    }
    (0..3000).for_each(|_| clock.advance_in_one_jump(ms(1)));
    let ran = ran.take();
    assert_eq!(ran.len(), 500);
    for (deadline, at) in ran {
        assert!(at >= deadline, "early by {:?}", deadline - at);
        assert!(at - deadline < TICK + ms(7), "late by {:?}", at - deadline);
    }
}

fn rule_02_a_timeout_fires_at_its_tick_and_not_before(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    timer.new_timeout(ran.note("exact"), ms(300)).unwrap();
    timer.new_timeout(ran.note("above"), ms(301)).unwrap();
    clock.advance_in_one_jump(ms(299));
    assert!(ran.take().is_empty());
    clock.advance_in_one_jump(ms(1));
    assert_eq!(ran.take(), ["exact"]);
    clock.advance_in_one_jump(ms(99));
    assert!(ran.take().is_empty());
    clock.advance_in_one_jump(ms(1));
    assert_eq!(ran.take(), ["above"]);
    assert_eq!(timer.pending_timeouts(), 0);
}

fn a_timeout_can_be_scheduled_by_instant(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let zero = timer.new_timeout(|| (), Duration::MAX).unwrap().now();
    timer.new_timeout_at(ran.note("at"), zero + ms(200)).unwrap();
    timer.new_timeout_at(ran.note("past"), zero - ms(200)).unwrap();
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), ["past"]);
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), ["at"]);
}

fn rule_10_a_zero_delay_fires_at_the_next_tick(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let (again, handle) = (ran.clone(), timer.clone());
    let chain = move || {
        again.push(1);
        handle.new_timeout(again.note(2), Duration::ZERO).unwrap();
    };
    timer.new_timeout(chain, Duration::ZERO).unwrap();
    clock.advance_in_one_jump(ms(99));
    assert!(ran.take().is_empty());
    clock.advance_in_one_jump(ms(1));
    assert_eq!(ran.take(), [1], "a task's own zero delay waits for the tick after");
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran.take(), [2]);
}

fn rule_10_the_longest_delay_never_fires(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let never = timer.new_timeout(ran.note("never"), Duration::MAX).unwrap();
    timer.new_timeout(ran.note("century"), Duration::from_secs(100 * 365 * 86_400)).unwrap();
    clock.advance_in_one_jump(Duration::from_secs(50 * 365 * 86_400));
    assert_eq!((ran.len(), timer.pending_timeouts()), (0, 2));
    clock.advance_in_one_jump(Duration::MAX);
    assert_eq!(ran.take(), ["century"]);
    clock.advance_in_one_jump(Duration::MAX);
    assert!(!never.is_expired());
    assert_eq!(never.reschedule(Duration::MAX), Ok(()));
    assert_eq!(timer.stop().unwrap().len(), 1);
}

#[test]
fn rule_10_a_wheel_of_one_bucket_works() {
    let (timer, clock) = manual_with(HashedWheelTimer::builder().ticks_per_wheel(1));
    let ran = Record::new();
    for n in [5u64, 1, 70_000, 3, 2, 4] {
        timer.new_timeout(ran.note(n), TICK * n as u32).unwrap();
    }
    (0..5).for_each(|_| clock.advance_in_one_jump(TICK));
    assert_eq!(ran.take(), [1, 2, 3, 4, 5]);
    clock.advance_in_one_jump(TICK * 69_994);
    assert!(ran.take().is_empty());
    clock.advance_in_one_jump(TICK);
    assert_eq!(ran.take(), [70_000]);
}

fn rule_08_a_far_timeout_does_not_hide_a_near_one(wheel: WheelKind) {
    let (timer, clock) = manual_with(sized(wheel, 8));
    let ran = Record::new();
    for ticks in [8 * 3 + 2, 8 + 2, 2u32] {
        timer.new_timeout(ran.note(ticks), TICK * ticks).unwrap();
    }
    into_the_wheel(&timer, &clock); // in this order
    assert!(ran.take().is_empty());
    let mut seen = Vec::new();
    for tick in 2..=40 {
        clock.advance_in_one_jump(TICK);
        seen.extend(ran.take().into_iter().map(|due| (tick, due)));
    }
    assert_eq!(seen, [(2, 2), (10, 10), (26, 26)]);
}

/// Some timeouts are cancelled, so that their slots are reused while the wheel still has their old
/// entries, earlier in the same bucket.
fn rule_07_timeouts_of_one_thread_and_tick_run_in_order(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let mut random = Random(3);
    let mut live = Vec::new();
    let due = TICK * 60; // after the fifty that go by
    for n in 0..5000 {
        let delay = due - ms(random.below(100)) - clock.elapsed();
        live.push((n, timer.new_timeout(ran.note(n), delay).unwrap()));
        if n % 100 == 99 {
            one_look(&timer, &clock); // some are cancelled before they are in the wheel, some after
        }
        if random.below(3) == 0 {
            let (_, timeout) = live.remove(random.below(live.len() as u64) as usize);
            assert!(timeout.cancel());
        }
    }
    clock.advance_in_one_jump(due - clock.elapsed());
    assert_eq!(ran.take(), live.iter().map(|&(n, _)| n).collect::<Vec<_>>());
}

/// On wheels with levels, far timeouts lie in coarse buckets that span many ticks.
fn rule_07_far_timeouts_of_one_thread_and_tick_run_in_order(wheel: WheelKind) {
    const TICKS: [u32; 4] = [100, 1000, 5000, 40_000];
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    for n in 0..400 {
        let tick = TICKS[n % TICKS.len()];
        timer.new_timeout(ran.note((tick, n)), TICK * tick).unwrap();
    }
    one_look(&timer, &clock);
    clock.advance_in_one_jump(TICK * 50_000);
    let ran = ran.take();
    assert_eq!(ran.len(), 400);
    assert!(ran.is_sorted(), "{ran:?}");
}

/// Stalls of less than a turn, of more than one, and of more rounds than an entry counts.
fn rule_07_ticks_run_in_order_after_a_stall(wheel: WheelKind) {
    for (buckets, stall) in [(64, 50u64), (64, 64), (64, 65), (8, 1000), (1, 500), (1, 200_000)] {
        let (timer, clock) = manual_with(sized(wheel, buckets));
        let ran = Record::new();
        let mut random = Random(4);
        for n in 0..2000 {
            let tick = 1 + random.below(stall + 20);
            timer.new_timeout(ran.note((tick, n)), TICK * tick as u32).unwrap();
        }
        clock.advance_in_one_jump(TICK * stall as u32);
        let ran = ran.take();
        assert!(ran.len() > 500 && ran.iter().all(|&(tick, _)| tick <= stall));
        assert!(ran.is_sorted(), "{buckets} buckets, a stall of {stall} ticks");
        assert_eq!(ran.len() + timer.pending_timeouts(), 2000);
    }
}

/// A timeout that was pushed back leaves the wheel at its previous tick, and is filed again.
fn rule_07_rescheduled_timeouts_run_in_their_new_tick_after_a_stall(wheel: WheelKind) {
    for stall in [10u32, 2000] {
        let (timer, clock) = manual_with(on(wheel));
        let ran = Record::new();
        let pushed_back = timer.new_timeout(ran.note(9), TICK * 3).unwrap();
        for tick in [2, 5, 10] {
            timer.new_timeout(ran.note(tick), TICK * tick).unwrap();
        }
        into_the_wheel(&timer, &clock);
        pushed_back.reschedule(TICK * 9 - clock.elapsed()).unwrap();
        clock.advance_in_one_jump(TICK * stall);
        assert_eq!(ran.take(), [2, 5, 9, 10]);
    }
}

fn rule_07_a_year_passes_in_one_jump(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    for day in [1u32, 100, 364, 400] {
        timer.new_timeout(ran.note(day), Duration::from_secs(86_400) * day).unwrap();
    }
    let wakeups = timer.metrics().wakeups;
    clock.advance_in_one_jump(Duration::from_secs(365 * 86_400));
    assert_eq!(ran.take(), [1, 100, 364]);
    let metrics = timer.metrics();
    assert!(metrics.wakeups - wakeups < 10, "one jump, not 315 million ticks");
    assert!(metrics.ticks_skipped > 315_000_000);
}

/// 50,000 far timeouts share one bucket, each in a round of its own: a jump over all of them must
/// not read the bucket once for each round. Quadratic work would be 2.5 billion visits; the proof
/// is that the test ends soon, and the assertion that the order holds.
fn rule_07_a_long_stall_does_not_cost_a_visit_for_each_round(wheel: WheelKind) {
    let (timer, clock) = manual_with(sized(wheel, 1));
    let ran = Record::new();
    let started = Instant::now();
    for round in (0..50_000u32).rev() {
        timer.new_timeout(ran.note(round), TICK * (round + 1)).unwrap();
    }
    clock.advance_in_one_jump(TICK * 50_001);
    let took = started.elapsed();
    assert_eq!(ran.take(), (0..50_000).collect::<Vec<_>>());
    assert!(took < Duration::from_secs(60), "{took:?}");
}

fn a_handle_tells_how_its_timeout_ended(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let timeout = timer.new_timeout(|| (), ms(200)).unwrap();
    let (copy, start) = (timeout.clone(), timeout.now());
    assert_eq!(timeout.deadline(), Some(start + ms(200)));
    assert!(format!("{timeout:?}").contains("pending"), "{timeout:?}");
    clock.advance_in_one_jump(ms(200));
    assert!(timeout.is_expired() && copy.is_expired());
    assert!(!timeout.is_cancelled() && !timeout.cancel());
    assert_eq!(timeout.deadline(), None);
    assert_eq!(timeout.reschedule(ms(1)), Err(RescheduleError::Expired));
    // The slot has other users now; the old handles still tell the truth.
    let others: Vec<_> = (0..100).map(|_| timer.new_timeout(|| (), ms(100)).unwrap()).collect();
    assert!(others.iter().all(|other| other.cancel()));
    assert!(timeout.is_expired() && copy.is_expired() && !copy.is_cancelled());
}

/// 250,000 are due at once, and one transfer takes 100,000.
fn rule_03_an_advance_expires_everything_due_beyond_the_drain_cap(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    clock.advance_in_one_jump(Duration::ZERO);
    (0..250_000).for_each(|_| drop(timer.new_timeout(|| (), TICK).unwrap()));
    clock.advance_in_one_jump(TICK);
    assert_eq!(timer.pending_timeouts(), 0);
}

fn rule_07_ticks_keep_their_order_across_the_drain_cap(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let later = std::sync::Arc::new(std::sync::Once::new());
    for _ in 0..200_000 {
        let (later, ran) = (later.clone(), ran.clone());
        timer.new_timeout(move || later.call_once(|| ran.push("later")), TICK * 2).unwrap();
    }
    timer.new_timeout(ran.note("sooner"), TICK).unwrap();
    clock.advance_in_one_jump(TICK * 10);
    assert_eq!(ran.take(), ["sooner", "later"]);
}

/// The clock jumps into ticks that have just come into reach of the buckets.
#[test]
fn rule_07_ticks_run_in_order_after_a_jump_to_the_end_of_the_reach() {
    let builder = HashedWheelTimer::builder().tick_duration(ms(1)).ticks_per_wheel(1);
    let (timer, clock) = manual_with(builder);
    let (ran, start) = (Record::new(), timer.started_at());
    let schedule = |at: u64| drop(timer.new_timeout_at(ran.note(at), start + ms(at)).unwrap());
    schedule(100);
    clock.advance_in_one_jump(ms(100));
    [65_600, 65_700, 105].into_iter().for_each(schedule);
    clock.advance_in_one_jump(ms(5));
    [65_550, 110].into_iter().for_each(schedule);
    clock.advance_in_one_jump(ms(5));
    clock.advance_in_one_jump(ms(70_000));
    assert_eq!(ran.take(), [100, 105, 110, 65_550, 65_600, 65_700]);
}

#[test]
fn rule_10_a_timer_survives_the_end_of_time() {
    let (timer, clock) =
        manual_with(HashedWheelTimer::builder().tick_duration(Duration::from_micros(50)));
    let ran = Record::new();
    timer.new_timeout(ran.note(()), Duration::from_secs(9)).unwrap();
    timer.new_timeout(|| (), Duration::MAX).unwrap();
    clock.advance_in_one_jump(Duration::from_nanos(u64::MAX - 5));
    assert_eq!(ran.len(), 1);
    (0..2).for_each(|_| clock.advance_in_one_jump(Duration::from_nanos(5)));
    timer.new_timeout(|| (), Duration::ZERO).expect("it runs still");
    assert_eq!(timer.stop().unwrap().len(), 2);
}

/// The last tick of the end of time begins with what means never.
#[test]
fn rule_10_a_delay_of_the_longest_duration_does_not_end_at_the_end_of_time() {
    let tick = Duration::from_nanos(4_294_967_293);
    let (timer, clock) = manual_with(HashedWheelTimer::builder().tick_duration(tick));
    clock.advance_in_one_jump(Duration::from_nanos(u64::MAX) - 10 * tick);
    let ran = Record::new();
    timer.new_timeout(|| (), 2 * tick).unwrap();
    let last = timer.new_timeout(ran.note(()), 9 * tick).unwrap();
    clock.advance(3 * tick);
    last.reschedule(Duration::MAX).unwrap();
    clock.advance(Duration::MAX);
    assert_eq!((ran.len(), last.is_pending()), (0, true));
}
