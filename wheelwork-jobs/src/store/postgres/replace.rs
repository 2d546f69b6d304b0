//! New jobs that take the place of others with the same key.

use super::connect::state_of;
use super::{Inner, Values, micros, rows, sql, time_or_delay, uuid};
use crate::host;
use crate::job::NewJob;
use crate::store::{Insertion, NodeId, Replaced, Result};
use std::time::Duration;
use tokio_postgres::error::SqlState;

impl Inner {
    /// Tries again if somebody else has stored or ended a job with the key meanwhile.
    pub(super) async fn replace(
        &self,
        window: Duration,
        job: &NewJob,
        me: Option<NodeId>,
    ) -> Result<Replaced> {
        let (begun, window, me) = (host::now(), micros(window), me.map(|NodeId(me)| me));
        let (id, (time, delay)) = (uuid(job.id), time_or_delay(job.when));
        let (kind, priority) = (&*job.kind, i64::from(job.priority));
        let values: Values<'_> =
            &[&id, &kind, &job.key, &time, &delay, &job.payload, &window, &priority, &me];
        while host::elapsed(begun) < self.limit {
            match self.change("replace a job", sql::REPLACE, values).await {
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
