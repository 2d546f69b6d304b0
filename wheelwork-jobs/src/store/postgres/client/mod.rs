//! Jobs in users' transactions: the same statements, over whatever client runs them.
//!
//! - `tokio`, `sqlx`, `diesel`: the clients

#[cfg(feature = "diesel-async")]
mod diesel;
#[cfg(feature = "sqlx")]
mod sqlx;
mod tokio;

use super::history::COMPLETE_KEPT;
use super::{Postgres, micros, sql, time_or_delay, uuid};
use crate::job::NewJob;
use crate::store::{Claim, Insertion, Kept, Result, StoreError, Transact};
use crate::time::Timestamp;
use std::error::Error;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// A client of a user's, in a transaction.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no transaction of PostgreSQL",
    note = "of tokio-postgres: `&transaction`, of a pool `&*transaction`; of sqlx: `&mut transaction`; of diesel: \
            `&mut *connection`, of a pool `&mut **connection`"
)]
trait Client: Send {
    /// Runs a statement that has at most one row, and returns its only column, `answer`.
    fn answer(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Option<Option<String>>, Failed>> + Send;
}

type Failed = Box<dyn Error + Send + Sync>;

/// A parameter.
enum Value {
    Uuid(Uuid),
    Text(Option<String>),
    Int(Option<i64>),
    Time(Option<SystemTime>),
}

/// 2000-01-01 in microseconds since 1970: from there PostgreSQL counts its own.
#[cfg(any(feature = "sqlx", feature = "diesel-async"))]
const YEAR_2000: i64 = 946_684_800_000_000;

#[cfg(any(feature = "sqlx", feature = "diesel-async"))]
fn since_2000(time: SystemTime) -> i64 {
    Timestamp::from(time).as_micros().cast_signed() - YEAR_2000
}

impl<C: Client> Transact<Postgres> for C {
    async fn insert(
        mut self,
        Postgres(store): &Postgres,
        window: Duration,
        job: &NewJob,
    ) -> Result<Option<Insertion>> {
        let (time, delay) = time_or_delay(job.when);
        let values = vec![
            Value::Uuid(uuid(job.id)),
            Value::Text(Some(job.kind.to_string())),
            Value::Text(job.key.clone()),
            Value::Time(time),
            Value::Int(delay),
            Value::Text(Some(job.payload.clone())),
            Value::Int(Some(micros(window))),
            Value::Int(Some(job.priority.into())),
            Value::Int(job.unique_for.map(micros)),
        ];
        let stored = self.answer(store.prefix.apply(sql::STORE_IN).into_owned(), values).await;
        let answer = stored.map_err(|error| StoreError::new("store a job", error))?.flatten();
        Ok(match answer.as_deref() {
            None => Some(Insertion::Busy),
            Some("known") => Some(Insertion::AlreadyStored),
            Some("taken") => Some(Insertion::KeyTaken),
            Some(answer) => {
                let existing = answer.parse().ok().map(Insertion::Existing);
                if existing.is_none() {
                    store.open.note(Some(answer));
                }
                existing
            }
        })
    }

    async fn complete(
        mut self,
        Postgres(store): &Postgres,
        window: Duration,
        Claim { id, epoch }: Claim,
        next: Option<Timestamp>,
        kept: Option<Kept>,
    ) -> Result<bool> {
        let mut values = vec![Value::Uuid(uuid(id)), Value::Int(Some(epoch.cast_signed()))];
        let statement = match (next, kept) {
            (Some(next), _) => {
                values.extend([Value::Time(Some(next.into())), Value::Int(Some(micros(window)))]);
                sql::REPEAT_IN
            }
            (None, Some(Kept { lasts, result })) => {
                values.extend([Value::Int(Some(micros(lasts))), Value::Text(result)]);
                COMPLETE_KEPT
            }
            (None, None) => sql::COMPLETE,
        };
        let completed = self.answer(store.prefix.apply(statement).into_owned(), values).await;
        let answer = completed.map_err(|error| StoreError::new("complete a job", error))?;
        store.open.note(answer.as_ref().and_then(Option::as_deref));
        Ok(answer.is_some())
    }
}
