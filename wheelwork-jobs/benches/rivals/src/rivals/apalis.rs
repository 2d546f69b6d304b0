//! apalis-postgres. Its due times are whole seconds: a job is due at the end of the second that the others
//! would be due in.

use super::{CONCURRENCY, CONNECTIONS, POLL};
use crate::Failed;
use crate::recorder::Recorder;
use apalis::prelude::*;
use apalis_postgres::queries::push_tasks;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use sqlx::postgres::PgPoolOptions;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;

const QUEUE: &str = "message";

pub struct Apalis {
    pool: PgPool,
    running: JoinHandle<()>,
}

async fn run(due: u64, recorder: Data<Recorder>) -> Result<(), BoxDynError> {
    recorder.ran(due);
    Ok(())
}

impl Apalis {
    pub async fn start(url: &str, recorder: Recorder) -> Result<Self, Failed> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        PostgresStorage::setup(&pool).await?;
        let config = Config::default().queue(QUEUE).batch_size(500).lock_tasks(false);
        let backend = PostgresStorage::<u64>::new(&pool).with_config(config);
        let backend = backend.poll_with_strategy(Strategy::new().interval(POLL));
        let worker = WorkerBuilder::new("rival")
            .backend(backend)
            .data(recorder)
            .concurrency(CONCURRENCY)
            .build(run);
        let running = tokio::spawn(async move {
            if let Err(error) = worker.run().await {
                eprintln!("apalis: {error}");
            }
        });
        Ok(Self { pool, running })
    }

    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        let mut tasks = Vec::with_capacity(due.len());
        for due in due {
            let second = due.duration_since(UNIX_EPOCH)?.as_nanos().div_ceil(1_000_000_000) as u64;
            let payload = serde_json::to_vec(&(second * 1_000_000))?;
            tasks.push(TaskBuilder::new(payload).run_at_timestamp(second).build());
        }
        let mut connection = self.pool.acquire().await?;
        push_tasks(&mut *connection, QUEUE, tasks).await?;
        Ok(())
    }

    pub fn stop(self) {
        self.running.abort();
    }
}
