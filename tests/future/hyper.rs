//! The timer as hyper's, through hyper's own interface.

use crate::common::{TICK, manual};
use crate::wakers::Alarm;
use hyper::rt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::future::Sleep;

const SECOND: Duration = Duration::from_secs(1);

type AnySleep = Pin<Box<dyn rt::Sleep>>;

/// What hyper holds.
fn as_hyper(timer: &HashedWheelTimer) -> &dyn rt::Timer {
    timer
}

#[test]
fn hyper_can_hold_the_timer() {
    fn anywhere<T: rt::Timer + Clone + Send + Sync + 'static>() {}
    anywhere::<HashedWheelTimer>();
}

#[test]
fn rule_02_a_sleep_of_hyper_is_ready_at_its_deadline_and_not_before() {
    let (timer, clock) = manual();
    let from_now = |timer| as_hyper(timer).sleep(SECOND);
    let until = |timer| as_hyper(timer).sleep_until(clock_of(timer) + SECOND);
    for create in [from_now, until] {
        let (alarm, mut sleep) = (Alarm::new(), create(&timer));
        assert!(alarm.poll(&mut sleep).is_pending());
        clock.advance_in_one_jump(SECOND - Duration::from_nanos(1));
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (0, Poll::Pending));
        clock.advance_in_one_jump(Duration::from_nanos(1));
        assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())));
        assert_eq!(alarm.poll(&mut sleep), Poll::Ready(()), "hyper polls again");
    }
}

#[test]
fn hyper_reads_the_clock_of_the_timer() {
    let (timer, clock) = manual();
    let before = clock_of(&timer);
    clock.advance_in_one_jump(3600 * SECOND);
    assert_eq!(clock_of(&timer), before + 3600 * SECOND);
}

#[test]
fn rule_10_a_maximal_delay_of_hyper_is_never() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), as_hyper(&timer).sleep(Duration::MAX));
    assert!(alarm.poll(&mut sleep).is_pending());
    clock.advance_in_one_jump(1_000_000 * SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (0, Poll::Pending));
}

#[test]
fn a_reset_by_hyper_moves_the_sleep_and_its_waker() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), as_hyper(&timer).sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    let place = address(&sleep);
    as_hyper(&timer).reset(&mut sleep, timer.now() + 2 * SECOND);
    assert_eq!((address(&sleep), timer.metrics().scheduled), (place, 1), "the same sleep");
    clock.advance_in_one_jump(SECOND + TICK);
    assert_eq!(alarm.wakes(), 0);
    clock.advance_in_one_jump(SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())));
    as_hyper(&timer).reset(&mut sleep, timer.now() + SECOND);
    assert!(alarm.poll(&mut sleep).is_pending(), "it can be awaited again");
}

#[test]
fn a_reset_by_hyper_into_the_past_wakes() {
    let (timer, clock) = manual();
    clock.advance_in_one_jump(2 * SECOND);
    let (alarm, mut sleep) = (Alarm::new(), as_hyper(&timer).sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    as_hyper(&timer).reset(&mut sleep, timer.now() - SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())));
}

/// A sleep of some other runtime.
struct Foreign;

impl Future for Foreign {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl rt::Sleep for Foreign {}

#[test]
fn a_reset_replaces_a_sleep_of_a_foreign_type() {
    let (timer, clock) = manual();
    let mut sleep: AnySleep = Box::pin(Foreign);
    as_hyper(&timer).reset(&mut sleep, timer.now() + SECOND);
    let alarm = Alarm::new();
    assert!((*sleep).is::<Sleep>() && alarm.poll(&mut sleep).is_pending());
    clock.advance_in_one_jump(SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())));
}

#[test]
fn a_reset_replaces_a_sleep_of_another_timer_and_wakes_its_task() {
    let ((timer, clock), (other, _)) = (manual(), manual());
    let (alarm, mut sleep) = (Alarm::new(), as_hyper(&other).sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    as_hyper(&timer).reset(&mut sleep, timer.now() + 2 * SECOND);
    assert_eq!((alarm.wakes(), other.pending_timeouts()), (1, 0));
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!((timer.pending_timeouts(), other.pending_timeouts()), (1, 0));
    drop(other.stop());
    clock.advance_in_one_jump(2 * SECOND);
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (2, Poll::Ready(())));
}

#[test]
fn a_stop_wakes_what_hyper_waits_for_and_a_reset_is_not_ready_at_once() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), as_hyper(&timer).sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending());
    assert!(timer.stop().unwrap().is_empty());
    assert_eq!((alarm.wakes(), alarm.poll(&mut sleep)), (1, Poll::Ready(())));

    // A loop that sleeps would never yield if this one was ready.
    as_hyper(&timer).reset(&mut sleep, clock_of(&timer) + SECOND);
    let mut created = as_hyper(&timer).sleep(SECOND);
    for sleep in [&mut sleep, &mut created] {
        assert!(alarm.poll(sleep).is_pending());
        assert_eq!(alarm.clones(), 0);
    }
    clock.advance_in_one_jump(SECOND);
    for sleep in [&mut sleep, &mut created] {
        assert_eq!(alarm.poll(sleep), Poll::Ready(()));
    }
}

fn clock_of(timer: &HashedWheelTimer) -> Instant {
    as_hyper(timer).now()
}

fn address(sleep: &AnySleep) -> *const () {
    (&raw const **sleep).cast()
}
