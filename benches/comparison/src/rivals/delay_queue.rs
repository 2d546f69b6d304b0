//! tokio-util's `DelayQueue`: behind a mutex, with a task that waits for what expires, and in a task
//! of its own beside wheelwork's.
//!
//! The alternative, a task that owns the queue and is told through a channel, pays for a message,
//! an allocation for each way back, and a switch of threads on top.

use super::wheelwork::{Sleeping, TIMER};
use super::{DELAY_QUEUE, Facts, Job, Rival, Sleep, facts_of, sleeps::Tokio};
use crate::task::Task;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{EnterGuard, Runtime};
use tokio_util::time::delay_queue::{self, Key};
use wheelwork::future;

type Shared = Mutex<delay_queue::DelayQueue<Job>>;

/// So many jobs leave the queue under one lock.
const BATCH: usize = 1024;

pub struct DelayQueue {
    queue: &'static Shared,
    _context: EnterGuard<'static>,
}

impl Rival for DelayQueue {
    const FACTS: Facts =
        facts_of(DELAY_QUEUE, "one mutex; its handles (keys) can name another timeout later", &[]);
    type Timer = (Runtime, Arc<Shared>);
    type Handle = Key;

    fn start(_tick: Duration) -> Self::Timer {
        let runtime = Tokio::<false>::runtime(1);
        let queue = Arc::<Shared>::default();
        let mut due = Vec::with_capacity(BATCH);
        let served = queue.clone();
        runtime.spawn(poll_fn(move |context| serve(&served, &mut due, context)));
        (runtime, queue)
    }

    fn of((runtime, queue): &'static Self::Timer) -> Self {
        Self { queue, _context: runtime.enter() }
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Key {
        lock(self.queue).insert(Box::new(move || task.run()), delay)
    }

    fn cancel(&mut self, timeout: Key) {
        let _removed = lock(self.queue).try_remove(&timeout);
    }

    fn reschedule<T: Task>(&mut self, timeout: Key, _task: T, delay: Duration) -> Key {
        lock(self.queue).reset(&timeout, delay);
        timeout
    }
}

/// Runs what is due, and is woken for the next; an insertion wakes it if it is the earliest.
fn serve(queue: &Shared, due: &mut Vec<Job>, context: &mut Context<'_>) -> Poll<()> {
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

fn lock(queue: &Shared) -> MutexGuard<'_, delay_queue::DelayQueue<Job>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queue that belongs to a task.
pub trait Queue: Send + 'static {
    type Key;
    fn runtime(workers: usize) -> Runtime;
    fn new() -> Self;
    fn insert(&mut self, value: u64, delay: Duration) -> Self::Key;
    fn remove(&mut self, key: Self::Key);
    fn next(&mut self) -> impl Future<Output = u64> + Send;
}

pub struct TokioUtil(delay_queue::DelayQueue<u64>);

impl Queue for TokioUtil {
    type Key = Key;

    fn runtime(workers: usize) -> Runtime {
        Tokio::<false>::runtime(workers)
    }

    fn new() -> Self {
        Self(delay_queue::DelayQueue::new())
    }

    fn insert(&mut self, value: u64, delay: Duration) -> Key {
        self.0.insert(value, delay)
    }

    fn remove(&mut self, key: Key) {
        self.0.remove(&key);
    }

    async fn next(&mut self) -> u64 {
        let expired = poll_fn(|context| self.0.poll_expired(context)).await;
        expired.expect("a value is in the queue").into_inner()
    }
}

pub struct WheelworkQueue(future::DelayQueue<u64>);

impl Queue for WheelworkQueue {
    type Key = future::DelayKey;

    fn runtime(workers: usize) -> Runtime {
        Sleeping::runtime(workers)
    }

    fn new() -> Self {
        Self(future::DelayQueue::new(&TIMER))
    }

    fn insert(&mut self, value: u64, delay: Duration) -> future::DelayKey {
        self.0.insert(value, delay)
    }

    fn remove(&mut self, key: future::DelayKey) {
        let _value = self.0.remove(key);
    }

    async fn next(&mut self) -> u64 {
        self.0.next().await.expect("a value is in the queue").value
    }
}
