//! Transactions of tokio-postgres.

use super::super::Described;
use super::{Client, Failed, Value};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

fn typed(value: &Value) -> (&(dyn ToSql + Sync), Type) {
    match value {
        Value::Uuid(id) => (id, Type::UUID),
        Value::Text(text) => (text, Type::TEXT),
        Value::Int(number) => (number, Type::INT8),
        Value::Time(time) => (time, Type::TIMESTAMPTZ),
    }
}

impl Client for &Transaction<'_> {
    async fn answer(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> Result<Option<Option<String>>, Failed> {
        let parameters: Vec<_> = values.iter().map(typed).collect();
        // The types are given, so that this takes one round trip, also in a pool.
        let rows = self.query_typed(&statement, &parameters).await.map_err(Described)?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose().map_err(Described)?)
    }
}
