//! tokio-util's `DelayQueue` as a timer: behind a mutex, with a task that waits for what expires.
//!
//! The alternative, a task that owns the queue and is told through a channel, pays for a message,
//! an allocation for each way back, and a switch of threads on top.

use super::ordered::locked;
use super::{Job, Rival, Sleep, Timer, forever, sleeps::Tokio};
use crate::task::Task;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::EnterGuard;
use tokio_util::time::delay_queue::{self, Key};

type Shared = Mutex<delay_queue::DelayQueue<Job>>;

/// The most jobs that leave the queue under one lock.
const BATCH: usize = 1024;

pub struct DelayQueue {
    queue: &'static Shared,
    _context: EnterGuard<'static>,
}

impl Rival for DelayQueue {
    type Handle = Key;

    fn start(_tick: Duration) -> Timer<Self> {
        let runtime = forever(Tokio::<false>::runtime(1));
        let queue = forever(Shared::default());
        let mut due = Vec::with_capacity(BATCH);
        runtime.spawn(poll_fn(move |context| serve(queue, &mut due, context)));
        forever(|| Self { queue, _context: runtime.enter() })
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Key {
        locked(self.queue).insert(Box::new(move || task.run()), delay)
    }

    fn cancel(&mut self, timeout: Key) {
        let _removed = locked(self.queue).try_remove(&timeout);
    }

    fn reschedule<T: Task>(&mut self, timeout: Key, _task: T, delay: Duration) -> Key {
        locked(self.queue).reset(&timeout, delay);
        timeout
    }
}

/// Runs what is due, and is woken for the next; an insertion wakes it if it is the earliest.
fn serve(queue: &Shared, due: &mut Vec<Job>, context: &mut Context<'_>) -> Poll<()> {
    loop {
        let mut queue = locked(queue);
        while due.len() < BATCH
            && let Poll::Ready(Some(expired)) = queue.poll_expired(context)
        {
            due.push(expired.into_inner());
        }
        drop(queue);
        if due.is_empty() {
            return Poll::Pending;
        }
        due.drain(..).for_each(|job| job());
    }
}
