//! tokio-util's `DelayQueue` behind a mutex, with a task that waits for what expires.
//!
//! The alternative, a task that owns the queue and is told through a channel, pays for a message,
//! an allocation for each way back, and a switch of threads on top.

use super::{Facts, Job, PLAIN, Rival, sleeps};
use crate::task::Task;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{EnterGuard, Runtime};
use tokio_util::time::delay_queue::{self, Key};

type Queue = Mutex<delay_queue::DelayQueue<Job>>;

/// So many jobs leave the queue under one lock.
const BATCH: usize = 1024;

pub struct DelayQueue {
    queue: &'static Queue,
    _context: EnterGuard<'static>,
}

impl Rival for DelayQueue {
    const FACTS: Facts = Facts {
        name: "delay-queue",
        lacks: "one mutex; its handles (keys) can name another timeout later",
        ..PLAIN
    };
    type Timer = (Runtime, Arc<Queue>);
    type Handle = Key;

    fn start(_tick: Duration) -> Self::Timer {
        let runtime = sleeps::runtime(false);
        let queue = Arc::<Queue>::default();
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

fn lock(queue: &Queue) -> MutexGuard<'_, delay_queue::DelayQueue<Job>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
