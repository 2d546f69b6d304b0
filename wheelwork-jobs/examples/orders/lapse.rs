//! The job that ends an order which was not paid. The work and the end of the job are one transaction, so it
//! happens exactly once, whatever crashes.

use super::Failed;
use deadpool_postgres::Pool;
use wheelwork_jobs::{Job, Postgres};

pub const KIND: &str = "lapse";

/// There is one for each order.
pub fn key(order: i64) -> String {
    format!("lapse {order}")
}

/// The connection is one of the pool's, as in a request. The job's own end goes through it, too.
pub async fn handle(job: Job<i64, Postgres>, pool: Pool) -> Result<(), Failed> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    // First of all: fails if the order was paid meanwhile and the job was cancelled.
    job.complete_in(&*transaction).await?;
    let lapse = "UPDATE orders SET state = 'lapsed' WHERE id = $1 AND state = 'open'";
    let lapsed = transaction.execute(lapse, &[&job.payload]).await?;
    transaction.commit().await?;
    println!("order {}: {}", job.payload, if lapsed == 1 { "lapsed" } else { "was not open" });
    Ok(())
}
