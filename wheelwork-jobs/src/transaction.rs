//! Jobs that are stored in transactions of users'.

use crate::error::ScheduleError;
use crate::job::{JobId, NewJob};
use crate::store::{InTransaction, Store};
use std::time::Duration;

pub(crate) fn schedule<'a, S: Store>(
    store: &'a S,
    transaction: &'a S::Transaction<'_>,
    window: Duration,
    job: &'a NewJob,
) -> InTransaction<'a, Result<JobId, ScheduleError>> {
    if job.has_long_key() {
        return Box::pin(std::future::ready(Err(ScheduleError::LongKey {
            job: Box::new(job.clone()),
        })));
    }
    let inserting = store.insert_in(transaction, window, job);
    Box::pin(async move {
        match inserting.await {
            Ok(insertion) => ScheduleError::of(insertion, job.clone()),
            Err(source) => Err(ScheduleError::Store { job: Box::new(job.clone()), source }),
        }
    })
}
