//! Transactions of diesel-async.

use super::{Client, Failed, Value, since_2000};
use diesel::QueryableByName;
use diesel::data_types::PgTimestamp;
use diesel::sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Nullable<Text>)]
    answer: Option<String>,
}

impl Client for &mut AsyncPgConnection {
    async fn answer(
        &mut self,
        statement: String,
        values: Vec<Value>,
    ) -> Result<Option<Option<String>>, Failed> {
        let mut query = diesel::sql_query(statement).into_boxed();
        for value in values {
            query = match value {
                Value::Uuid(id) => query.bind::<Uuid, _>(id),
                Value::Text(text) => query.bind::<Nullable<Text>, _>(text),
                Value::Int(number) => query.bind::<Nullable<BigInt>, _>(number),
                Value::Time(time) => {
                    let time = time.map(|time| PgTimestamp(since_2000(time)));
                    query.bind::<Nullable<Timestamptz>, _>(time)
                }
            };
        }
        let rows: Vec<Answer> = query.get_results(*self).await?;
        Ok(rows.into_iter().next().map(|row| row.answer))
    }
}
