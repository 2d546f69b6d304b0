//! Sleeps of one thread, driven by the test. The clock stands still between two calls.

use crate::common::wakers::{Alarm, Hooks};
use crate::common::{Random, ms};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use wheelwork::ManualClock;
use wheelwork::wheel::{LocalSleep, LocalTimer};

fn manual() -> (LocalTimer, ManualClock) {
    let clock = ManualClock::new();
    (LocalTimer::with_clock(ms(10), clock.clone()).unwrap(), clock)
}

/// Lets time pass. Returns the number of wake-ups.
fn pass(timer: &LocalTimer, clock: &ManualClock, by: Duration) -> usize {
    clock.advance_in_one_jump(by);
    timer.turn()
}

#[test]
fn rule_02_a_sleep_is_never_early_and_late_by_less_than_a_tick() {
    let (timer, clock) = manual();
    let (start, mut random) = (timer.now(), Random(7));
    let mut sleeps: Vec<(LocalSleep, Alarm)> = Vec::new();
    for _ in 0..500 {
        let mut sleep = timer.sleep(Duration::from_micros(1 + random.below(5_000_000)));
        let alarm = Alarm::new();
        assert!(alarm.poll(&mut sleep).is_pending());
        sleeps.push((sleep, alarm));
    }
    while let Some(next) = timer.next_deadline() {
        assert_eq!(timer.turn(), 0, "nothing is due between two deadlines");
        clock.advance_in_one_jump(timer.time_to_park().unwrap());
        assert_eq!(timer.now(), next);
        let woken = timer.turn();
        let due = |sleep: &LocalSleep| sleep.deadline() <= next;
        assert_eq!(sleeps.iter().filter(|(sleep, _)| due(sleep)).count(), woken);
        let (ready, waiting) = sleeps.into_iter().partition::<Vec<_>, _>(|(sleep, _)| due(sleep));
        sleeps = waiting;
        for (mut sleep, alarm) in ready {
            assert_eq!(alarm.wakes(), 1);
            assert!(alarm.poll(&mut sleep).is_ready());
            assert!(next < sleep.deadline() + ms(10), "late");
        }
    }
    assert!(sleeps.is_empty() && timer.now() - start <= ms(5010));
}

#[test]
fn the_clock_decides_and_not_the_turn() {
    let (timer, clock) = manual();
    let (mut sleep, alarm) = (timer.sleep(ms(25)), Alarm::new());
    assert!(alarm.poll(&mut sleep).is_pending());
    clock.advance_in_one_jump(ms(25));
    assert!(sleep.is_elapsed() && alarm.poll(&mut sleep).is_ready());
    assert_eq!((timer.turn(), timer.waiting(), alarm.clones()), (0, 0, 0));
    assert!(alarm.poll(&mut timer.sleep(Duration::ZERO)).is_ready());
    assert!(alarm.poll(&mut timer.sleep_until(timer.now())).is_ready());
}

#[test]
fn a_reset_moves_the_wake_up_without_a_poll() {
    let (timer, clock) = manual();
    let (mut sleep, alarm) = (timer.sleep(ms(50)), Alarm::new());
    assert!(alarm.poll(&mut sleep).is_pending());
    sleep.reset_after(ms(200));
    assert_eq!(pass(&timer, &clock, ms(100)), 0);
    sleep.reset_after(ms(20));
    assert_eq!(pass(&timer, &clock, ms(20)), 1);
    assert!(alarm.poll(&mut sleep).is_ready());

    sleep.reset_after(ms(30)); // used again
    assert!(alarm.poll(&mut sleep).is_pending());
    sleep.reset(timer.now() - ms(5));
    assert_eq!((timer.turn(), alarm.wakes(), timer.waiting()), (0, 2, 0), "woken immediately");
    assert!(alarm.poll(&mut sleep).is_ready());
}

#[test]
fn the_latest_waker_is_woken_and_a_drop_frees_it() {
    let (timer, clock) = manual();
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut sleep = timer.sleep(ms(50));
    assert!(first.poll(&mut sleep).is_pending());
    assert!(second.poll(&mut sleep).is_pending());
    assert!(second.poll(&mut sleep).is_pending());
    assert_eq!((first.clones(), second.clones(), timer.waiting()), (0, 1, 1));
    let mut other = timer.sleep(ms(50));
    assert!(first.poll(&mut other).is_pending());
    drop(other);
    assert_eq!((first.clones(), timer.waiting()), (0, 1));
    assert_eq!(pass(&timer, &clock, ms(60)), 1);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

#[test]
fn rule_10_a_sleep_for_ever_never_ends() {
    let (timer, clock) = manual();
    let (mut sleep, alarm) = (timer.sleep(Duration::MAX), Alarm::new());
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!(pass(&timer, &clock, Duration::from_secs(1 << 31)), 0);
    assert!(alarm.poll(&mut sleep).is_pending());
    assert!(LocalTimer::with_tick(Duration::ZERO).is_err());
    assert!(timer.interval(Duration::ZERO).is_err());
}

#[test]
fn a_limit_ends_a_future_that_is_too_slow() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let mut slow = timer.timeout(ms(30), pending::<()>());
    assert!(alarm.poll(&mut slow).is_pending());
    assert_eq!(pass(&timer, &clock, ms(30)), 1);
    assert!(matches!(alarm.poll(&mut slow), Poll::Ready(Err(_))));
    let mut quick = timer.timeout_at(timer.now(), std::future::ready(7));
    assert_eq!(alarm.poll(&mut quick), Poll::Ready(Ok(7)), "the future goes first");
}

#[test]
fn an_interval_skips_missed_ticks_and_keeps_its_schedule() {
    let (timer, clock) = manual();
    let (mut interval, alarm, start) =
        (timer.interval(ms(100)).unwrap(), Alarm::new(), timer.now());
    let mut poll = || interval.poll_tick(&mut alarm.context()).map(|due| due - start);
    assert!(poll().is_pending());
    pass(&timer, &clock, ms(130));
    assert_eq!(poll(), Poll::Ready(ms(100)));
    assert!(poll().is_pending());
    pass(&timer, &clock, ms(420)); // at 550
    assert_eq!(poll(), Poll::Ready(ms(200)));
    assert!(poll().is_pending());
    pass(&timer, &clock, ms(50));
    assert_eq!(poll(), Poll::Ready(ms(600)));
    assert_eq!((interval.next_tick() - start, interval.period()), (ms(700), ms(100)));
    pass(&timer, &clock, ms(30));
    interval.reset();
    assert_eq!(interval.next_tick() - start, ms(730));
}

#[test]
fn a_turn_can_stop_and_go_on() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let mut sleeps: Vec<LocalSleep> = (0..25).map(|_| timer.sleep(ms(10))).collect();
    sleeps.iter_mut().for_each(|sleep| assert!(alarm.poll(sleep).is_pending()));
    clock.advance_in_one_jump(ms(10));
    for woken in [10, 20] {
        assert!(!timer.turn_at_most(10));
        assert_eq!((alarm.wakes(), timer.time_to_park()), (woken, Some(Duration::ZERO)));
    }
    assert!(timer.turn_at_most(10));
    assert_eq!((alarm.wakes(), timer.time_to_park()), (25, None));
}

thread_local! {
    static TIMER: RefCell<Option<LocalTimer>> = const { RefCell::new(None) };
    static SLEEPS: Cell<Vec<LocalSleep>> = const { Cell::new(Vec::new()) };
}

/// An executor may poll inside `wake`, and a task may sleep again, drop others, and drive the timer.
#[test]
fn rule_05_a_waker_may_use_the_timer() {
    let (timer, clock) = manual();
    TIMER.set(Some(timer.clone()));
    let sleep_again = || {
        TIMER.with_borrow(|timer| {
            let timer = timer.as_ref().expect("it is set");
            let mut sleep = timer.sleep(ms(10));
            assert!(Alarm::new().poll(&mut sleep).is_pending());
            timer.turn();
            let mut sleeps = SLEEPS.take();
            sleeps.push(sleep);
            SLEEPS.set(sleeps);
        });
    };
    let use_timer = || _ = TIMER.with_borrow(|timer| timer.as_ref().map(LocalTimer::turn));
    for _ in 0..3 {
        let hooks = Hooks {
            on_wake: Box::new(sleep_again),
            on_clone: Box::new(use_timer),
            on_drop: Box::new(use_timer),
        };
        let (waker, mut sleep) = (hooks.waker(), timer.sleep(ms(20)));
        assert!(pin!(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(Alarm::new().poll(&mut sleep).is_pending(), "replaces the first");
        assert!(pin!(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
        let mut sleeps = SLEEPS.take();
        sleeps.push(sleep);
        SLEEPS.set(sleeps);
    }
    assert!(pass(&timer, &clock, ms(20)) >= 1);
    assert_eq!(timer.waiting(), 3, "they sleep again, and were not woken in the same turn");
    drop((SLEEPS.take(), TIMER.take()));
    assert_eq!(timer.waiting(), 0);
}

#[test]
fn rule_05_a_waker_that_panics_hurts_nobody_else() {
    let (timer, clock) = manual();
    let hooks = Hooks { on_wake: Box::new(|| panic!("a bad waker")), ..Hooks::default() };
    let (waker, mut sleep) = (hooks.waker(), timer.sleep(ms(10)));
    assert!(pin!(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
    let (alarm, mut other) = (Alarm::new(), timer.sleep(ms(10)));
    assert!(alarm.poll(&mut other).is_pending());
    clock.advance_in_one_jump(ms(10));
    assert!(catch_unwind(AssertUnwindSafe(|| timer.turn())).is_err());
    assert_eq!((timer.time_to_park(), timer.turn()), (Some(Duration::ZERO), 1));
    assert_eq!(alarm.wakes(), 1);
}

#[test]
fn the_driver_learns_of_an_earlier_deadline() {
    let (timer, clock) = manual();
    let (driver, alarm) = (Alarm::new(), Alarm::new());
    let mut earlier = Box::pin(timer.earlier());
    assert!(driver.poll(&mut earlier).is_pending());
    let mut sleep = timer.sleep(ms(100));
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!(driver.wakes(), 1, "the first of all");
    assert!(driver.poll(&mut earlier).is_ready());

    let mut earlier = Box::pin(timer.earlier());
    assert!(driver.poll(&mut earlier).is_pending());
    let mut later = timer.sleep(ms(200));
    assert!(alarm.poll(&mut later).is_pending());
    assert_eq!(driver.wakes(), 1);
    later.reset_after(ms(50));
    assert_eq!(driver.wakes(), 2);
    assert!(driver.poll(&mut earlier).is_ready());
    assert_eq!(pass(&timer, &clock, ms(50)), 1);
}

#[test]
fn a_driver_that_is_dropped_takes_its_waker_out() {
    let (timer, _clock) = manual();
    let (first, second) = (Alarm::new(), Alarm::new());
    let mut earlier = Box::pin(timer.earlier());
    assert!(first.poll(&mut earlier).is_pending());
    drop(earlier);
    assert_eq!(first.clones(), 0);

    let (mut earlier, mut next) = (Box::pin(timer.earlier()), Box::pin(timer.earlier()));
    assert!(first.poll(&mut earlier).is_pending());
    assert!(second.poll(&mut next).is_pending());
    drop(earlier);
    assert_eq!((first.clones(), second.clones()), (0, 1), "another one took its place");
    let mut sleep = timer.sleep(ms(100));
    assert!(first.poll(&mut sleep).is_pending());
    assert_eq!(second.wakes(), 1);
}

#[test]
fn it_works_on_the_systems_clock() {
    let timer = LocalTimer::default();
    let (begin, alarm) = (Instant::now(), Alarm::new());
    let mut sleep = timer.sleep(ms(3));
    let mut waited = false; // not if this thread was interrupted for as long
    while alarm.poll(&mut sleep).is_pending() {
        waited = true;
        std::thread::sleep(timer.time_to_park().expect("it waits"));
        timer.turn();
    }
    assert!(begin.elapsed() >= ms(3) && alarm.wakes() == usize::from(waited));
    assert!(format!("{timer:?} {sleep:?}").contains("waiting: 0"));
}

#[test]
fn rule_04_a_sleep_takes_40_bytes() {
    let size = size_of::<LocalSleep>();
    assert!(if cfg!(target_pointer_width = "64") { size == 40 } else { size < 40 }, "{size}");
}
