//! Jobs in transactions of other clients than tokio-postgres: the same statements, over whatever runs them.

use super::history::COMPLETE_KEPT;
use super::{Postgres, micros, signed, sql, uuid};
use crate::job::{JobId, NewJob, When};
use crate::store::{Claim, Insertion, Kept};
use crate::time::Timestamp;
use std::error::Error;
use std::time::Duration;
use uuid::Uuid;

/// A client of a user's, in a transaction.
pub(crate) trait Client: Send {
    /// Runs a statement, which is not worth to be remembered, and returns the column `number` of its rows.
    fn numbers(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Vec<Option<i64>>, Failed>> + Send;
}

pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// A parameter. Times are microseconds since 1970, because each client has types of its own for them.
pub(crate) enum Value {
    Uuid(Uuid),
    Uuids(Vec<Uuid>),
    Text(Option<String>),
    Texts(Vec<Option<String>>),
    Int(Option<i64>),
}

impl Postgres {
    /// `None` if the job is stored now.
    pub(crate) async fn insert_over(
        &self,
        client: &mut impl Client,
        window: Duration,
        job: &NewJob,
    ) -> Result<Option<Insertion>, Failed> {
        let (time, delay) = match job.when {
            When::At(due) => (Some(signed(due.as_micros())), None),
            When::After(micros) => (None, Some(signed(micros))),
        };
        let mut values = vec![
            Value::Uuid(uuid(job.id)),
            Value::Text(Some(job.kind.to_string())),
            Value::Text(job.key.clone()),
            Value::Int(time),
            Value::Int(delay),
            Value::Text(Some(job.payload.clone())),
            Value::Int(Some(micros(window))),
            Value::Int(Some(job.priority.into())),
        ];
        let insert = match job.unique_for {
            None => sql::INSERT_IN,
            Some(period) => {
                values.push(Value::Int(Some(micros(period))));
                sql::INSERT_UNIQUE_IN
            }
        };
        let statement = self.0.prefix.apply(insert).replace("$4", &time_of("$4"));
        if let Some(number) = client.numbers(statement, values).await?.first() {
            self.0.open.note(*number);
            return Ok(None);
        }
        let known = self.0.prefix.apply(sql::KNOWN);
        let statement = format!("SELECT count(*) AS number FROM ({known}) AS known");
        let known = client.numbers(statement, vec![Value::Uuids(vec![uuid(job.id)])]).await?;
        let is_known = known.first().is_some_and(|number| *number > Some(0));
        if is_known {
            return Ok(Some(Insertion::AlreadyStored));
        }
        let existing = match job.unique_for {
            Some(_) => self.marked_by(client, job).await?,
            None => None,
        };
        Ok(Some(existing.map_or_else(|| Insertion::not_stored(job), Insertion::Existing)))
    }

    /// The job that was stored in the period of this one.
    async fn marked_by(
        &self,
        client: &mut impl Client,
        job: &NewJob,
    ) -> Result<Option<JobId>, Failed> {
        let marked = self.0.prefix.apply(sql::MARKED);
        // Both halves of the id, as numbers.
        let statement = format!(
            "SELECT ('x' || substr(replace(job::text, '-', ''), half, 16))::bit(64)::bigint AS number
            FROM ({marked}) AS marked, unnest(ARRAY[1, 17]) AS half ORDER BY half"
        );
        let values = vec![
            Value::Uuids(vec![uuid(job.id)]),
            Value::Texts(vec![Some(job.kind.to_string())]),
            Value::Texts(vec![job.key.clone()]),
            Value::Texts(vec![Some(job.payload.clone())]),
        ];
        let numbers = client.numbers(statement, values).await?;
        let [Some(high), Some(low)] = numbers[..] else { return Ok(None) };
        let [high, low] = [high, low].map(|half| u128::from(half.cast_unsigned()));
        Ok(Some(JobId::from_u128(high << 64 | low)))
    }

    /// Whether the claim held.
    pub(crate) async fn complete_over(
        &self,
        client: &mut impl Client,
        window: Duration,
        Claim { id, epoch }: Claim,
        next: Option<Timestamp>,
        kept: Option<Kept>,
    ) -> Result<bool, Failed> {
        let mut values = vec![Value::Uuid(uuid(id)), Value::Int(Some(epoch.cast_signed()))];
        let statement = match (next, kept) {
            (None, Some(Kept { lasts, result })) => {
                values.push(Value::Int(Some(micros(lasts))));
                values.push(Value::Text(result));
                self.0.prefix.apply(COMPLETE_KEPT).into_owned()
            }
            (None, None) => {
                format!("{} RETURNING NULL::bigint AS number", self.0.prefix.apply(sql::COMPLETE))
            }
            (Some(next), _) => {
                values.push(Value::Int(Some(signed(next.as_micros()))));
                values.push(Value::Int(Some(micros(window))));
                self.0.prefix.apply(sql::REPEAT_IN).replace("$3", &time_of("$3"))
            }
        };
        let numbers = client.numbers(statement, values).await?;
        if let Some(number) = numbers.first() {
            self.0.open.note(*number);
        }
        Ok(!numbers.is_empty())
    }
}

/// A time of microseconds since 1970.
fn time_of(parameter: &str) -> String {
    format!("(timestamptz 'epoch' + {parameter}::bigint * interval '1 microsecond')")
}
