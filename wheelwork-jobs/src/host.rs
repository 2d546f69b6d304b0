//! What a node has from its process: the time, a timer, threads and tasks.
//!
//! The package `tests/sim` has a module of its own in its place: there, nodes run on virtual time, in one thread, in an
//! order that a seed decides. So the node reads no clock and spawns only blocking handlers elsewhere.

use std::time::{Duration, Instant};
use std::{io, thread};
use tokio::runtime;
use wheelwork::BuildError;

pub(crate) use tokio::task::{JoinError, JoinHandle, JoinSet};
pub(crate) use wheelwork::{HashedWheelTimer as Timer, Timeout};

/// The monotonic clock.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A timer with this tick.
pub(crate) fn timer(tick: Duration) -> Result<Timer, BuildError> {
    Timer::builder().tick_duration(tick).thread_name("wheelwork-wheel").build()
}

/// The time since an instant.
pub(crate) fn elapsed(since: Instant) -> Duration {
    since.elapsed()
}

/// Waits without a timer of the node's, which may be stopped already.
pub(crate) async fn sleep_until(at: Instant) {
    tokio::time::sleep_until(at.into()).await;
}

/// As [`sleep_until`].
pub(crate) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

#[cfg(feature = "postgres")]
/// `None` if the future takes longer.
pub(crate) async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}

/// `None` if the future is not ready by then.
pub(crate) async fn timeout_at<T>(end: Instant, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(end.into(), future).await.ok()
}

/// Runs a task beside the one that calls.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// Where tasks run.
#[derive(Clone)]
pub(crate) struct Runtime(runtime::Handle);

impl Runtime {
    /// The runtime that the caller is in. `None` outside of one.
    pub(crate) fn current() -> Option<Self> {
        runtime::Handle::try_current().ok().map(Self)
    }

    /// The runtime that the task which calls is in.
    pub(crate) fn here() -> Self {
        Self(runtime::Handle::current())
    }

    /// Runs a task on a thread of its own. Other tasks run there until this one has ended.
    pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("wheelwork-jobs".into());
        thread.spawn(move || runtime.block_on(task)).map(drop)
    }

    /// Runs a task here.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.spawn(task)
    }
}
