//! graphile_worker with its local queue, which fetches many jobs at once.

use super::{CONCURRENCY, CONNECTIONS, POLL};
use crate::Failed;
use crate::recorder::{Recorder, micros};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use std::time::SystemTime;
use tokio::task::JoinHandle;

pub struct Graphile {
    utils: WorkerUtils,
    running: JoinHandle<()>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Message {
    due: u64,
}

impl TaskHandler for Message {
    const IDENTIFIER: &'static str = "message";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        match context.extensions().get::<Recorder>() {
            Some(recorder) => recorder.ran(self.due),
            None => return Err("no recorder".to_owned()),
        }
        Ok::<(), String>(())
    }
}

impl Graphile {
    pub async fn start(url: &str, recorder: Recorder) -> Result<Self, Failed> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        let worker = WorkerOptions::default()
            .concurrency(CONCURRENCY)
            .poll_interval(POLL)
            .local_queue(LocalQueueConfig::builder().size(500).build())
            .add_extension(recorder)
            .define_job::<Message>()
            .pg_pool(pool)
            .init()
            .await?;
        let utils = worker.create_utils();
        let running = tokio::spawn(async move {
            if let Err(error) = worker.run().await {
                eprintln!("graphile_worker: {error}");
            }
        });
        Ok(Self { utils, running })
    }

    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        let specs: Vec<_> = due.iter().map(|&due| JobSpec::builder().run_at(due).build()).collect();
        let messages = due.iter().map(|&due| Message { due: micros(due) });
        let jobs: Vec<_> = messages.zip(&specs).collect();
        self.utils.add_jobs(&jobs).await?;
        Ok(())
    }

    pub fn stop(self) {
        self.running.abort();
    }
}
