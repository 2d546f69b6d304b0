//! tokio's `Sleep`, polled once: what `tokio::time::timeout` around a future costs.
//!
//! A runtime of one worker thread drives the timers. A `Sleep` that outlives its function has to be
//! pinned in a box; one that is cancelled in the same function is pinned on the stack.

use super::poll_once::poll_once;
use super::{Producer, Rival};
use crate::task::Task;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Instant, Sleep, sleep};

pub struct TokioSleep(Runtime);

impl Rival for TokioSleep {
    const NAME: &'static str = "tokio-sleep";
    const LACKS: &'static str =
        "a bare Sleep: runs no task, needs the runtime; handle must be kept";
    const DETACHES: bool = false;
    type Producer<'a> = InRuntime<'a>;

    fn start(_tick: Duration) -> Self {
        Self(runtime())
    }

    fn producer(&self) -> InRuntime<'_> {
        InRuntime::of(&self.0)
    }
}

pub(super) fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_time().build().expect("a thread can be started")
}

pub struct InRuntime<'a> {
    _context: EnterGuard<'a>,
}

impl<'a> InRuntime<'a> {
    pub(super) fn of(runtime: &'a Runtime) -> Self {
        Self { _context: runtime.enter() }
    }
}

impl Producer for InRuntime<'_> {
    type Handle = Pin<Box<Sleep>>;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Pin<Box<Sleep>> {
        let mut timeout = Box::pin(sleep(delay));
        poll_once(timeout.as_mut(), task);
        timeout
    }

    #[inline]
    fn cancel(&mut self, timeout: Pin<Box<Sleep>>) {
        drop(timeout);
    }

    #[inline]
    fn schedule_and_cancel<T: Task>(&mut self, task: T, delay: Duration) {
        poll_once(pin!(sleep(delay)), task);
    }

    #[inline]
    fn reschedule<T: Task>(
        &mut self,
        mut timeout: Pin<Box<Sleep>>,
        _task: T,
        delay: Duration,
    ) -> Pin<Box<Sleep>> {
        timeout.as_mut().reset(Instant::now() + delay);
        timeout
    }
}
