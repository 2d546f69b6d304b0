//! Futures with a limit.

use crate::common::{manual, ms};
use crate::wakers::{Alarm, block_on};
use std::future::{pending, ready};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use wheelwork::future::{TimedFutureExt, TimeoutError};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_future_that_is_ready_wins_even_after_the_deadline() {
    let (timer, clock) = manual();
    let limited = timer.timeout(SECOND, ready(7));
    let at_once = timer.timeout(Duration::ZERO, ready(8));
    clock.advance_in_one_jump(2 * SECOND);
    assert_eq!((block_on(limited), block_on(at_once)), (Ok(7), Ok(8)));
    assert_eq!(timer.metrics().scheduled, 0, "the timer was not touched");
}

#[test]
fn a_future_that_is_pending_at_the_deadline_is_an_error() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let mut limited = pin!(timer.timeout(SECOND, pending::<()>()));
    assert_eq!(limited.deadline(), timer.now() + SECOND);
    assert_eq!(alarm.poll(&mut limited), Poll::Pending);
    clock.advance_in_one_jump(SECOND - ms(1));
    assert_eq!((alarm.wakes(), alarm.poll(&mut limited)), (0, Poll::Pending));
    clock.advance_in_one_jump(ms(1));
    assert_eq!(alarm.wakes(), 1);
    assert_eq!(alarm.poll(&mut limited), Poll::Ready(Err(TimeoutError::Elapsed)));
    assert_eq!(alarm.clones(), 0);
}

/// tokio#7883: every poll reads the clock, even if the worker has not run yet.
#[test]
fn a_limit_in_the_past_is_an_error_at_the_first_poll() {
    let (timer, clock) = manual();
    clock.advance_in_one_jump(SECOND);
    let limited = timer.timeout_at(timer.now() - ms(1), pending::<()>());
    assert_eq!(block_on(limited), Err(TimeoutError::Elapsed));
}

#[test]
fn a_future_that_becomes_ready_in_time_takes_the_limit_with_it() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    {
        let mut limited = pin!(timer.sleep(SECOND).timeout_on(&timer, 2 * SECOND));
        assert_eq!(alarm.poll(&mut limited), Poll::Pending);
        assert_eq!((timer.pending_timeouts(), alarm.clones()), (2, 2));
        clock.advance_in_one_jump(SECOND);
        assert_eq!(alarm.poll(&mut limited), Poll::Ready(Ok(())));
    }
    assert_eq!((timer.pending_timeouts(), alarm.clones()), (0, 0));
    clock.advance_in_one_jump(2 * SECOND);
    assert_eq!(alarm.wakes(), 1);
}

#[test]
fn a_stop_ends_it_with_an_error_of_its_own() {
    let (timer, _clock) = manual();
    let alarm = Alarm::new();
    let mut limited = pin!(pending::<()>().timeout_at_on(&timer, timer.now() + SECOND));
    assert_eq!(alarm.poll(&mut limited), Poll::Pending);
    timer.stop().unwrap();
    assert_eq!(alarm.wakes(), 1);
    assert_eq!(alarm.poll(&mut limited), Poll::Ready(Err(TimeoutError::Stopped)));
    assert!(TimeoutError::Stopped.was_stopped() && !TimeoutError::Elapsed.was_stopped());
    assert_eq!(
        [TimeoutError::Elapsed, TimeoutError::Stopped].map(|error| error.to_string()),
        ["the deadline has elapsed", "the timer is stopped"]
    );
}

#[test]
fn the_future_can_be_looked_at_and_taken_out() {
    let (timer, _clock) = manual();
    let mut limited = timer.timeout(SECOND, ready(3));
    assert_eq!(std::pin::Pin::new(&mut limited).get_pin_mut().take_ready(), 3);
    assert_eq!(format!("{:?}", limited.get_ref()), format!("{:?}", limited.into_inner()));
}

trait TakeReady<T> {
    fn take_ready(self) -> T;
}

impl<T> TakeReady<T> for std::pin::Pin<&mut std::future::Ready<T>> {
    fn take_ready(self) -> T {
        block_on(self)
    }
}
