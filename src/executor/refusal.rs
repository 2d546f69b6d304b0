//! What becomes of jobs that the executor refuses. No refused job is lost.

use super::{Executor, Job};
use crate::base::catch_panic;
use crate::base::logging::warning;
use crate::base::sync::thread;
use crate::metrics::WorkerCounts;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a timer handles a job that its executor refuses.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
/// use wheelwork::executor::{OnRefusal, ThreadPool};
///
/// let timer = HashedWheelTimer::builder()
///     .executor(ThreadPool::with_size(1, 100)?)
///     .on_refusal(OnRefusal::callback(|job| {
///         eprintln!("the pool is full: {job:?}");
///         job.run();
///     }))
///     .build()?;
/// # drop(timer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OnRefusal {
    /// Runs the job on the worker thread. A full executor then slows the timer down, and so
    /// receives fewer jobs.
    #[default]
    RunOnWorker,
    /// Offers the job again until the executor takes it: first without delay, then once a
    /// millisecond. The worker waits, and so do all other timeouts. If the timer is stopped meanwhile,
    /// the job runs on the worker. A task on the executor must not wait for the worker, for example by
    /// advancing a manual clock, because both would wait for ever.
    Wait,
    /// Hands the job to this callback, on the worker thread.
    Callback(Arc<dyn Fn(Job) + Send + Sync>),
}

impl OnRefusal {
    /// Makes an [`OnRefusal::Callback`] from a closure.
    pub fn callback(callback: impl Fn(Job) + Send + Sync + 'static) -> Self {
        Self::Callback(Arc::new(callback))
    }
}

impl fmt::Debug for OnRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunOnWorker => "RunOnWorker",
            Self::Wait => "Wait",
            Self::Callback(_) => "Callback",
        })
    }
}

/// An executor with its policy, as the worker uses it.
pub(crate) struct Dispatch {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) on_refusal: OnRefusal,
}

impl Dispatch {
    /// Hands a job over. Stops waiting for the executor once `stopping` returns true.
    pub(crate) fn hand(&self, job: Job, metrics: &WorkerCounts, stopping: impl Fn() -> bool) {
        let Some(job) = self.offer(job, metrics) else { return };
        metrics.refused.add(1);
        match &self.on_refusal {
            OnRefusal::RunOnWorker => job.run(),
            OnRefusal::Wait => self.offer_until_taken(job, metrics, stopping),
            OnRefusal::Callback(callback) => {
                contained(metrics, || callback(job));
            }
        }
    }

    /// Drops the executor, then the callback. Either drop may panic, and a second panic during the
    /// first would abort the process.
    pub(crate) fn discard(self) {
        let Self { executor, on_refusal } = self;
        if catch_panic::panics(|| drop(executor)) {
            warning!("the executor panicked when it was dropped");
        }
        if catch_panic::panics(|| drop(on_refusal)) {
            warning!("the callback for refused jobs panicked when it was dropped");
        }
    }

    fn offer_until_taken(&self, job: Job, metrics: &WorkerCounts, stopping: impl Fn() -> bool) {
        let (mut refused, mut yields) = (job, 0..10);
        loop {
            if stopping() {
                return refused.run();
            }
            match yields.next() {
                Some(_) => thread::yield_now(),
                None => thread::sleep(Duration::from_millis(1)),
            }
            match self.offer(refused, metrics) {
                None => return,
                Some(job) => refused = job,
            }
        }
    }

    /// Offers a job to the executor. Returns the job if the executor refuses it. If the executor panics,
    /// it drops the job.
    fn offer(&self, job: Job, metrics: &WorkerCounts) -> Option<Job> {
        contained(metrics, || self.executor.execute(job)).and_then(Result::err)
    }
}

fn contained<R>(metrics: &WorkerCounts, user_code: impl FnOnce() -> R) -> Option<R> {
    let result = catch_panic::contained(user_code);
    if result.is_none() {
        metrics.panicked.add_shared(1);
        warning!("the executor, or the callback for refused jobs, panicked");
    }
    result
}
