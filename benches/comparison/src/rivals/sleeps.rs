//! Futures that sleep: as a timeout that is polled once, and in tasks on a runtime. Here tokio's.

use super::{Rival, Timer, forever};
use crate::task::{Nothing, Task};
use std::future::{Pending, pending, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Some timers start their thread with their first timeout.
const FIRST: Duration = Duration::from_millis(1);

pub trait Sleep: 'static {
    /// Pinned in a box only if it has to be.
    type Handle: Future + Unpin + Send + 'static;

    fn sleep(delay: Duration) -> Self::Handle;

    /// For a sleep that does not leave its function: it needs no box.
    fn sleep_on_stack(delay: Duration) -> impl Future + Send {
        Self::sleep(delay)
    }

    /// Moves the deadline; `false` if it cannot.
    fn reset(_handle: &mut Self::Handle, _delay: Duration) -> bool {
        false
    }

    /// `None` if `limit` is over first.
    fn timeout<F: Future + Send>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + Send {
        async move {
            let (mut future, mut limit) = (pin!(future), pin!(Self::sleep_on_stack(limit)));
            poll_fn(|context| match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending => limit.as_mut().poll(context).map(|_| None),
            })
            .await
        }
    }

    /// Enables what the sleeps need of a runtime.
    fn enable(_builder: &mut Builder) {}

    fn runtime(workers: usize) -> Runtime {
        let mut builder = Builder::new_multi_thread();
        Self::enable(builder.worker_threads(workers));
        let runtime = builder.build().expect("a thread can be started");
        let context = runtime.enter();
        poll_once(pin!(Self::sleep_on_stack(FIRST)), Nothing);
        drop(context);
        runtime
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>, task: impl Task) {
    let waker = task.waker();
    if future.poll(&mut Context::from_waker(&waker)).is_ready() {
        waker.wake();
    }
}

/// A sleep as a timeout: it is polled once, with a waker that runs the task. A runtime of one worker
/// thread drives it, if it needs one.
pub struct Polled<S> {
    _context: EnterGuard<'static>,
    _sleep: PhantomData<S>,
}

impl<S: Sleep> Rival for Polled<S> {
    type Handle = S::Handle;

    fn start(_tick: Duration) -> Timer<Self> {
        let runtime = forever(S::runtime(1));
        forever(|| Self { _context: runtime.enter(), _sleep: PhantomData })
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

/// A task for each timeout, which sleeps and then works, on a runtime of two worker threads.
pub struct Spawned<S> {
    runtime: &'static Runtime,
    _sleep: PhantomData<S>,
}

impl<S: Sleep> Rival for Spawned<S> {
    type Handle = JoinHandle<()>;

    fn start(_tick: Duration) -> Timer<Self> {
        let runtime = forever(S::runtime(2));
        forever(|| Self { runtime, _sleep: PhantomData })
    }

    /// The deadline counts from the call, and not from the first poll of the task.
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> JoinHandle<()> {
        let deadline = std::time::Instant::now() + delay;
        self.runtime.spawn(async move {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            S::sleep_on_stack(left).await;
            task.run();
        })
    }

    fn cancel(&mut self, timeout: JoinHandle<()>) {
        timeout.abort();
    }
}

/// tokio's `Sleep`: what `tokio::time::timeout` costs.
///
/// `ALT` is the runtime's alternative timer, a wheel for each worker thread. It exists only under
/// `--cfg tokio_unstable`, which changes the rest of tokio as well, so a separate build measures it.
pub struct Tokio<const ALT: bool>;

impl<const ALT: bool> Sleep for Tokio<ALT> {
    type Handle = Pin<Box<tokio::time::Sleep>>;

    fn sleep(delay: Duration) -> Self::Handle {
        Box::pin(tokio::time::sleep(delay))
    }

    fn sleep_on_stack(delay: Duration) -> impl Future + Send {
        tokio::time::sleep(delay)
    }

    fn reset(timeout: &mut Self::Handle, delay: Duration) -> bool {
        timeout.as_mut().reset(Instant::now() + delay);
        true
    }

    async fn timeout<F: Future + Send>(limit: Duration, future: F) -> Option<F::Output> {
        tokio::time::timeout(limit, future).await.ok()
    }

    fn enable(builder: &mut Builder) {
        if ALT {
            enable_alt_timer(builder);
        } else {
            builder.enable_time();
        }
    }
}

#[cfg(tokio_unstable)]
fn enable_alt_timer(builder: &mut Builder) {
    builder.enable_alt_timer();
}

/// Refuses to measure the default timer under this name.
#[cfg(not(tokio_unstable))]
fn enable_alt_timer(_builder: &mut Builder) {
    panic!("this program was built without --cfg tokio_unstable");
}

/// No timer: what a limited future costs without its limit.
pub struct NoLimit;

impl Sleep for NoLimit {
    type Handle = Pending<()>;

    fn sleep(_delay: Duration) -> Pending<()> {
        pending()
    }

    async fn timeout<F: Future + Send>(_limit: Duration, future: F) -> Option<F::Output> {
        Some(future.await)
    }
}

/// A tokio task that sleeps and then works: how most programs on tokio set a timeout that acts.
pub struct TokioTask(&'static Runtime);

impl Rival for TokioTask {
    type Handle = JoinHandle<()>;

    fn start(_tick: Duration) -> Timer<Self> {
        let runtime = forever(Tokio::<false>::runtime(1));
        forever(|| Self(runtime))
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> JoinHandle<()> {
        self.0.spawn(async move {
            tokio::time::sleep(delay).await;
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
