//! Delay queues that each belong to a task.

use super::tasks::{Crew, WORKERS};
use super::{Figure, batches};
use crate::delays;
use crate::plan::Job;
use crate::rivals::Sleep;
use crate::rivals::wheelwork::{Sleeping, TIMER};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::unconstrained;
use wheelwork::future;

/// From the first insertion of those that expire together to their deadline, for each of them.
const LEAD: Duration = Duration::from_micros(1);

/// A queue that belongs to a task.
pub trait Queue: Send + 'static {
    type Key;
    /// Has the runtime that it needs.
    type Sleep: Sleep;

    fn new() -> Self;
    fn insert(&mut self, value: u64, delay: Duration) -> Self::Key;
    fn remove(&mut self, key: Self::Key);
    fn next(&mut self) -> impl Future<Output = u64> + Send;
}

impl Queue for future::DelayQueue<u64> {
    type Key = future::DelayKey;
    type Sleep = Sleeping;

    fn new() -> Self {
        Self::new(&TIMER)
    }

    fn insert(&mut self, value: u64, delay: Duration) -> Self::Key {
        self.insert(value, delay)
    }

    fn remove(&mut self, key: Self::Key) {
        let _value = self.remove(key);
    }

    async fn next(&mut self) -> u64 {
        self.next().await.expect("a value is in the queue").value
    }
}

#[cfg(feature = "rivals")]
impl Queue for tokio_util::time::DelayQueue<u64> {
    type Key = tokio_util::time::delay_queue::Key;
    type Sleep = crate::rivals::sleeps::Tokio<false>;

    fn new() -> Self {
        Self::new()
    }

    fn insert(&mut self, value: u64, delay: Duration) -> Self::Key {
        self.insert(value, delay)
    }

    fn remove(&mut self, key: Self::Key) {
        self.remove(&key);
    }

    async fn next(&mut self) -> u64 {
        let expired = std::future::poll_fn(|context| self.poll_expired(context)).await;
        expired.expect("a value is in the queue").into_inner()
    }
}

pub fn queue<Q: Queue>(job: &Job) -> Vec<Figure> {
    let runtime = Q::Sleep::runtime(WORKERS);
    let _context = runtime.enter();
    let (present, tasks, sizes) = (job.count("present"), job.count("tasks"), job.sizes);
    let queues: Vec<_> = (0..tasks).map(|_| Arc::new(Mutex::new(filled::<Q>(present)))).collect();
    let crew = Crew { runtime: &runtime, tasks, operations: sizes.batch, sizes };
    let insert_remove =
        crew.measure(|task| insert_and_remove(queues[task as usize].clone(), sizes.batch));
    let mut figures = vec![("ns_per_op", insert_remove)];
    if tasks == 1 {
        let expire = batches::median(sizes, || {
            let expired = runtime.spawn(unconstrained(expire::<Q>(present)));
            runtime.block_on(expired).expect("a task does not panic")
        });
        figures.push(("expire_ns", expire / present as f64));
    }
    figures
}

fn filled<Q: Queue>(present: u64) -> Q {
    let mut queue = Q::new();
    for i in 0..present {
        queue.insert(i, delays::far(i, present));
    }
    queue
}

/// Of values whose deadlines fall among those that are present.
async fn insert_and_remove<Q: Queue>(queue: Arc<Mutex<Q>>, operations: u64) {
    let mut queue = queue.lock().await;
    // A waker waits in the queue, as while its task waits for values.
    let pending = pin!(queue.next()).poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(pending, "a value came out early");
    for i in 0..operations {
        let key = queue.insert(i, delays::among_far(i));
        queue.remove(key);
    }
}

/// From the first value that comes out to the last, of those that are due at one instant.
async fn expire<Q: Queue>(values: u64) -> Duration {
    let mut queue = Q::new();
    let due = Instant::now() + LEAD * values as u32;
    for i in 0..values {
        queue.insert(i, due.saturating_duration_since(Instant::now()));
    }
    queue.next().await;
    let begin = Instant::now();
    for _ in 1..values {
        queue.next().await;
    }
    begin.elapsed()
}
