//! New jobs that take the place of others with the same key.

use super::connect::state_of;
use super::{Inner, Parameters, rows, sql, time_or_delay, uuid};
use crate::host;
use crate::job::NewJob;
use crate::store::{Insertion, Replaced, Result};
use tokio_postgres::error::SqlState;

impl Inner {
    /// Tries again if somebody else has stored or ended a job with the key meanwhile.
    pub(super) async fn replace(
        &self,
        window: i64,
        job: &NewJob,
        me: Option<i64>,
    ) -> Result<Replaced> {
        let begun = host::now();
        let (id, (time, delay)) = (uuid(job.id), time_or_delay(job.when));
        let (kind, priority) = (&*job.kind, i64::from(job.priority));
        let parameters: Parameters<'_, 9> =
            [&id, &kind, &job.key, &time, &delay, &job.payload, &window, &priority, &me];
        while host::elapsed(begun) < self.limit {
            match self.change("replace a job", sql::REPLACE, &parameters).await {
                Ok(answer) => {
                    if let Some(row) = answer.first() {
                        return rows::replaced(row);
                    }
                }
                // Two jobs of one id, which have two keys.
                Err(error) if state_of(&error) == Some(&SqlState::UNIQUE_VIOLATION) => {}
                Err(error) => return Err(error),
            }
            let known = self.change("replace a job", sql::STORED, &[&vec![id]]).await?;
            if !known.is_empty() {
                return Ok(Replaced { insertion: Insertion::AlreadyStored, before: None });
            }
        }
        Ok(Replaced { insertion: Insertion::Busy, before: None })
    }
}
