//! Retries of backon.

use crate::common::{TICK, manual};
use crate::wakers::Alarm;
use backon::{ExponentialBuilder, Retryable};
use std::cell::Cell;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Attempts after 0, 1, 1 + 2 and 1 + 2 + 4 seconds.
#[test]
fn a_retry_with_backoff_waits_on_the_timer() {
    let (timer, clock) = manual();
    let (attempts, alarm) = (Cell::new(0), Alarm::new());
    let flaky = async || {
        attempts.set(attempts.get() + 1);
        if attempts.get() < 4 { Err("not yet") } else { Ok("done") }
    };
    let backoff = ExponentialBuilder::new().with_min_delay(10 * TICK).with_factor(2.0);
    let mut retry = pin!(flaky.retry(backoff).sleep(timer.clone()));
    for (attempt, delay) in [(1, 10), (2, 20), (3, 40)] {
        assert!(alarm.poll(&mut retry).is_pending());
        clock.advance_in_one_jump((delay - 1) * TICK);
        assert!(alarm.poll(&mut retry).is_pending());
        assert_eq!((attempts.get(), alarm.wakes()), (attempt, attempt - 1));
        clock.advance_in_one_jump(TICK);
        assert_eq!(alarm.wakes(), attempt);
    }
    assert_eq!(alarm.poll(&mut retry), Poll::Ready(Ok("done")));
    assert_eq!(timer.pending_timeouts(), 0);
}

#[test]
fn a_retry_does_not_wait_after_a_stop_of_the_timer() {
    let (timer, _clock) = manual();
    let (attempts, alarm) = (Cell::new(0), Alarm::new());
    let failing = async || {
        attempts.set(attempts.get() + 1);
        Err::<(), _>(attempts.get())
    };
    let hours = ExponentialBuilder::new().with_min_delay(Duration::from_secs(3600));
    let backoff = hours.with_max_delay(Duration::MAX).with_max_times(3);
    let mut retry = pin!(failing.retry(backoff).sleep(timer.clone()));
    assert!(alarm.poll(&mut retry).is_pending());
    timer.stop().unwrap();
    assert_eq!(alarm.wakes(), 1);
    assert_eq!(alarm.poll(&mut retry), Poll::Ready(Err(4)));
}
