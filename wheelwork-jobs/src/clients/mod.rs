//! Transactions of users by other clients of PostgreSQL than tokio-postgres.

#[cfg(feature = "diesel-async")]
mod diesel;
#[cfg(feature = "sqlx")]
mod sqlx;

use crate::error::CompleteError;
use crate::handler::Job;
use crate::store::postgres::Postgres;
use crate::store::postgres::foreign::Client;

impl<P: Sync> Job<P, Postgres> {
    async fn complete_by(&self, client: &mut impl Client) -> Result<(), CompleteError> {
        let next = self.next_occurrence();
        self.store.complete_by(client, self.window, self.claim(), next).await?;
        self.told.completed();
        Ok(())
    }
}
