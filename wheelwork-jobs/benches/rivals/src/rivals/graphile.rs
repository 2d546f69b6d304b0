//! graphile_worker with its local queue, which fetches many jobs at once.
//!
//! The local queue of 0.14.1 does not keep the interval between two looks: at the end of a fetch it notifies
//! its own loop, which therefore fetches again at once. Its refetch delay stops that while nothing is due.

use super::{CONCURRENCY, CONNECTIONS, POLL};
use crate::Failed;
use crate::recorder::{Recorder, micros};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RefetchDelayConfig, TaskHandler,
    WorkerContext, WorkerOptions, WorkerUtils,
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
    pub async fn start(url: &str, recorder: Recorder, delay: bool) -> Result<Self, Failed> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        let mut queue = LocalQueueConfig::default().with_size(500);
        if delay {
            queue = queue.with_refetch_delay(RefetchDelayConfig::default().with_duration(POLL));
        }
        let worker = WorkerOptions::default()
            .concurrency(CONCURRENCY)
            .poll_interval(POLL)
            .local_queue(queue)
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
