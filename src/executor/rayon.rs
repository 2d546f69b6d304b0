//! A rayon thread pool as an executor.

use super::{Executor, Job};
use std::sync::Arc;

/// Runs tasks on a rayon thread pool: the global one ([`Rayon::global`]) or your own. Its queue is
/// unbounded, so it never refuses a job.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::{HashedWheelTimer, executor::Rayon};
/// let timer = HashedWheelTimer::builder()
///     .tick_duration(Duration::from_millis(1))
///     .executor(Rayon::global())
///     .build()?;
/// let (sender, done) = mpsc::channel();
/// timer.new_timeout(move || sender.send("on rayon").unwrap(), Duration::ZERO)?;
/// assert_eq!(done.recv()?, "on rayon");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rayon(Option<Arc<rayon::ThreadPool>>);

impl Rayon {
    /// The global pool. It starts with the first job.
    pub fn global() -> Self {
        Self(None)
    }
}

impl From<Arc<rayon::ThreadPool>> for Rayon {
    fn from(pool: Arc<rayon::ThreadPool>) -> Self {
        Self(Some(pool))
    }
}

impl Executor for Rayon {
    fn execute(&self, job: Job) -> Result<(), Job> {
        match &self.0 {
            None => rayon::spawn(move || job.run()),
            Some(pool) => pool.spawn(move || job.run()),
        }
        Ok(())
    }
}
