//! Transactions of sqlx.

use crate::error::{CompleteError, ScheduleError};
use crate::handler::Job;
use crate::job::{JobId, NewJob};
use crate::jobs::Jobs;
use crate::store::postgres::Postgres;
use crate::store::postgres::foreign::{Client, Failed, Value};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

impl Client for PgConnection {
    async fn numbers(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> Result<Vec<Option<i64>>, Failed> {
        // Remembered by the server if statements of the user are: then this is no pool of transactions, where a
        // statement that one connection has prepared is not known to the next.
        let persistent = self.cached_statements_size() > 0;
        let mut query = sqlx::query(AssertSqlSafe(statement)).persistent(persistent);
        for value in values {
            query = match value {
                Value::Uuid(id) => query.bind(id),
                Value::Uuids(ids) => query.bind(ids),
                Value::Text(text) => query.bind(text),
                Value::Texts(texts) => query.bind(texts),
                Value::Int(number) => query.bind(number),
            };
        }
        let rows = query.fetch_all(self).await?;
        Ok(rows.iter().map(|row| row.try_get("number")).collect::<Result<_, _>>()?)
    }
}

impl Jobs<Postgres> {
    /// [`schedule_in`](Self::schedule_in) for a transaction of sqlx: hand in `&mut transaction`. Without a
    /// transaction the job is stored at once.
    ///
    /// ```no_run
    /// # async fn order(pool: sqlx::PgPool, jobs: wheelwork_jobs::Jobs<wheelwork_jobs::Postgres>)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// use wheelwork_jobs::NewJob;
    ///
    /// let mut transaction = pool.begin().await?;
    /// sqlx::query("INSERT INTO orders (item) VALUES ('a book')").execute(&mut *transaction).await?;
    /// jobs.schedule_in_sqlx(&mut transaction, &NewJob::new("mail", &"anna")?).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`schedule_in`](Self::schedule_in).
    pub async fn schedule_in_sqlx(
        &self,
        transaction: &mut PgConnection,
        job: &NewJob,
    ) -> Result<JobId, ScheduleError> {
        self.store().insert_by(transaction, self.window(), job).await
    }
}

impl<P: Sync> Job<P, Postgres> {
    /// [`complete_in`](Self::complete_in) for a transaction of sqlx: hand in `&mut transaction`.
    ///
    /// # Errors
    ///
    /// As [`complete_in`](Self::complete_in).
    pub async fn complete_in_sqlx(
        &self,
        transaction: &mut PgConnection,
    ) -> Result<(), CompleteError> {
        self.complete_by(transaction).await
    }

    /// [`schedule_in`](Self::schedule_in) for a transaction of sqlx: hand in `&mut transaction`.
    ///
    /// # Errors
    ///
    /// As [`schedule_in`](Self::schedule_in).
    pub async fn schedule_in_sqlx(
        &self,
        transaction: &mut PgConnection,
        job: &NewJob,
    ) -> Result<JobId, ScheduleError> {
        self.store.insert_by(transaction, self.window, job).await
    }
}
