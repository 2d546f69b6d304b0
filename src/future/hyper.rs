//! The timer as hyper's.

use super::sleep::Sleep;
use crate::timer::HashedWheelTimer;
use hyper::rt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The timer for hyper 1.x, feature `hyper`. Pass it to `timer` and `pool_timer` of hyper's and
/// hyper-util's builders.
///
/// A sleep costs the allocation that hyper's interface requires, and what
/// [`sleep`](HashedWheelTimer::sleep) costs.
///
/// A reset moves a sleep of this timer, and a task that waits for it need not poll it again. A sleep of
/// another timer is replaced. The task that waits for it must poll the new one; if the other timer is of
/// this crate, the reset wakes that task.
///
/// Stop the timer after the servers and clients that use it. A stop makes all waiting sleeps ready, so
/// hyper ends the connections that wait for one. A sleep that is created or reset after the stop is ready
/// once the clock has reached its deadline, but nothing wakes its task: hyper's pool, for one, sleeps
/// in a loop, and would never yield if each sleep were ready immediately.
impl rt::Timer for HashedWheelTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        let sleep = HashedWheelTimer::sleep(self, duration);
        if self.gate().is_closed() { Box::pin(Unwoken(sleep)) } else { Box::pin(sleep) }
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        let sleep = HashedWheelTimer::sleep_until(self, deadline);
        if self.gate().is_closed() { Box::pin(Unwoken(sleep)) } else { Box::pin(sleep) }
    }

    fn now(&self) -> Instant {
        HashedWheelTimer::now(self)
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, new_deadline: Instant) {
        if let Some(ours) = sleep.as_mut().downcast_mut_pin::<Sleep>().map(Pin::get_mut) {
            let is_of_this_timer = std::ptr::eq(ours.gate(), self.gate());
            if is_of_this_timer && !self.gate().is_closed() {
                return ours.reset(new_deadline);
            }
            ours.wake();
        }
        *sleep = rt::Timer::sleep_until(self, new_deadline);
    }
}

impl rt::Sleep for Sleep {}

/// A sleep of a timer that is stopped.
struct Unwoken(Sleep);

impl Future for Unwoken {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if self.0.is_elapsed() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl rt::Sleep for Unwoken {}
