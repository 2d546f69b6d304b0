//! Transactions of diesel-async.

use crate::error::{CompleteError, ScheduleError};
use crate::handler::Job;
use crate::job::{JobId, NewJob};
use crate::jobs::Jobs;
use crate::store::postgres::Postgres;
use crate::store::postgres::foreign::{Client, Failed, Value};
use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Uuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Nullable<BigInt>)]
    number: Option<i64>,
}

impl Client for AsyncPgConnection {
    async fn numbers(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> Result<Vec<Option<i64>>, Failed> {
        let mut query = diesel::sql_query(statement).into_boxed();
        for value in values {
            query = match value {
                Value::Uuid(id) => query.bind::<Uuid, _>(id),
                Value::Uuids(ids) => query.bind::<Array<Uuid>, _>(ids),
                Value::Text(text) => query.bind::<Nullable<Text>, _>(text),
                Value::Texts(texts) => query.bind::<Array<Nullable<Text>>, _>(texts),
                Value::Int(number) => query.bind::<Nullable<BigInt>, _>(number),
            };
        }
        let rows: Vec<Number> = query.get_results(self).await?;
        Ok(rows.into_iter().map(|row| row.number).collect())
    }
}

impl Jobs<Postgres> {
    /// [`schedule_in`](Self::schedule_in) for a transaction of diesel-async. Without a transaction the job is
    /// stored at once.
    ///
    /// ```no_run
    /// # async fn order(mut connection: diesel_async::AsyncPgConnection,
    /// #     jobs: wheelwork_jobs::Jobs<wheelwork_jobs::Postgres>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use diesel_async::{AsyncConnection, RunQueryDsl};
    /// use wheelwork_jobs::NewJob;
    ///
    /// type Failed = Box<dyn std::error::Error + Send + Sync>;
    /// connection.transaction(async |connection| {
    ///     diesel::sql_query("INSERT INTO orders (item) VALUES ('a book')").execute(connection).await?;
    ///     jobs.schedule_in_diesel(connection, &NewJob::new("mail", &"anna")?).await?;
    ///     Ok::<_, Failed>(())
    /// }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`schedule_in`](Self::schedule_in).
    pub async fn schedule_in_diesel(
        &self,
        transaction: &mut AsyncPgConnection,
        job: &NewJob,
    ) -> Result<JobId, ScheduleError> {
        self.store().insert_by(transaction, self.window(), job).await
    }
}

impl<P: Sync> Job<P, Postgres> {
    /// [`complete_in`](Self::complete_in) for a transaction of diesel-async.
    ///
    /// # Errors
    ///
    /// As [`complete_in`](Self::complete_in).
    pub async fn complete_in_diesel(
        &self,
        transaction: &mut AsyncPgConnection,
    ) -> Result<(), CompleteError> {
        self.complete_by(transaction).await
    }

    /// [`schedule_in`](Self::schedule_in) for a transaction of diesel-async.
    ///
    /// # Errors
    ///
    /// As [`schedule_in`](Self::schedule_in).
    pub async fn schedule_in_diesel(
        &self,
        transaction: &mut AsyncPgConnection,
        job: &NewJob,
    ) -> Result<JobId, ScheduleError> {
        self.store.insert_by(transaction, self.window, job).await
    }
}
