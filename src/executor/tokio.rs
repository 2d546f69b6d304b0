//! A tokio runtime as an executor.

use super::{Executor, Job};
use tokio::runtime::Handle;

/// Runs tasks on a tokio runtime. By default each is spawned as an async task, so it must not
/// block; [`Tokio::blocking`] runs them on the runtime's blocking pool instead.
///
/// A runtime never refuses a job. After its shutdown it drops its jobs. These jobs count as abandoned,
/// and their timeouts as cancelled.
///
/// # Examples
///
/// ```
/// # use std::{sync::mpsc, time::Duration};
/// # use wheelwork::{HashedWheelTimer, executor::Tokio};
/// let runtime = tokio::runtime::Runtime::new()?;
/// let timer = HashedWheelTimer::builder()
///     .tick_duration(Duration::from_millis(1))
///     .executor(Tokio::blocking(runtime.handle().clone())) // or the handle itself
///     .build()?;
/// let (sender, done) = mpsc::channel();
/// timer.new_timeout(move || sender.send("may block").unwrap(), Duration::ZERO)?;
/// assert_eq!(done.recv()?, "may block");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tokio {
    handle: Handle,
    blocking: bool,
}

impl Tokio {
    /// Runs tasks on the runtime's blocking pool.
    pub fn blocking(handle: Handle) -> Self {
        Self { handle, blocking: true }
    }
}

impl From<Handle> for Tokio {
    fn from(handle: Handle) -> Self {
        Self { handle, blocking: false }
    }
}

/// Runs tasks like [`Tokio::from`] this handle.
impl Executor for Handle {
    fn execute(&self, job: Job) -> Result<(), Job> {
        drop(self.spawn(async move { job.run() }));
        Ok(())
    }
}

impl Executor for Tokio {
    fn execute(&self, job: Job) -> Result<(), Job> {
        if !self.blocking {
            return self.handle.execute(job);
        }
        drop(self.handle.spawn_blocking(move || job.run()));
        Ok(())
    }
}
