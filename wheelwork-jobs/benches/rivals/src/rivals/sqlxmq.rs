//! sqlxmq. It does not poll: it sleeps until the first of its jobs is due.

use super::{CONCURRENCY, CONNECTIONS, delay};
use crate::Failed;
use crate::recorder::{Recorder, micros};
use sqlx_0_8::PgPool;
use sqlx_0_8::postgres::PgPoolOptions;
use sqlxmq::{CurrentJob, JobBuilder, JobRunnerHandle, JobRunnerOptions};
use std::time::SystemTime;

/// Made by the build script.
const TABLES: &str = include_str!(concat!(env!("OUT_DIR"), "/sqlxmq.sql"));

pub struct Sqlxmq {
    pool: PgPool,
    runner: JobRunnerHandle,
}

async fn run(mut job: CurrentJob, recorder: Recorder) -> Result<(), Failed> {
    recorder.ran(job.json()?.ok_or("expected a payload")?);
    Ok(job.complete().await?)
}

impl Sqlxmq {
    pub async fn start(url: &str, recorder: Recorder) -> Result<Self, Failed> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        sqlx_0_8::raw_sql(TABLES).execute(&pool).await?;
        let dispatch = move |job| {
            let recorder = recorder.clone();
            tokio::spawn(async move {
                if let Err(error) = run(job, recorder).await {
                    eprintln!("sqlxmq: {error}");
                }
            });
        };
        let mut options = JobRunnerOptions::new(&pool, dispatch);
        let runner = options.set_concurrency(CONCURRENCY / 2, CONCURRENCY).run().await?;
        Ok(Self { pool, runner })
    }

    /// It has no call for many jobs, but they can share a transaction.
    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        let now = SystemTime::now();
        let mut transaction = self.pool.begin().await?;
        for &due in due {
            let mut job = JobBuilder::new("message");
            job.set_json(&micros(due))?.set_delay(delay(due, now)).spawn(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    pub async fn stop(mut self) {
        self.runner.stop().await;
    }
}
