//! The module `host` of the crate's own tests: nodes run in the simulated world.

use crate::world::{self, Home};
use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wheelwork::BuildError;

pub(crate) use crate::world::{now, sleep, sleep_until, within as timeout};

pub(crate) fn elapsed(since: Instant) -> Duration {
    now() - since
}

pub(crate) struct JoinHandle<T> {
    task: u64,
    ended: oneshot::Receiver<T>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn abort(&self) {
        world::abort(self.task);
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ended).poll(cx).map_err(|_| JoinError)
    }
}

/// A task was aborted, or its thread has ended. A panic ends the whole history.
#[derive(Debug, thiserror::Error)]
#[error("the task was aborted")]
pub(crate) struct JoinError;

impl JoinError {
    pub(crate) fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        Err(self)
    }
}

/// Tasks that end with it.
pub(crate) struct JoinSet<T> {
    tasks: Vec<u64>,
    done: mpsc::UnboundedSender<T>,
    ended: mpsc::UnboundedReceiver<T>,
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        let (done, ended) = mpsc::unbounded_channel();
        Self { tasks: Vec::new(), done, ended }
    }
}

impl<T: Send + 'static> JoinSet<T> {
    pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
        let done = self.done.clone();
        self.tasks.push(world::spawn(world::home(), async move {
            let _ = done.send(task.await);
        }));
    }

    pub(crate) async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.ended.recv().await.map(Ok)
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for task in &self.tasks {
            world::abort(*task);
        }
    }
}

pub(crate) async fn timeout_at<T>(end: Instant, future: impl Future<Output = T>) -> Option<T> {
    timeout(end.saturating_duration_since(now()), future).await
}

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    Runtime(world::home()).spawn(task)
}

#[derive(Clone)]
pub(crate) struct Runtime(Home);

impl Runtime {
    pub(crate) fn current() -> Option<Self> {
        Some(Self(world::home()))
    }

    pub(crate) fn here() -> Self {
        Self(world::home())
    }

    pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let home = world::home().thread();
        world::spawn(home, async move {
            task.await;
            world::end_thread(home);
        });
        Ok(())
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let (done, ended) = oneshot::channel();
        let task = world::spawn(self.0, async move {
            let _ = done.send(task.await);
        });
        JoinHandle { task, ended }
    }
}

/// A timer whose every timeout is a task: the wheel has tests of its own.
pub(crate) struct Timer {
    home: Home,
    tick: Duration,
    started: Instant,
    stopped: CancellationToken,
}

pub(crate) fn timer(tick: Duration) -> Result<Timer, BuildError> {
    let home = world::home().thread();
    Ok(Timer { home, tick, started: now(), stopped: CancellationToken::new() })
}

pub(crate) struct Timeout(u64);

impl Timeout {
    pub(crate) fn cancel(&self) -> bool {
        world::abort(self.0)
    }
}

impl Timer {
    pub(crate) fn new_timeout_at(
        &self,
        task: impl FnOnce() + Send + 'static,
        at: Instant,
    ) -> Result<Timeout, &'static str> {
        if self.stopped.is_cancelled() {
            return Err("the timer is stopped");
        }
        let ticks = (at - self.started).as_nanos().div_ceil(self.tick.as_nanos());
        let at = self.started + self.tick * u32::try_from(ticks).unwrap_or(u32::MAX);
        let run = async move {
            sleep_until(at).await;
            task();
        };
        Ok(Timeout(world::spawn(self.home, run)))
    }

    pub(crate) async fn stop_async(&self) {
        self.stopped.cancel();
        world::end_thread(self.home);
    }
}
