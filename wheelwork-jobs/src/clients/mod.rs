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
        let (claim, kept) = (self.claim(), self.told.kept());
        self.store.complete_by(client, self.window, claim, next, kept).await?;
        self.told.completed();
        Ok(())
    }
}
