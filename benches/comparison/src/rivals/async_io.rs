//! async-io's `Timer`, polled once; its own thread drives it.

use super::poll_once::poll_once;
use super::{Producer, Rival};
use crate::task::Task;
use async_io::Timer;
use std::pin::Pin;
use std::time::Duration;

pub struct AsyncIo;

impl Rival for AsyncIo {
    const NAME: &'static str = "async-io";
    const LACKS: &'static str = "a bare Timer: runs no task; handle must be kept";
    const DETACHES: bool = false;
    const IS_GLOBAL: bool = true;
    const SCHEDULE_CAP: u64 = 200_000;
    type Producer<'a> = InReactor;

    fn start(_tick: Duration) -> Self {
        // Its thread starts with the first timer.
        poll_once(Pin::new(&mut Timer::after(Duration::from_millis(1))), crate::task::Nothing);
        Self
    }

    fn producer(&self) -> InReactor {
        InReactor
    }
}

pub struct InReactor;

impl Producer for InReactor {
    type Handle = Timer;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Timer {
        let mut timeout = Timer::after(delay);
        poll_once(Pin::new(&mut timeout), task);
        timeout
    }

    #[inline]
    fn cancel(&mut self, timeout: Timer) {
        drop(timeout);
    }

    #[inline]
    fn reschedule<T: Task>(&mut self, mut timeout: Timer, _task: T, delay: Duration) -> Timer {
        timeout.set_after(delay);
        timeout
    }
}
