//! A tokio task that sleeps and then works: how most programs on tokio set a timeout that acts.

use super::{Facts, PLAIN, Rival, TOKIO_TASK, sleeps};
use crate::task::Task;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub struct TokioTask(&'static Runtime);

impl Rival for TokioTask {
    const FACTS: Facts = Facts {
        name: TOKIO_TASK,
        lacks: "no reschedule (abort + spawn); the delay begins when the task is first polled",
        cancels_ended: true,
        ..PLAIN
    };
    type Timer = Runtime;
    type Handle = JoinHandle<()>;

    fn start(_tick: Duration) -> Runtime {
        sleeps::runtime(false)
    }

    fn of(runtime: &'static Runtime) -> Self {
        Self(runtime)
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> JoinHandle<()> {
        self.0.spawn(async move {
            sleep(delay).await;
            task.run();
        })
    }

    fn cancel(&mut self, timeout: JoinHandle<()>) {
        timeout.abort();
    }

    fn cancel_ended(&mut self, timeout: &JoinHandle<()>) {
        timeout.abort();
    }
}
