//! Virtual time: a store in memory whose clock a test moves.

use crate::host;
use crate::jobs::Jobs;
use crate::store::redb::Redb;
use crate::store::{Calls, StoreError};
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is looked whether the due jobs have ended.
const PAUSE: Duration = Duration::from_millis(1);

/// How long a due job may take, of real time.
const PATIENCE: Duration = Duration::from_secs(60);

impl Jobs<Redb> {
    /// Lets virtual time pass, on a store [with a clock for tests](Redb::on_test_clock). The clock goes from one due
    /// time to the next one, and stands still until what is due has ended: so each job begins exactly when it is
    /// due, retries and successors too. Returns when all that is due up to the end has ended.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # use std::sync::{Arc, Mutex};
    /// # use wheelwork_jobs::{Job, Jobs, NewJob, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// const DAY: Duration = Duration::from_secs(86_400);
    /// let store = Redb::in_memory()?.on_test_clock(SystemTime::UNIX_EPOCH + 365 * DAY);
    /// let sent = Arc::new(Mutex::new(Vec::new()));
    /// let sends = sent.clone();
    /// let mail = move |job: Job<String, Redb>| {
    ///     sends.lock().unwrap().push((job.payload, job.due));
    ///     async { Ok::<_, String>(()) }
    /// };
    /// let jobs = Jobs::builder(store.clone()).handle("mail", mail).open().await?;
    /// jobs.schedule(NewJob::new("mail", &"your trial ends")?.due(30 * DAY)).await?;
    ///
    /// jobs.advance(29 * DAY).await?;
    /// assert!(sent.lock().unwrap().is_empty());
    /// jobs.advance(DAY).await?;
    /// assert_eq!(*sent.lock().unwrap(), [("your trial ends".to_owned(), store.now())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the store has no clock for tests, or a due job has not ended within a minute of real time: it may have
    /// no handler, or its kind a [rate](crate::Kind::rate) that lets it wait.
    pub async fn advance(&self, time: Duration) -> Result<(), StoreError> {
        self.0.node.call(move |store| async move { advance(store, time).await }).await
    }
}

async fn advance(store: Arc<Redb>, time: Duration) -> Result<(), StoreError> {
    if !store.stands_still() {
        let system = "it is the system's: expected one by `Redb::on_test_clock`";
        return Err(StoreError::new("move the clock", system));
    }
    let end = Timestamp::from(store.now()).after(time);
    while let Some(next) = next_due(&store).await? {
        if next > end {
            break;
        }
        store.set_clock(next);
    }
    store.set_clock(end);
    Ok(())
}

/// When the next job is due, after all that is due now has ended.
async fn next_due(store: &Redb) -> Result<Option<Timestamp>, StoreError> {
    let since: Instant = host::now();
    loop {
        let Some(first) = store.first().await? else { return Ok(None) };
        if first.due > store.now() {
            return Ok(Some(first.due.into()));
        }
        if host::elapsed(since) > PATIENCE {
            let (kind, id) = (first.kind, first.id);
            let stuck = format!(
                "job {id} of the kind {kind:?} does not end: expected a handler, no rate, and that it is not paused"
            );
            return Err(StoreError::new("move the clock", stuck));
        }
        host::sleep(PAUSE).await;
    }
}
