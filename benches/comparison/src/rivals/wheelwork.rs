//! This project's timer, with its defaults, and its sleeps.

use super::{Rival, Sleep, Timer, forever};
use crate::task::Task;
use std::sync::LazyLock;
use std::time::Duration;
use wheelwork::{HashedWheelTimer, Timeout, future};

fn timer(tick: Duration) -> HashedWheelTimer {
    HashedWheelTimer::builder().tick_duration(tick).build().expect("a thread can be started")
}

/// With `reschedule`, or used by somebody who does not know of it.
pub struct Wheelwork<const RESCHEDULES: bool>(&'static HashedWheelTimer);

impl<const RESCHEDULES: bool> Rival for Wheelwork<RESCHEDULES> {
    type Handle = Timeout;

    fn start(tick: Duration) -> Timer<Self> {
        let timer = forever(timer(tick));
        forever(|| Self(timer))
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

/// The precision of tokio's timer.
const ASYNC_TICK: Duration = Duration::from_millis(1);

/// One timer for the process, as a program would have it.
pub static TIMER: LazyLock<HashedWheelTimer> = LazyLock::new(|| timer(ASYNC_TICK));

pub struct Sleeping;

impl Sleep for Sleeping {
    type Handle = future::Sleep;

    fn sleep(delay: Duration) -> future::Sleep {
        TIMER.sleep(delay)
    }

    fn reset(sleep: &mut future::Sleep, delay: Duration) -> bool {
        sleep.reset_after(delay);
        true
    }

    async fn timeout<F: Future + Send>(limit: Duration, future: F) -> Option<F::Output> {
        TIMER.timeout(limit, future).await.ok()
    }
}
