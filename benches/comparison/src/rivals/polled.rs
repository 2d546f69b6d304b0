//! A future that sleeps as a timeout: it is polled once, with a waker that runs the task.

use super::{Facts, Rival};
use crate::task::Task;
use std::pin::{Pin, pin};
use std::task::Context;
use std::time::Duration;

pub trait Sleep {
    const FACTS: Facts;
    type Timer: Sync + 'static;
    /// What a thread holds while it uses the timer.
    type Guard;
    /// Pinned in a box only if it has to be.
    type Handle: Future + Unpin + 'static;

    fn start() -> Self::Timer;

    fn enter(timer: &'static Self::Timer) -> Self::Guard;

    fn sleep(delay: Duration) -> Self::Handle;

    /// For a timeout that is cancelled by the function that scheduled it: it needs no box.
    fn sleep_on_stack(delay: Duration) -> impl Future {
        Self::sleep(delay)
    }

    /// Moves the deadline; `false` if it cannot.
    fn reset(_handle: &mut Self::Handle, _delay: Duration) -> bool {
        false
    }
}

pub fn poll_once<F: Future>(future: Pin<&mut F>, task: impl Task) {
    let waker = task.waker();
    if future.poll(&mut Context::from_waker(&waker)).is_ready() {
        waker.wake();
    }
}

pub struct Polled<S: Sleep> {
    _guard: S::Guard,
}

impl<S: Sleep> Rival for Polled<S> {
    const FACTS: Facts = S::FACTS;
    type Timer = S::Timer;
    type Handle = S::Handle;

    fn start(_tick: Duration) -> S::Timer {
        S::start()
    }

    fn of(timer: &'static S::Timer) -> Self {
        Self { _guard: S::enter(timer) }
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> S::Handle {
        let mut timeout = S::sleep(delay);
        poll_once(Pin::new(&mut timeout), task);
        timeout
    }

    fn cancel(&mut self, timeout: S::Handle) {
        drop(timeout);
    }

    fn schedule_and_cancel<T: Task>(&mut self, task: T, delay: Duration) {
        poll_once(pin!(S::sleep_on_stack(delay)), task);
    }

    fn reschedule<T: Task>(
        &mut self,
        mut timeout: S::Handle,
        task: T,
        delay: Duration,
    ) -> S::Handle {
        if S::reset(&mut timeout, delay) {
            return timeout;
        }
        drop(timeout);
        self.schedule(task, delay)
    }
}
