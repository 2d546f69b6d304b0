//! Futures that are due now are ready at their first poll, on the system's clock. Its quick form may be
//! a few microseconds ahead of it.

use crate::common::ms;
use crate::wakers::Alarm;
use std::time::{Duration, Instant};
use wheelwork::future::DelayQueue;
use wheelwork::{HashedWheelTimer, Period};

const TRIES: usize = 1000;

const HOUR: Duration = Duration::from_secs(3600);

/// A timer in a process whose quick clock is in use, which takes some 40 ms.
fn warm() -> HashedWheelTimer {
    let timer = HashedWheelTimer::new().unwrap();
    let until = Instant::now() + ms(80);
    while Instant::now() < until {
        use_quick_clock(&timer);
        std::thread::sleep(ms(1));
    }
    timer
}

/// After this call, the calling thread counts from a recent anchor.
fn use_quick_clock(timer: &HashedWheelTimer) {
    drop(timer.sleep(HOUR));
}

/// Makes and polls many futures shortly after other calls on the timer.
fn all_ready(mut is_ready: impl FnMut(&HashedWheelTimer, &Alarm) -> bool) {
    let (timer, alarm) = (warm(), Alarm::new());
    let is_late = |_: &usize| {
        (0..20).for_each(|_| use_quick_clock(&timer));
        !is_ready(&timer, &alarm)
    };
    let late = (0..TRIES).filter(is_late).count();
    assert_eq!(late, 0, "of {TRIES} waited");
}

#[test]
fn a_sleep_of_zero_is_ready_at_its_first_poll() {
    all_ready(|timer, alarm| alarm.poll(&mut timer.sleep(Duration::ZERO)).is_ready());
}

#[test]
fn a_sleep_that_is_reset_to_zero_is_ready_at_its_next_poll() {
    all_ready(|timer, alarm| {
        let mut sleep = timer.sleep(HOUR);
        assert!(alarm.poll(&mut sleep).is_pending());
        sleep.reset_after(Duration::ZERO);
        alarm.poll(&mut sleep).is_ready()
    });
}

#[test]
fn a_limit_of_zero_has_passed_at_its_first_poll() {
    all_ready(|timer, alarm| {
        let never = std::future::pending::<()>();
        alarm.poll(&mut timer.timeout(Duration::ZERO, never)).is_ready()
    });
}

#[test]
fn the_first_tick_after_a_delay_of_zero_is_ready_at_its_first_poll() {
    let period = Period::fixed_rate(HOUR).initial_delay(Duration::ZERO);
    all_ready(|timer, alarm| {
        timer.interval(period).unwrap().poll_tick(&mut alarm.context()).is_ready()
    });
}

#[test]
fn a_value_inserted_for_now_comes_out_at_the_first_poll() {
    all_ready(|timer, alarm| {
        let mut queue = DelayQueue::new(timer);
        queue.insert(1, HOUR);
        queue.insert(2, Duration::ZERO);
        queue.poll_next_due(&mut alarm.context()).is_ready()
    });
}

#[test]
fn a_value_reset_to_now_comes_out_at_the_next_poll() {
    all_ready(|timer, alarm| {
        let mut queue = DelayQueue::new(timer);
        let key = queue.insert(1, HOUR);
        assert!(queue.poll_next_due(&mut alarm.context()).is_pending());
        assert!(queue.reset(key, Duration::ZERO));
        queue.poll_next_due(&mut alarm.context()).is_ready()
    });
}

#[cfg(feature = "stream")]
#[test]
fn the_first_item_of_a_throttled_stream_does_not_wait() {
    use futures_core::Stream;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use wheelwork::future::TimedStreamExt;

    struct Endless;

    impl Stream for Endless {
        type Item = ();

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<()>> {
            Poll::Ready(Some(()))
        }
    }

    all_ready(|timer, alarm| {
        Pin::new(&mut Endless.throttle_on(timer, HOUR)).poll_next(&mut alarm.context()).is_ready()
    });
}
