//! Jobs that are stored in users' transactions.

use crate::error::ScheduleError;
use crate::job::{JobId, NewJob};
use crate::store::{InTransaction, Store, Transaction};
use std::time::Duration;

pub(crate) fn schedule<'a, S: Store>(
    store: &'a S,
    transaction: impl Transaction<S> + 'a,
    window: Duration,
    job: &'a NewJob,
) -> InTransaction<'a, Result<JobId, ScheduleError>> {
    Box::pin(async move {
        if job.has_long_key() {
            return Err(ScheduleError::LongKey { job: Box::new(job.clone()) });
        }
        match transaction.insert(store, window, job).await {
            Ok(None) => Ok(job.id),
            Ok(Some(refused)) => ScheduleError::of(refused, job.clone()),
            Err(source) => Err(ScheduleError::Store { job: Box::new(job.clone()), source }),
        }
    })
}
