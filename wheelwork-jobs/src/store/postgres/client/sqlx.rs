//! Transactions of sqlx.

use super::{Client, Failed, Value, since_2000};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::{AssertSqlSafe, Connection, Encode, PgConnection, Row, Type};

/// A `timestamptz`: microseconds since 2000. That of sqlx is one of another crate.
struct Time(i64);

impl Type<sqlx::Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1184))
    }
}

impl Encode<'_, sqlx::Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<sqlx::Postgres>>::encode_by_ref(&self.0, buffer)
    }
}

impl Client for &mut PgConnection {
    async fn answer(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> Result<Option<Option<String>>, Failed> {
        // Remembered by the server if statements of the user are: then this is no pool of transactions, where a
        // statement that one connection has prepared is not known to the next.
        let persistent = self.cached_statements_size() > 0;
        let mut query = sqlx::query(AssertSqlSafe(statement)).persistent(persistent);
        for value in values {
            query = match value {
                Value::Uuid(id) => query.bind(id),
                Value::Text(text) => query.bind(text),
                Value::Int(number) => query.bind(number),
                Value::Time(time) => query.bind(time.map(|time| Time(since_2000(time)))),
            };
        }
        let rows = query.fetch_all(&mut **self).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
    }
}

impl Client for &mut sqlx::Transaction<'_, sqlx::Postgres> {
    async fn answer(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> Result<Option<Option<String>>, Failed> {
        (&mut ***self).answer(statement, values).await
    }
}
