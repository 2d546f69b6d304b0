//! The sleeper of AWS SDKs.

use crate::common::{TICK, manual};
use crate::wakers::Alarm;
use aws_smithy_async::future::timeout::Timeout;
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use std::future::{pending, ready};
use std::pin::pin;
use std::task::Poll;

#[test]
fn a_call_that_never_completes_times_out_on_the_timer() {
    let (timer, clock) = manual();
    let (sleeper, alarm) = (SharedAsyncSleep::new(timer.clone()), Alarm::new());
    let mut call = pin!(Timeout::new(pending::<()>(), sleeper.sleep(3 * TICK)));
    clock.advance_in_one_jump(2 * TICK);
    assert!(alarm.poll(&mut call).is_pending());
    assert_eq!(alarm.wakes(), 0);
    clock.advance_in_one_jump(TICK);
    assert_eq!(alarm.wakes(), 1);
    assert!(matches!(alarm.poll(&mut call), Poll::Ready(Err(_))));
}

#[test]
fn a_call_that_completes_leaves_nothing_in_the_timer() {
    let (timer, _clock) = manual();
    let alarm = Alarm::new();
    let mut sleep = AsyncSleep::sleep(&timer, 3 * TICK);
    assert!(alarm.poll(&mut sleep).is_pending());
    assert_eq!(timer.pending_timeouts(), 1);
    let mut call = pin!(Timeout::new(ready(7), sleep));
    assert!(matches!(alarm.poll(&mut call), Poll::Ready(Ok(7))));
    call.set(Timeout::new(ready(7), AsyncSleep::sleep(&timer, TICK)));
    assert_eq!((timer.pending_timeouts(), alarm.clones()), (0, 0));
}
