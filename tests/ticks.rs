//! Ticks that are no multiple of 8 ns, the step of deadlines. Tick n begins at the first step that is not
//! before n tick lengths.

use crate::common::{Random, Record, manual_with, on};
use crate::on_every_wheel;
use crate::wakers::Alarm;
use std::ops::ControlFlow;
use std::task::Poll;
use std::time::Duration;
use wheelwork::future::DelayQueue;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, ManualClock, Period};

/// 60 Hz, thirds of a millisecond and of a second, and others. The last two are multiples of 8 ns.
const LENGTHS: [u64; 8] =
    [777_777, 16_666_666, 333_333, 333_333_333, 50_001, 50_007, 777_776, 1_000_000];

const NANO: Duration = Duration::from_nanos(1);

fn timer(wheel: WheelKind, length: u64) -> (HashedWheelTimer, ManualClock) {
    manual_with(on(wheel).tick_duration(Duration::from_nanos(length)))
}

/// The start of tick `n`, in nanoseconds.
fn start(n: u64, length: u64) -> u64 {
    (n * length).next_multiple_of(8)
}

fn advance_to(clock: &ManualClock, nanos: u64) {
    clock.advance_in_one_jump(Duration::from_nanos(nanos) - clock.elapsed());
}

on_every_wheel!(
    rule_02_a_timeout_of_n_ticks_runs_at_tick_n,
    rule_02_a_timeout_is_late_by_less_than_an_odd_tick,
    rule_02_a_sleep_is_woken_at_its_tick,
);

fn rule_02_a_timeout_of_n_ticks_runs_at_tick_n(wheel: WheelKind) {
    for length in LENGTHS {
        let (timer, clock) = timer(wheel, length);
        let ran = Record::new();
        for n in 1..=40 {
            timer.new_timeout(ran.note(n), Duration::from_nanos(n * length)).unwrap();
        }
        for n in 1..=40 {
            advance_to(&clock, start(n, length) - 1);
            assert!(ran.take().is_empty(), "before tick {n} of {length} ns");
            clock.advance_in_one_jump(NANO);
            assert_eq!(ran.take(), [n], "at tick {n} of {length} ns");
        }
    }
}

/// A deadline counts from its rounded value.
fn rule_02_a_timeout_is_late_by_less_than_an_odd_tick(wheel: WheelKind) {
    for length in LENGTHS {
        let (timer, clock) = timer(wheel, length);
        let (ran, mut random) = (Record::new(), Random(length));
        for n in 1..2000 {
            let delay = random.below(5 * length);
            let now = clock.elapsed().as_nanos() as u64;
            let (ran, clock_of_task) = (ran.clone(), clock.clone());
            let task = move || ran.push((now + delay, clock_of_task.elapsed().as_nanos() as u64));
            timer.new_timeout(task, Duration::from_nanos(delay)).unwrap();
            advance_to(&clock, start(n, length));
        }
        clock.advance_in_one_jump(Duration::from_nanos(6 * length));
        let ran = ran.take();
        assert_eq!(ran.len(), 1999);
        for (deadline, at) in ran.into_iter().filter(|&(_, at)| at < start(1999, length)) {
            let late = at.checked_sub(deadline).expect("not early");
            assert!(late < length + 8, "late by {late} ns, ticks of {length}");
        }
    }
}

fn rule_02_a_sleep_is_woken_at_its_tick(wheel: WheelKind) {
    for length in LENGTHS {
        let (timer, clock) = timer(wheel, length);
        for n in 1..=9 {
            let (alarm, delay) = (Alarm::new(), Duration::from_nanos(n * length));
            let mut sleep = timer.sleep_until(timer.started_at() + delay);
            assert_eq!(alarm.poll(&mut sleep), Poll::Pending);
            advance_to(&clock, start(n, length));
            assert_eq!(alarm.wakes(), 1, "tick {n} of {length} ns");
            assert_eq!(alarm.poll(&mut sleep), Poll::Ready(()));
        }
    }
}

/// More values than a small queue has, so that some wait in the queue's own wheel.
#[test]
fn rule_02_values_come_out_at_their_ticks() {
    for length in LENGTHS {
        let (timer, clock) = timer(WheelKind::Hashed, length);
        let (alarm, mut queue) = (Alarm::new(), DelayQueue::new(&timer));
        for n in (1..=200).rev() {
            queue.insert(n, Duration::from_nanos(n * length));
        }
        for n in 1..=200 {
            assert!(queue.poll_next_due(&mut alarm.context()).is_pending());
            let wakes = alarm.wakes();
            advance_to(&clock, start(n, length));
            assert_eq!(alarm.wakes(), wakes + 1, "tick {n} of {length} ns");
            let due = queue.poll_next_due(&mut alarm.context());
            assert!(matches!(due, Poll::Ready(Some(due)) if due.value == n), "at tick {n}");
        }
    }
}

/// At each tick: a connection is idle at some time between that tick's start and the one before.
#[test]
fn rule_02_an_idle_connection_is_reported_at_the_first_tick_after_its_deadline() {
    for length in LENGTHS {
        let (timer, clock) = timer(WheelKind::Hashed, length);
        let reports = Record::new();
        let (record, now) = (reports.clone(), clock.clone());
        let idle = IdleTimeouts::new(&timer, move |&mut id: &mut u64, _| {
            record.push((id, now.elapsed().as_nanos() as u64));
            Answer::StopWatching
        });
        let after = 212_777 % length;
        let policy = IdlePolicy::new().both(Duration::from_nanos(after));
        let mut random = Random(length);
        for n in 1..=100 {
            // It becomes idle at a step after the last tick and up to this one.
            let earliest = start(n - 1, length) + 1;
            let deadline = match n % 3 {
                0 => n * length,
                1 => start(n, length),
                _ => earliest + random.below(start(n, length) - earliest),
            };
            if deadline < after {
                continue;
            }
            advance_to(&clock, (deadline - after).max(clock.elapsed().as_nanos() as u64));
            let deadline = clock.elapsed().as_nanos() as u64 + after;
            let first = (n..).find(|&n| start(n, length) >= deadline).unwrap();
            let watch = idle.watch(n, &policy).unwrap();
            advance_to(&clock, start(first, length) - 1);
            assert_eq!(reports.take(), [], "before tick {first} of {length} ns");
            clock.advance_in_one_jump(NANO);
            assert_eq!(reports.take(), [(n, start(first, length))], "ticks of {length} ns");
            drop(watch);
        }
    }
}

#[test]
fn rule_02_a_period_of_one_tick_runs_at_every_tick() {
    for length in LENGTHS {
        let (timer, clock) = timer(WheelKind::Hashed, length);
        let ran = Record::new();
        let record = ran.clone();
        let task = move || {
            record.push(());
            ControlFlow::Continue(())
        };
        let period = Period::fixed_rate(Duration::from_nanos(length));
        let timeout = timer.new_periodic(task, period).unwrap();
        for n in 1..=100 {
            advance_to(&clock, start(n, length));
            assert_eq!(ran.take().len(), 1, "tick {n} of {length} ns");
        }
        assert!(timeout.cancel());
    }
}
