//! pingora-timeout's `sleep`, polled once.
//!
//! `sleep` rather than `timeout`: that one hands delays above 15 minutes to tokio, and boxes its
//! timer even where the caller can pin it on the stack.

use super::poll_once::poll_once;
use super::{Producer, Rival};
use crate::task::Task;
use pingora_timeout::sleep;
use std::pin::{Pin, pin};
use std::time::Duration;

pub struct Pingora;

impl Rival for Pingora {
    const NAME: &'static str = "pingora-timeout";
    const LACKS: &'static str = "runs no task; ticks of 10 ms, a wake-up in each; deadlines cut to \
                                 whole milliseconds; a cancelled one stays until its time; handle \
                                 must be kept";
    const DETACHES: bool = false;
    const IS_GLOBAL: bool = true;
    type Producer<'a> = InThread;

    fn start(_tick: Duration) -> Self {
        // Its thread starts with the first timeout.
        poll_once(pin!(sleep(Duration::from_millis(1))), crate::task::Nothing);
        Self
    }

    fn producer(&self) -> InThread {
        InThread
    }
}

pub struct InThread;

impl Producer for InThread {
    type Handle = Pin<Box<dyn Future<Output = ()>>>;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle {
        let mut timeout = Box::pin(sleep(delay));
        poll_once(timeout.as_mut(), task);
        timeout
    }

    #[inline]
    fn cancel(&mut self, timeout: Self::Handle) {
        drop(timeout);
    }

    #[inline]
    fn schedule_and_cancel<T: Task>(&mut self, task: T, delay: Duration) {
        poll_once(pin!(sleep(delay)), task);
    }
}
