//! How many transactions a minute a worker costs while all jobs are far away.

use crate::Failed;
use crate::args::Args;
use crate::recorder::Recorder;
use crate::rivals::Rival;
use crate::server::{Server, connect};
use std::time::{Duration, SystemTime};
use tokio_postgres::Client;

const DAY: Duration = Duration::from_secs(86_400);
const BATCH: u64 = 1_000;

/// The server counts what an idle connection has done only after a second or more.
const SETTLE: Duration = Duration::from_secs(12);

/// Transactions a minute.
pub async fn measure(server: &Server, args: &Args) -> Result<Vec<(Rival, f64)>, Failed> {
    let mut results = Vec::new();
    for rival in args.rivals().into_iter().filter(|rival| *rival != Rival::Embedded) {
        let url = server.database().await?;
        let recorder = Recorder::new()?;
        let running = rival.start(&url, recorder).await?;
        let mut next = 0;
        while next < args.far {
            let size = BATCH.min(args.far - next);
            running.schedule(&vec![SystemTime::now() + DAY; size as usize]).await?;
            next += size;
        }
        tokio::time::sleep(SETTLE).await;
        let before = transactions(&url).await?;
        tokio::time::sleep(args.idle()).await;
        let counted = transactions(&url).await? - before;
        results.push((rival, counted as f64 * 60.0 / args.idle().as_secs_f64()));
        running.stop().await?;
    }
    Ok(results)
}

/// The transactions in a database, as seen from another one.
async fn transactions(url: &str) -> Result<i64, Failed> {
    let (server, name) = url.rsplit_once('/').ok_or("expected a URL with a database")?;
    let client: Client = connect(&format!("{server}/postgres")).await?;
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
    Ok(client.query_one(count, &[&name]).await?.get(0))
}
