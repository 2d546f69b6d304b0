//! A tokio task that sleeps and then works: how most programs on tokio set a timeout that acts.

use super::tokio_sleep::runtime;
use super::{Producer, Rival};
use crate::task::Task;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub struct TokioTask(Runtime);

impl Rival for TokioTask {
    const NAME: &'static str = "tokio-task";
    const LACKS: &'static str =
        "no reschedule (abort + spawn); the delay begins when the task is first polled";
    const DETACHES: bool = true;
    const CANCELS_ENDED: bool = true;
    type Producer<'a> = &'a Runtime;

    fn start(_tick: Duration) -> Self {
        Self(runtime())
    }

    fn producer(&self) -> &Runtime {
        &self.0
    }
}

impl Producer for &Runtime {
    type Handle = JoinHandle<()>;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> JoinHandle<()> {
        self.spawn(async move {
            sleep(delay).await;
            task.run();
        })
    }

    #[inline]
    fn cancel(&mut self, timeout: JoinHandle<()>) {
        timeout.abort();
    }

    #[inline]
    fn cancel_ended(&mut self, timeout: &JoinHandle<()>) {
        timeout.abort();
    }
}
