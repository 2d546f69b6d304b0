//! Transactions of users by other clients of PostgreSQL than tokio-postgres.

#[cfg(feature = "diesel-async")]
mod diesel;
#[cfg(feature = "sqlx")]
mod sqlx;

use crate::error::{CompleteError, ScheduleError};
use crate::handler::{Completion, Job};
use crate::job::{JobId, NewJob};
use crate::store::postgres::Postgres;
use crate::store::postgres::foreign::Client;
use crate::store::{Claim, Kept, StoreError};
use crate::time::Timestamp;
use std::time::Duration;

impl Postgres {
    async fn insert_by(
        &self,
        client: &mut impl Client,
        window: Duration,
        job: &NewJob,
    ) -> Result<JobId, ScheduleError> {
        let boxed = || Box::new(job.clone());
        if job.has_long_key() {
            return Err(ScheduleError::LongKey { job: boxed() });
        }
        let failed = |error| {
            let source = StoreError::new("store a job", error);
            ScheduleError::Store { job: boxed(), source }
        };
        match self.insert_over(client, window, job).await.map_err(failed)? {
            None => Ok(job.id),
            Some(refused) => ScheduleError::of(refused, job.clone()),
        }
    }

    /// Ends a job, which may be kept, or moves it to its next occurrence.
    async fn complete_by(
        &self,
        client: &mut impl Client,
        window: Duration,
        claim: Claim,
        next: Option<Timestamp>,
        kept: Option<Kept>,
    ) -> Result<(), CompleteError> {
        let completed = self.complete_over(client, window, claim, next, kept).await;
        match completed.map_err(|error| StoreError::new("complete a job", error))? {
            true => Ok(()),
            false => Err(CompleteError::Lost { id: claim.id }),
        }
    }
}
impl<P: Sync> Job<P, Postgres> {
    async fn complete_by(&self, client: &mut impl Client) -> Result<(), CompleteError> {
        let next = self.next_occurrence();
        let (claim, kept) = (self.claim(), self.told.kept());
        self.told.reached(Completion::Tried);
        self.store.complete_by(client, self.window, claim, next, kept).await?;
        self.told.reached(Completion::Succeeded);
        Ok(())
    }
}
