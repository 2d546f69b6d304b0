//! Jobs in users' transactions: the same statements, over whatever client runs them.
//!
//! - `tokio`, `sqlx`, `diesel`: the clients

#[cfg(feature = "diesel-async")]
mod diesel;
#[cfg(feature = "sqlx")]
mod sqlx;
mod tokio;

use super::history::COMPLETE_KEPT;
use super::{Postgres, micros, sql, uuid};
use crate::job::{JobId, NewJob, When};
use crate::store::{Claim, Insertion, Kept, StoreError, Transact};
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
    /// Runs a statement and returns its only column, `number`.
    fn numbers(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Vec<Option<i64>>, Failed>> + Send;
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
        store: &Postgres,
        window: Duration,
        job: &NewJob,
    ) -> Result<Option<Insertion>, StoreError> {
        let inserted = store.insert_in(&mut self, window, job).await;
        inserted.map_err(|error| StoreError::new("store a job", error))
    }

    async fn complete(
        mut self,
        Postgres(store): &Postgres,
        window: Duration,
        Claim { id, epoch }: Claim,
        next: Option<Timestamp>,
        kept: Option<Kept>,
    ) -> Result<bool, StoreError> {
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
        let completed = self.numbers(store.prefix.apply(statement).into_owned(), values).await;
        let numbers = completed.map_err(|error| StoreError::new("complete a job", error))?;
        numbers.iter().for_each(|number| store.open.note(*number));
        Ok(!numbers.is_empty())
    }
}

impl Postgres {
    /// `None` if the job is stored now.
    async fn insert_in(
        &self,
        client: &mut impl Client,
        window: Duration,
        job: &NewJob,
    ) -> Result<Option<Insertion>, Failed> {
        let statement = |statement| self.0.prefix.apply(statement).into_owned();
        let (time, delay) = match job.when {
            When::At(due) => (Some(due.into()), None),
            When::After(micros) => (None, Some(i64::try_from(micros).unwrap_or(i64::MAX))),
        };
        let same = || {
            let (kind, key) = (Some(job.kind.to_string()), job.key.clone());
            [kind, key, Some(job.payload.clone())].map(Value::Text)
        };
        let [kind, key, payload] = same();
        let mut values = vec![
            Value::Uuid(uuid(job.id)),
            kind,
            key,
            Value::Time(time),
            Value::Int(delay),
            payload,
            Value::Int(Some(micros(window))),
            Value::Int(Some(job.priority.into())),
        ];
        values.extend(job.unique_for.map(|period| Value::Int(Some(micros(period)))));
        let insert = if job.unique_for.is_none() { sql::INSERT_IN } else { sql::INSERT_UNIQUE_IN };
        if let Some(number) = client.numbers(statement(insert), values).await?.first() {
            self.0.open.note(*number);
            return Ok(None);
        }
        let id = vec![Value::Uuid(uuid(job.id))];
        if !client.numbers(statement(sql::KNOWN_IN), id).await?.is_empty() {
            return Ok(Some(Insertion::AlreadyStored));
        }
        if job.unique_for.is_some() {
            let marked = client.numbers(statement(sql::MARKED_IN), same().into()).await?;
            if let [Some(high), Some(low)] = marked[..] {
                let [high, low] = [high, low].map(|half| u128::from(half.cast_unsigned()));
                return Ok(Some(Insertion::Existing(JobId::from_u128(high << 64 | low))));
            }
        }
        Ok(Some(Insertion::not_stored(job)))
    }
}
