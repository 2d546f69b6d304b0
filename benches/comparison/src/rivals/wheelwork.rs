//! This project's timer, with its defaults.

use super::{CANCEL_NEW, Facts, OURS, PLAIN, Rival};
use crate::task::Task;
use std::time::Duration;
use wheelwork::{HashedWheelTimer, Timeout};

/// With `reschedule`, or used by somebody who does not know of it.
pub struct Wheelwork<const RESCHEDULES: bool>(&'static HashedWheelTimer);

impl<const RESCHEDULES: bool> Rival for Wheelwork<RESCHEDULES> {
    const FACTS: Facts = Facts {
        name: if RESCHEDULES { OURS } else { CANCEL_NEW },
        lacks: if RESCHEDULES {
            "late by up to a tick"
        } else {
            "wheelwork by cancel + new_timeout in place of reschedule"
        },
        has_tick: true,
        cancels_ended: true,
        ..PLAIN
    };
    type Timer = HashedWheelTimer;
    type Handle = Timeout;

    fn start(tick: Duration) -> HashedWheelTimer {
        let builder = HashedWheelTimer::builder().tick_duration(tick);
        builder.build().expect("a thread can be started")
    }

    fn of(timer: &'static HashedWheelTimer) -> Self {
        Self(timer)
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Timeout {
        self.0.new_timeout(move || task.run(), delay).expect("the timer runs, without a limit")
    }

    fn cancel(&mut self, timeout: Timeout) {
        timeout.cancel();
    }

    fn cancel_ended(&mut self, timeout: &Timeout) {
        timeout.cancel();
    }

    fn reschedule<T: Task>(&mut self, timeout: Timeout, task: T, delay: Duration) -> Timeout {
        if !RESCHEDULES {
            self.cancel(timeout);
            return self.schedule(task, delay);
        }
        timeout.reschedule(delay).expect("it is pending");
        timeout
    }
}
