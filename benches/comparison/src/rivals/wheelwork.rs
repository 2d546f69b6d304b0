//! This project's timer, with its defaults.

use super::{Producer, Rival};
use crate::task::Task;
use std::time::Duration;
use wheelwork::{HashedWheelTimer, Timeout};

pub struct Wheelwork(HashedWheelTimer);

impl Rival for Wheelwork {
    const NAME: &'static str = "wheelwork";
    const LACKS: &'static str = "late by up to a tick";
    const DETACHES: bool = true;
    const CANCELS_ENDED: bool = true;
    const HAS_TICK: bool = true;
    type Producer<'a> = &'a HashedWheelTimer;

    fn start(tick: Duration) -> Self {
        Self(start(tick))
    }

    fn producer(&self) -> &HashedWheelTimer {
        &self.0
    }
}

impl Producer for &HashedWheelTimer {
    type Handle = Timeout;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Timeout {
        schedule(self, task, delay)
    }

    #[inline]
    fn cancel(&mut self, timeout: Timeout) {
        timeout.cancel();
    }

    #[inline]
    fn cancel_ended(&mut self, timeout: &Timeout) {
        timeout.cancel();
    }

    #[inline]
    fn reschedule<T: Task>(&mut self, timeout: Timeout, _task: T, delay: Duration) -> Timeout {
        timeout.reschedule(delay).expect("it is pending");
        timeout
    }
}

/// The same timer, used by somebody who does not know of `reschedule`.
pub struct CancelNew(HashedWheelTimer);

impl Rival for CancelNew {
    const NAME: &'static str = "wheelwork-cancel-new";
    const LACKS: &'static str = "wheelwork by cancel + new_timeout in place of reschedule";
    const DETACHES: bool = true;
    const HAS_TICK: bool = true;
    type Producer<'a> = WithoutReschedule<'a>;

    fn start(tick: Duration) -> Self {
        Self(start(tick))
    }

    fn producer(&self) -> WithoutReschedule<'_> {
        WithoutReschedule(&self.0)
    }
}

pub struct WithoutReschedule<'a>(&'a HashedWheelTimer);

impl Producer for WithoutReschedule<'_> {
    type Handle = Timeout;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Timeout {
        schedule(self.0, task, delay)
    }

    #[inline]
    fn cancel(&mut self, timeout: Timeout) {
        timeout.cancel();
    }
}

fn start(tick: Duration) -> HashedWheelTimer {
    let builder = HashedWheelTimer::builder().tick_duration(tick);
    builder.build().expect("a thread can be started")
}

#[inline]
fn schedule<T: Task>(timer: &HashedWheelTimer, task: T, delay: Duration) -> Timeout {
    timer.new_timeout(move || task.run(), delay).expect("the timer runs, without a limit")
}
