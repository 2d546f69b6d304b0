//! The thread pool: a fixed number of threads on a bounded queue.
//!
//! The queue of jobs has no lock. `sleepers` is the number of threads that wait for a job. A lock guards
//! this number.
//!
//! | step | a thread | `execute`, after its push |
//! |---|---|---|
//! | 1 | pops; if the queue is empty: locks | locks |
//! | 2 | pops again; if still empty: adds itself to `sleepers`, waits, takes itself out once it is woken, and begins again | if `sleepers` is not 0: wakes one |
//!
//! **No job is left behind while a thread sleeps.** The thread's second pop and the producer's read
//! of `sleepers` hold the same lock, so one comes first. If the pop comes first, the thread is
//! counted, and a sleeper is woken. If the read comes first, the push before it is visible to the pop.
//!
//! The drop of the last handle to the pool closes the queue, and does not wait for the threads (`join` does). They run
//! the queued jobs and then end.

use super::{Executor, Job};
use crate::base::sync::thread::{self, JoinHandle};
use crate::base::sync::{Arc, ArrayQueue, Condvar, Mutex};
use std::fmt;
use std::num::NonZeroUsize;

/// The length of the default pool's queue, per thread.
const QUEUE_PER_THREAD: usize = 1024;

/// The longest queue. Its memory is allocated when the pool is made: 48 bytes per job.
const LONGEST_QUEUE: usize = 1 << 24;

/// A fixed number of threads that run jobs from one bounded queue, first in first out.
///
/// It never waits for room: when the queue is full, it refuses the job, and the timer's
/// [`OnRefusal`](super::OnRefusal) policy applies. The executor is a cheap handle: clone it to share a
/// pool among timers. When the last handle is dropped, the threads run the queued jobs and end. The
/// drop does not wait for that; [`join`](Self::join) does.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::{HashedWheelTimer, executor::ThreadPool};
/// let pool = ThreadPool::new()?; // num_cpus threads
/// let timer = HashedWheelTimer::builder()
///     .tick_duration(Duration::from_millis(1))
///     .executor(pool.clone())
///     .build()?;
/// let (sender, done) = mpsc::channel();
/// timer.new_timeout(move || sender.send("off the worker").unwrap(), Duration::from_millis(2))?;
/// assert_eq!(done.recv()?, "off the worker");
///
/// timer.stop()?;
/// drop(timer);
/// pool.join(); // every job that was handed over has run
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ThreadPool(Arc<Threads>);

/// Why a thread pool could not be made.
///
/// # Examples
///
/// ```
/// use wheelwork::executor::{PoolError, ThreadPool};
///
/// assert!(matches!(ThreadPool::with_size(0, 100), Err(PoolError::NoThreads)));
/// assert!(matches!(ThreadPool::with_size(1, 0), Err(PoolError::NoQueue)));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The number of threads is 0. Such a pool would never run anything.
    #[error("the number of threads must be greater than zero")]
    NoThreads,
    /// The capacity of the queue is 0. Such a queue would refuse every job.
    #[error("the length of the queue must be greater than zero")]
    NoQueue,
    /// The capacity of the queue is too large. Its memory is allocated when the pool is made.
    #[error("a queue of {capacity} jobs: expected at most {LONGEST_QUEUE}")]
    QueueTooLong {
        /// The requested capacity.
        capacity: usize,
    },
    /// The system did not start a thread. The threads that were already started end again.
    #[error("thread {number} of {threads} cannot be started")]
    ThreadStart {
        /// The number of that thread, from 1.
        number: usize,
        /// The requested number of threads.
        threads: usize,
        /// The system's error.
        source: std::io::Error,
    },
}

struct Queue<J> {
    jobs: ArrayQueue<J>,
    idle: Mutex<Idle>,
    changed: Condvar,
}

struct Idle {
    sleepers: usize,
    closed: bool,
}

/// The threads and their queue. The drop, with the last handle, closes the queue.
struct Threads {
    queue: Arc<Queue<Job>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ThreadPool {
    /// A pool with one thread per processor, and a queue of 1,024 jobs per thread.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new() -> Result<Self, PoolError> {
        let threads = num_cpus::get().max(1);
        Self::with_size(threads, (threads * QUEUE_PER_THREAD).min(LONGEST_QUEUE))
    }

    /// A pool of `threads` threads and a queue of `capacity` jobs, at most 2^24.
    ///
    /// # Errors
    ///
    /// If either is zero or the queue is too long, or if a thread cannot be started.
    pub fn with_size(threads: usize, capacity: usize) -> Result<Self, PoolError> {
        NonZeroUsize::new(threads).ok_or(PoolError::NoThreads)?;
        NonZeroUsize::new(capacity).ok_or(PoolError::NoQueue)?;
        if capacity > LONGEST_QUEUE {
            return Err(PoolError::QueueTooLong { capacity });
        }
        let pool =
            Threads { queue: Arc::new(Queue::new(capacity)), threads: Mutex::new(Vec::new()) };
        for number in 1..=threads {
            let queue = pool.queue.clone();
            let thread = thread::Builder::new()
                .name(format!("wheelwork-pool-{number}"))
                .spawn(move || queue.serve(Job::run))
                .map_err(|source| PoolError::ThreadStart { number, threads, source })?;
            pool.threads.lock().push(thread);
        }
        Ok(Self(Arc::new(pool)))
    }

    /// Drops this handle. If it was the last one, waits until all queued jobs have run, and returns true. Otherwise it
    /// returns false at once, **without waiting**. On a thread of the pool, it does not wait for that thread.
    ///
    /// A timer's worker has a handle until its thread ends: after [`stop`](crate::HashedWheelTimer::stop) it is gone, but
    /// once `stop_timeout` or `stop_async` was called, perhaps not yet.
    pub fn join(self) -> bool {
        let Some(pool) = Arc::into_inner(self.0) else { return false };
        pool.queue.close();
        let threads = std::mem::take(&mut *pool.threads.lock());
        let me = thread::current().id();
        for thread in threads.into_iter().filter(|t| t.thread().id() != me) {
            // The threads do not panic: a job contains the panics of its task.
            let _ = thread.join();
        }
        true
    }

    /// The number of jobs that wait in the queue.
    pub fn queued(&self) -> usize {
        self.0.queue.jobs.len()
    }
}

impl Executor for ThreadPool {
    fn execute(&self, job: Job) -> Result<(), Job> {
        self.0.queue.submit(job)
    }
}

impl<J> Queue<J> {
    fn new(capacity: usize) -> Self {
        Self {
            jobs: ArrayQueue::new(capacity),
            idle: Mutex::new(Idle { sleepers: 0, closed: false }),
            changed: Condvar::new(),
        }
    }

    fn submit(&self, job: J) -> Result<(), J> {
        self.jobs.push(job)?;
        if self.idle.lock().sleepers > 0 {
            self.changed.notify_one();
        }
        Ok(())
    }

    fn serve(&self, run: impl Fn(J)) {
        while let Some(job) = self.jobs.pop().or_else(|| self.wait_for_one()) {
            run(job);
        }
    }

    /// Waits for a job. `None` if the queue is closed and empty.
    fn wait_for_one(&self) -> Option<J> {
        let mut idle = self.idle.lock();
        loop {
            if let Some(job) = self.jobs.pop() {
                return Some(job);
            }
            if idle.closed {
                return None;
            }
            idle.sleepers += 1;
            idle = self.changed.wait(idle);
            idle.sleepers -= 1;
        }
    }

    fn close(&self) {
        self.idle.lock().closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // First: glibc's `pthread_detach` reads the thread again after another thread may have its memory, if the
        // thread ends meanwhile.
        self.threads.lock().clear();
        self.queue.close();
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("threads", &self.0.threads.lock().len())
            .field("queued", &self.queued())
            .field("capacity", &self.0.queue.jobs.capacity())
            .finish()
    }
}

#[cfg(all(test, loom))]
mod model;
