//! underway. It keeps what is done, and has no index for what is due.

use super::{CONNECTIONS, POLL, delay};
use crate::Failed;
use crate::recorder::{Recorder, micros};
use jiff::Span;
use sqlx_0_8::postgres::PgPoolOptions;
use sqlx_0_8::{PgPool, Postgres, Transaction};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::task::JoinHandle;
use underway::{Queue, Task, Worker, task};

/// Each handler holds a transaction, and takes a second connection for a moment.
const CONCURRENCY: usize = CONNECTIONS as usize / 2 - 1;

#[derive(Clone)]
struct Message(Recorder);

impl Task for Message {
    type Input = u64;
    type Output = ();

    async fn execute(&self, _: Transaction<'_, Postgres>, due: u64) -> task::Result<()> {
        self.0.ran(due);
        Ok(())
    }
}

pub struct Underway {
    pool: PgPool,
    queue: Arc<Queue<Message>>,
    message: Message,
    running: JoinHandle<()>,
}

impl Underway {
    pub async fn start(url: &str, recorder: Recorder) -> Result<Self, Failed> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
        underway::run_migrations(&pool).await?;
        let queue = Queue::builder().name("message").pool(pool.clone()).build().await?;
        let (queue, message) = (Arc::new(queue), Message(recorder));
        let mut worker = Worker::new(queue.clone(), message.clone());
        worker.set_concurrency_limit(CONCURRENCY);
        let every = Span::new().milliseconds(POLL.as_millis() as i64);
        let running = tokio::spawn(async move {
            if let Err(error) = worker.run_every(every).await {
                eprintln!("underway: {error}");
            }
        });
        Ok(Self { pool, queue, message, running })
    }

    /// Its call for many jobs gives all of them the same delay.
    pub async fn schedule(&self, due: &[SystemTime]) -> Result<(), Failed> {
        let now = SystemTime::now();
        let mut transaction = self.pool.begin().await?;
        for &due in due {
            let after = Span::new().microseconds(delay(due, now).as_micros() as i64);
            let payload = micros(due);
            self.queue.enqueue_after(&mut *transaction, &self.message, &payload, after).await?;
        }
        Ok(transaction.commit().await?)
    }

    pub fn stop(self) {
        self.running.abort();
    }
}
