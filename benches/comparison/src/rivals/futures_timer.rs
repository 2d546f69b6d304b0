//! futures-timer's `Delay`, polled once; its own thread drives it.

use super::poll_once::poll_once;
use super::{Producer, Rival};
use crate::task::Task;
use futures_timer::Delay;
use std::pin::Pin;
use std::time::Duration;

pub struct FuturesTimer;

impl Rival for FuturesTimer {
    const NAME: &'static str = "futures-timer";
    const LACKS: &'static str = "a bare Delay: runs no task; handle must be kept";
    const DETACHES: bool = false;
    const IS_GLOBAL: bool = true;
    type Producer<'a> = InHelper;

    fn start(_tick: Duration) -> Self {
        // Its thread starts with the first delay.
        poll_once(Pin::new(&mut Delay::new(Duration::from_millis(1))), crate::task::Nothing);
        Self
    }

    fn producer(&self) -> InHelper {
        InHelper
    }
}

pub struct InHelper;

impl Producer for InHelper {
    type Handle = Delay;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Delay {
        let mut timeout = Delay::new(delay);
        poll_once(Pin::new(&mut timeout), task);
        timeout
    }

    #[inline]
    fn cancel(&mut self, timeout: Delay) {
        drop(timeout);
    }

    #[inline]
    fn reschedule<T: Task>(&mut self, mut timeout: Delay, _task: T, delay: Duration) -> Delay {
        timeout.reset(delay);
        timeout
    }
}
