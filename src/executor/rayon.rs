//! Rayon as an executor.

use super::{Executor, Job};
use std::sync::Arc;

/// Runs tasks on a rayon thread pool: the global one ([`Rayon::global`]) or one of your own. Its
/// queue has no bound, so it never refuses.
#[derive(Clone, Debug)]
pub struct Rayon(Option<Arc<rayon::ThreadPool>>);

impl Rayon {
    /// The global pool, started when the first job comes.
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
