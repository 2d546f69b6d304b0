//! wheelwork-jobs with its defaults.

use super::CONCURRENCY;
use crate::Failed;
use crate::recorder::{Recorder, micros};
use std::future::ready;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use wheelwork_jobs::{Job, Jobs, JobsBuilder, Kind, NewJob, Postgres, Redb, Store};

pub const KIND: &str = "message";

pub struct Node<S: Store> {
    jobs: Jobs<S>,
    /// The file of an embedded store is in it.
    _folder: Option<TempDir>,
}

pub fn builder<S: Store>(store: S, recorder: Recorder) -> JobsBuilder<S> {
    let run = move |job: Job<u64, S>| {
        recorder.ran(job.payload);
        ready(Ok::<(), String>(()))
    };
    Jobs::builder(store).handle(Kind::new(KIND).concurrency(CONCURRENCY), run)
}

pub async fn shared(url: &str, recorder: Recorder) -> Result<Node<Postgres>, Failed> {
    let jobs = builder(Postgres::new(url)?, recorder).open().await?;
    Ok(Node { jobs, _folder: None })
}

pub async fn embedded(recorder: Recorder) -> Result<Node<Redb>, Failed> {
    let folder = tempfile::tempdir()?;
    let store = Redb::open(folder.path().join("jobs.redb"))?;
    let jobs = builder(store, recorder).open().await?;
    Ok(Node { jobs, _folder: Some(folder) })
}

pub fn job(due: SystemTime) -> Result<NewJob, Failed> {
    Ok(NewJob::new(KIND, &micros(due))?.due(due))
}

impl<S: Store> Node<S> {
    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        let jobs = due.iter().map(|&due| job(due)).collect::<Result<Vec<_>, _>>()?;
        for result in self.jobs.schedule_all(jobs).await {
            result?;
        }
        Ok(())
    }

    pub fn unfinished(&self) -> u64 {
        let metrics = self.jobs.metrics();
        metrics.scheduled - metrics.done
    }

    pub async fn stop(self) -> Result<(), Failed> {
        self.jobs.stop(Duration::from_secs(10)).await?;
        Ok(())
    }
}
