//! tokio-util's `DelayQueue` behind a mutex, with a task that waits for what expires.
//!
//! The alternative, a task that owns the queue and is told through a channel, pays for a message,
//! an allocation for each way back, and a switch of threads on top.

use super::tokio_sleep::runtime;
use super::{Job, Producer, Rival};
use crate::task::Task;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{EnterGuard, Runtime};
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

type Queue = Mutex<DelayQueue<Job>>;

/// So many jobs leave the queue under one lock.
const BATCH: usize = 1024;

pub struct TokioDelayQueue {
    runtime: Runtime,
    queue: Arc<Queue>,
}

impl Rival for TokioDelayQueue {
    const NAME: &'static str = "delay-queue";
    const LACKS: &'static str = "one mutex; its handles (keys) can name another timeout later";
    const DETACHES: bool = true;
    type Producer<'a> = InQueue<'a>;

    fn start(_tick: Duration) -> Self {
        let runtime = runtime();
        let queue = Arc::new(Mutex::new(DelayQueue::new()));
        let mut due = Vec::with_capacity(BATCH);
        let served = queue.clone();
        runtime.spawn(poll_fn(move |context| serve(&served, &mut due, context)));
        Self { runtime, queue }
    }

    fn producer(&self) -> InQueue<'_> {
        InQueue { queue: &self.queue, _context: self.runtime.enter() }
    }
}

/// Runs what is due, and is woken for the next; an insertion wakes it if it is the earliest.
fn serve(queue: &Queue, due: &mut Vec<Job>, context: &mut Context<'_>) -> Poll<()> {
    loop {
        let mut locked = lock(queue);
        while due.len() < BATCH
            && let Poll::Ready(Some(expired)) = locked.poll_expired(context)
        {
            due.push(expired.into_inner());
        }
        drop(locked);
        if due.is_empty() {
            return Poll::Pending;
        }
        due.drain(..).for_each(|job| job());
    }
}

fn lock(queue: &Queue) -> MutexGuard<'_, DelayQueue<Job>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct InQueue<'a> {
    queue: &'a Queue,
    _context: EnterGuard<'a>,
}

impl Producer for InQueue<'_> {
    type Handle = Key;

    #[inline]
    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Key {
        lock(self.queue).insert(Box::new(move || task.run()), delay)
    }

    #[inline]
    fn cancel(&mut self, timeout: Key) {
        let _removed = lock(self.queue).try_remove(&timeout);
    }

    #[inline]
    fn reschedule<T: Task>(&mut self, timeout: Key, _task: T, delay: Duration) -> Key {
        lock(self.queue).reset(&timeout, delay);
        timeout
    }
}
